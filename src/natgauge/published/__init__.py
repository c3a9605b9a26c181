# SPDX-License-Identifier: Apache-2.0
"""Tables published by others, as data with their sources.

`tables/` has a file for each table; `sources.toml` has the documents and the hardware of the measurements.
They were measured on other hardware with other testers, so they must not be compared with results of natgauge.
"""
