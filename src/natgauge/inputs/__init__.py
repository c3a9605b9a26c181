# SPDX-License-Identifier: Apache-2.0
"""Everything a user may choose, described once: command line, plans, Python, results and docs are made of it."""
