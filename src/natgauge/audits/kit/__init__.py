# SPDX-License-Identifier: Apache-2.0
"""Parts of which requirements are made: packets, ports, flows, classes of behaviour, timers."""
