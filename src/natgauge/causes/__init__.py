# SPDX-License-Identifier: Apache-2.0
"""Why frames of a trial were lost: hops and counters, and the one cause that verdict, report and `explain` share."""
