# SPDX-License-Identifier: Apache-2.0
"""Audits: how a gateway behaves, requirement by requirement of the RFCs, next to how fast it is.

Each module in `requirements` declares what it examines with `requires`; nothing else has to be edited to add one.
"""
