# SPDX-License-Identifier: Apache-2.0
"""Doubts about the tester's ports and their links: what they carry, and whether they hide a loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from natgauge.analysis.unit_frames import counted_unit, frames_in_all, frames_of, is_of_frames, most_units
from natgauge.doubts.doubt import Doubt, Facts, Said
from natgauge.figure_text import in_percent, number
from natgauge.metrics import declared

#: A rate above this share of the highest one that was tried may be the tester's.
NEAR_TOP: Final = 0.8
#: Clocks may differ by 100 ppm (RFC 5180 appendix A.1), and a search ends within 1 %.
NEAR_LINK: Final = 0.98


def _link(facts: Facts) -> Iterator[Said]:
    """A full link ends the search."""
    measured = facts.measured
    most = most_units(measured.metric, facts.parameters, measured.figures)
    if most is not None and measured.summary.median >= NEAR_LINK * most:
        unit = counted_unit(measured.metric, measured.unit, facts.parameters)
        what = "frames/s of this size" if is_of_frames(measured.metric, facts.parameters) else unit
        yield Said(f"the link carries no more than {number(most)} {what}; the device may do more")


def _flow_control(facts: Facts) -> Iterator[Said]:
    """PAUSE frames (IEEE 802.3 annex 31B) turn a loss into a wait."""
    ports, flows = facts.parameters.get("ports"), facts.parameters.get("flow_control")
    if not isinstance(ports, list) or not isinstance(flows, list):
        return
    for port, flow in zip(ports, flows, strict=False):
        if flow not in ("off", "not known"):
            yield Said(
                f"flow control is on at {port} ({flow}): frames that the device has no room for wait instead of being "
                f"lost; run: ethtool -A {port} autoneg off rx off tx off"
            )


def _unknown_tester(facts: Facts) -> Iterator[Said]:
    """A cable of veths ends the search, but says nothing of what the tester can do on a card."""
    measured, parameters = facts.measured, facts.parameters
    top = parameters.get(f"search_top_phase{declared(measured.metric).phase}_rate")
    if not isinstance(top, int | float):
        return
    rate = frames_in_all(measured.summary.median, measured.figures, facts.parameters)
    near = bool(frames_of(measured.metric, parameters)) and rate >= NEAR_TOP * top
    share = f"; the result is {in_percent(rate / top)} of it and may be the tester's" if near else ""
    unit = measured.unit if measured.unit.endswith("/s") else "frames/s"
    text = f"the tester's highest rate on these ports is not known; at most {number(top)} {unit} were tried{share}"
    yield Said(text, grade="answer" if near else "information")


DOUBTS: Final = (
    Doubt(
        word="link limited",
        plainly="the link was the limit, so that the gateway may be faster",
        grade="answer",
        about="result",
        holds=_link,
        meaning=(
            "on a wire: the result is the theoretical maximum of the link (98 % or more of it), which counts all "
            "frames of a connection; the gateway may be faster"
        ),
        remedy="Use a faster link, or larger frames if their rate is the question.",
        leaves="at least",
        limit="the link, not the device",
        hides=True,
        ended_by="the link",
    ),
    Doubt(
        word="flow control",
        plainly="flow control let frames wait instead of being lost",
        grade="answer",
        about="result",
        holds=_flow_control,
        meaning=(
            "on a wire: a port obeys or sends PAUSE frames, so frames that the gateway has no room for wait instead of "
            "being lost. The text has the command that turns flow control off"
        ),
        leaves="at most",
    ),
    Doubt(
        word="tester unknown",
        plainly="the tester's own limit is not known",
        grade="information",
        about="result",
        holds=_unknown_tester,
        grades="`answer` if the figure is 80 % or more of the highest rate tried",
        meaning=(
            "on a wire: the tester's own limit on these ports is not known. The text has the highest rate that was "
            "tried, and says whether the result is near it"
        ),
        remedy="Measure with more sending cores (--sender-cores): a rate that stays is the device's.",
        leaves="at least",
    ),
)
