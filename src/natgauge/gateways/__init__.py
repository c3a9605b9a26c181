# SPDX-License-Identifier: Apache-2.0
"""Gateways as data: one TOML file each, and one driver that runs all of them (docs/recipes.md)."""
