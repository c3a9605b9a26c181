# SPDX-License-Identifier: Apache-2.0
"""The errors a user can meet, each with the exit status the command line ends with.

One line each: what, where, which value, which rule, what to do. Nothing is half done when one is raised.
"""

from __future__ import annotations


class NatgaugeError(Exception):
    """Base of all errors that are shown to the user as one line.

    Attributes:
        exit_status: what `natgauge` exits with (2 usage, 3 host, 4 broke on the way).
    """

    exit_status = 4


class UsageError(NatgaugeError):
    """The question is wrong: an unknown name, a value out of range, a contradiction."""

    exit_status = 2


class HostError(NatgaugeError):
    """This host cannot do it: a missing capability, package, kernel feature or resource."""

    exit_status = 3


class BrokenError(NatgaugeError):
    """It broke on the way: the engine, the lab or the device failed while it was used."""

    exit_status = 4
