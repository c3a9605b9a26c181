# SPDX-License-Identifier: Apache-2.0
"""Parts that metrics are made of. Nothing in here is a metric, and nothing in here imports a metric.

`search/` has searches for the highest rate and the rules that bound their errors, `measure/` trials that several
metrics share, `result/` what a procedure returns. docs/procedures.md says what to use for which metric. The frame of
every measurement:

* `procedure`: the description of a metric, what all measurements have in common, and the cause of a repetition
* `repetitions`: the interface that a metric implements (one repetition), and repetitions measured separately as one
* `settings`: the settings that all metrics share, and profiles, the named sets of defaults
* `runner`: hands trials to the measurer, and compares the device's own count with the traffic
* `events`: what an observer receives of each trial
* `time_budget`: the time that a measurement may take
"""
