# SPDX-License-Identifier: Apache-2.0
"""Results of a measurement: figures, their summary over repetitions, and notes."""
