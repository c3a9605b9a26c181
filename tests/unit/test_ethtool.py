# SPDX-License-Identifier: Apache-2.0
"""What an error of a request to a driver says of the settings of a port."""

from __future__ import annotations

import errno
from typing import NoReturn

import pytest
from pyroute2.ethtool.ioctl import IoctlEthtool, NotSupportedError
from pyroute2.netlink.exceptions import NetlinkError

from natgauge.errors import HostError
from natgauge.host import ethtool
from natgauge.host.ethtool import Part


def answering(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Have every request to a driver end with an error."""

    def refuse(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(ethtool, "_exchange", refuse)
    monkeypatch.setattr(ethtool, "ask", refuse)
    monkeypatch.setattr(IoctlEthtool, "get_features", refuse)


@pytest.mark.parametrize(
    ("part", "error"),
    [
        ("pause", NetlinkError(errno.EOPNOTSUPP)),
        ("eee", NetlinkError(errno.EPROTONOSUPPORT)),
        ("queues", NetlinkError(errno.ENOENT)),
        ("offloads", NotSupportedError("eth1")),
        ("hash", OSError(errno.EOPNOTSUPP, "Operation not supported")),
        ("hash", OSError(errno.EINVAL, "Invalid argument")),
    ],
)
def test_a_driver_that_does_not_know_a_part_has_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch, part: Part, error: Exception
) -> None:
    answering(monkeypatch, error)
    assert ethtool.read("eth1", part) is None


@pytest.mark.parametrize(
    ("part", "error", "reason"),
    [
        ("pause", NetlinkError(errno.ENODEV), "No such device"),
        ("queues", NetlinkError(errno.EINVAL), "Invalid argument"),
        ("coalescing", NetlinkError(errno.EBUSY), "Device or resource busy"),
        ("hash", OSError(errno.EPERM, "Operation not permitted"), "Operation not permitted"),
    ],
)
def test_any_other_error_does_not_mean_that_there_is_nothing(
    monkeypatch: pytest.MonkeyPatch, part: Part, error: Exception, reason: str
) -> None:
    """`natgauge host restore` took it for a setting that is gone, and forgot the old value."""
    answering(monkeypatch, error)
    with pytest.raises(HostError) as refused:
        ethtool.read("eth1", part)
    assert str(refused.value) == f"port eth1: {part} cannot be read ({reason})"
