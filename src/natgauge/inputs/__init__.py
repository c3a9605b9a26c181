# SPDX-License-Identifier: Apache-2.0
"""Descriptions of all inputs; command line, plans, Python keywords, results and docs are generated from them."""
