# SPDX-License-Identifier: Apache-2.0
"""A measurement's result as data: what is stored, shown and compared; it knows no lab, no device and no engine."""
