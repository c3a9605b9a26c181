# SPDX-License-Identifier: Apache-2.0
"""What metrics are made of. Nothing in here is a metric, and nothing in here imports one.

The frame of every measurement:

* `procedure`: what a metric is, and what all measurements have in common
* `repetitions`: what a metric gives of its own: one repetition
* `settings`, `values`, `profiles`: what can be asked for
* `runner`, `events`: trials handed to the measurer, and told
* `invalid_trials`: how often a trial that says nothing is repeated
* `time_budget`: how long the measurement may take, and what is told when that is over
* `results`, `summary`, `notes`: what comes of it; `joining`: of repetitions that were measured one by one

For metrics that share a way of measuring, each with its settings:

* `rate_search` (with `binary_search`, its `loads` and `incurable` loss, and `mlr_search`): the highest rate
* `queues`: by how much queues before the device may raise a rate
* `capacity_trials`: whether so many connections are kept, and whose fault it is where they are not
* `device_count`: the device's own count against the traffic
* `phase1`, `phase2`: a safe phase 1, and what is sent afterwards
* `standing`, `throughput_shares`: known rates over established connections, and shares of the throughput
* `delay_metrics`, `delay_statistics`: delays
* `validation`: asking every connection
* `frame_counts`: rates and shares that the counts of a trial tell
* `inner`: what another metric must find first
"""
