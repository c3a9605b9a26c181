# SPDX-License-Identifier: Apache-2.0
"""One trial on a setup: the engine's request, the run, the readings before and after it, and the outcome."""
