# SPDX-License-Identifier: Apache-2.0
"""Tables others have published, as data with their sources.

`tables/` has one file each, `sources.toml` tells where they were printed and on what they were measured.
Measured on their hardware, with their tester: nothing here may be compared with a result of natgauge.
"""
