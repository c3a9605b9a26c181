# SPDX-License-Identifier: Apache-2.0
"""Random simulated gateways of known truth: does what a result prints of them hold?"""
