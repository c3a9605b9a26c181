# SPDX-License-Identifier: Apache-2.0
"""Places to measure in: two tester ports, devices between them, and a way to run a snippet on each device.

Errors mean the same in every kind. UsageError: a choice of the user cannot be. HostError: this host, another machine or
another natgauge is in the way. BrokenError: something that worked before no longer does. Docstrings name them where
there is more to say.
"""
