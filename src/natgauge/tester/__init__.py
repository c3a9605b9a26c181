# SPDX-License-Identifier: Apache-2.0
"""The tester by itself: on a cable without a device, and what this host lets it do."""
