# SPDX-License-Identifier: Apache-2.0
"""Parts that metrics are made of. Nothing in here is a metric, and nothing in here imports a metric.

`search/` has searches for the highest rate and the rules that bound their errors, `measure/` trials that several
metrics share, `result/` what a procedure returns; the other modules are the frame of every measurement.
docs/procedures.md says what to use for which metric.
"""
