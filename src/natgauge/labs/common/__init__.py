# SPDX-License-Identifier: Apache-2.0
"""Parts that several kinds of labs use: namespaces, links, the register of what a lab made, and its cleanup."""
