# SPDX-License-Identifier: Apache-2.0
"""Records of outcomes: typed, versioned, stored in folders. A record contains no lab, no device and no engine."""
