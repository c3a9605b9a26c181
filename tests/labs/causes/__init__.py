# SPDX-License-Identifier: Apache-2.0
"""Gateways with one planted fault each, and the cause that natgauge names: `python -m tests.labs.causes` (root)."""
