# SPDX-License-Identifier: Apache-2.0
"""How many subscribers gateways carry, in words, as a table, and as a document."""
