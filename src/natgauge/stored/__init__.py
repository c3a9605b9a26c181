# SPDX-License-Identifier: Apache-2.0
"""Results folders as users name them: found, read, and checked against themselves and against all inputs."""
