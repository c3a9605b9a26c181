# SPDX-License-Identifier: Apache-2.0
"""Settings of the tester machine that move figures: looked at, set for measuring, put back as they were found.

One class per setting in `knobs.py`, all behind the contract in `contract.py`. Unlike
`natgauge.host.settings`, which a gateway needs changed while it runs, these stay set until `restore`.
"""
