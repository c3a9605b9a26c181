# SPDX-License-Identifier: Apache-2.0
"""Places to measure in: two tester ports, devices between them, and a way to run a snippet on each device."""
