# SPDX-License-Identifier: Apache-2.0
"""The tester without a device: its own rates on a cable, and the abilities of this host."""
