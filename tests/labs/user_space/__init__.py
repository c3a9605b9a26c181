# SPDX-License-Identifier: Apache-2.0
"""A NAT44 in user space: a Python process behind a TUN interface, started in three ways (root)."""
