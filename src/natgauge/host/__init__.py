# SPDX-License-Identifier: Apache-2.0
"""What the tester machine can do: cores, capabilities."""
