# SPDX-License-Identifier: Apache-2.0
"""natgauge and other testers measure the same gateway in turns, whose true figures are known from its rules."""
