# SPDX-License-Identifier: Apache-2.0
"""One trial: the request to `natgauge-engine`, and its result. `agreement.process` runs the engine.

The types of requests and results are generated from the engine's schemas (`trial/*.schema.json`) by every build. The
engine checks bounds and rules between fields, and refuses a wrong request before it touches anything. Times are
integers in nanoseconds (`_ns`) or milliseconds (`_ms`), rates are frames/s.
"""
