# SPDX-License-Identifier: Apache-2.0
"""The `vm` lab: a QEMU guest with a kernel of its own."""
