# SPDX-License-Identifier: Apache-2.0
"""Gateways whose rates are known, compared by rates."""
