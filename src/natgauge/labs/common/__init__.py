# SPDX-License-Identifier: Apache-2.0
"""Parts that several kinds of labs use: namespaces, links, and the register of what a lab made."""
