# SPDX-License-Identifier: Apache-2.0
"""The bench: one lab, its started devices and one measurer, on which procedures run one after the other."""
