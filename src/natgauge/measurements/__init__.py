# SPDX-License-Identifier: Apache-2.0
"""One measurement: one metric of one gateway on a bench of its own, and the conditions that its record states."""
