# SPDX-License-Identifier: Apache-2.0
"""Parts that metrics are made of. Nothing in here is a metric, and nothing in here imports a metric.

`rate_search`, `binary_search`, `mlr_search` and `losses` search the highest rate; `phases`, `held_connections`,
`mixed_loads`, `delays` and `validation` have trials that several metrics share; `results` and `frame_counts` what a
procedure returns. The other modules are the frame of every measurement. docs/procedures.md says what to use for which
metric.
"""
