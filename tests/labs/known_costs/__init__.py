# SPDX-License-Identifier: Apache-2.0
"""Devices whose frames cost a known time more than another's: what `compare` finds can be held against that."""
