# SPDX-License-Identifier: Apache-2.0
"""Properties of the tester machine: cores, capabilities, settings."""
