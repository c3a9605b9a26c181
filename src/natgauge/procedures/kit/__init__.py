# SPDX-License-Identifier: Apache-2.0
"""Parts that metrics are made of. Nothing in here is a metric, and nothing in here imports a metric.

The frame of every measurement:

* `procedure`: the description of a metric, what all measurements have in common, and the cause of a repetition
* `repetitions`: the interface that a metric implements (one repetition), and repetitions measured separately as one
* `settings`: the settings that all metrics share, and profiles, the named sets of defaults
* `runner`: hands trials to the measurer, and compares the device's own count with the traffic
* `events`: what an observer receives of each trial
* `time_budget`: the time that a measurement may take

`result/`: what a procedure returns: `results`, `notes`, `frame_counts` and `delay_statistics`.

`search/`: the highest rate.

* `rate_search`, `searched_rate`: settings and repetitions of a search, by `binary_search` or `mlr_search`
* `bracket`: the loads that a search has tried, and where it continues; `buckets`: connections accepted at once
* `permanent_loss`, `rare_loss`: loss that does not depend on the rate
* `invalid_trials`: how often an INVALID trial is repeated
* `queues`, `late_frames`: by how much a rate that passed may be above the device's own

`measure/`: trials that several metrics share.

* `phase1`, `phase2`: a safe rate for phase 1, and the settings of phase 2
* `held_connections`: trials, and a search for a rate, over connections that phase 1 established
* `prerequisite`: another metric that must be measured first; `throughput_shares`: loads as shares of the throughput
* `delay_metrics`: delays; `validation`: whether each connection still works; `capacity_trials`: how many are kept
"""
