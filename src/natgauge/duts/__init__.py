# SPDX-License-Identifier: Apache-2.0
"""Gateways as data: one TOML file each, and the one driver that plays them (docs/gateways.md)."""
