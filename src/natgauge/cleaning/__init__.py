# SPDX-License-Identifier: Apache-2.0
"""Labs from outside: which there are, and how what killed runs left is found and taken away."""
