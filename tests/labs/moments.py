# SPDX-License-Identifier: Apache-2.0
"""Random moments of kills that can be had again: the seed is told, and the environment may give it."""

from __future__ import annotations

import os
import random
from typing import Final, Self

#: The variable of the environment that gives the seed of an earlier run.
SEED: Final = "NATGAUGE_TEST_SEED"


class Moments(random.Random):
    """Random moments.

    Attributes:
        told: the setting that gives the same moments again, for the message of a test that fails.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.told = f"{SEED}={seed}"

    @classmethod
    def of_this_run(cls) -> Self:
        """Other ones in each run, unless the environment gives a seed.

        Raises:
            ValueError: what the environment gives is no whole number.
        """
        return cls(int(os.environ.get(SEED) or random.SystemRandom().getrandbits(32)))
