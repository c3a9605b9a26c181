# SPDX-License-Identifier: Apache-2.0
"""Settings that every measurement has. Groups of further settings are next to the code that uses them.

A metric's settings are one class that names its groups, each of which inherits `TrialSettings` and nothing else
(docs/procedures.md). Fields come in the order from the last group named to the first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Literal, Self

from natgauge.errors import UsageError
from natgauge.inputs.input import Amount, check_all, chosen, described, in_range, one_of, positive, whole
from natgauge.inputs.measuring_types import RepetitionCount, SearchError
from natgauge.measurer import Ability, Measurer
from natgauge.metrics.metric import THRESHOLDS
from natgauge.notes import Note
from natgauge.trials import LAG_SHARE, TrialPlan
from natgauge.words import MAXIMUM_CONNECTIONS, TESTER, Close, Order, Placement, Query, TcpState, enumerated

#: Named sets of defaults; the user's own values take precedence, and every result contains the profile's name. "quick":
#: seconds, wide bounds, one repetition. "standard": minutes, until the interval of the median is narrow enough. "rfc":
#: exactly the durations, repetitions and errors that the RFCs require, without a time limit. Exceptions are in the
#: metric's own module.
Profile = Literal["default", "quick", "standard", "rfc"]
#: Settings by name, of each profile that has something to say.
Defaults = Mapping[Profile, Mapping[str, object]]

COMMON: Final[Defaults] = {
    "default": {},
    "quick": {
        "repeat": 1,
        "trial_seconds": 0.5,
        "error": SearchError(share=0.05),
        "confirm": False,
        "most_seconds": 60.0,
    },
    "standard": {"repeat": "auto", "trial_seconds": 5.0, "error": SearchError(share=0.005), "most_seconds": 1800.0},
    "rfc": {
        "repeat": 20,
        "trial_seconds": 60.0,
        "error": SearchError(share=0.001),
        # RFC 2544 section 23: so long the device settles before the next trial.
        "settle_seconds": 5.0,
        "most_seconds": None,
    },
}

#: How often to repeat; "auto" = until the median is known well enough (see `procedure.is_enough`).
Repeat = int | Literal["auto"]

#: Settings that traffic and lab decide; the user does not give them as a metric's own.
DECIDED_ELSEWHERE: Final = frozenset({"connections", "placement", "own_processes", "order", "four_tuples"})
#: `repeat` "auto" ends after this number at the latest: RFC 8219 section 7.2 requires 20 of its own measurements.
MOST_AUTO_REPETITIONS = 20
#: An interval of 98 % of the median takes as many values (see `procedure.well_known`).
LEAST_AUTO_REPETITIONS = 7
#: Longest time of a measurement, unless its profile has another.
MOST_SECONDS = 600.0
#: A per-frame limit longer than this is no limit: the receivers close before. No frame is faster than the least.
LEAST_TIMEOUT_SECONDS = 1e-6
LONGEST_TIMEOUT_SECONDS = 60.0


def _check_repeat(name: str, value: Repeat) -> None:
    if isinstance(value, str):
        one_of(name, value, ("auto",))
    else:
        whole(name, value, 1, 1000, "repetitions")


def _check_timeout(_name: str, seconds: float) -> None:
    positive("frame timeout", seconds, "seconds")
    in_range("frame timeout", seconds, LEAST_TIMEOUT_SECONDS, LONGEST_TIMEOUT_SECONDS, "s")


def _check_most(name: str, seconds: float | None) -> None:
    if seconds is not None and seconds != 0:
        positive(name, seconds, "seconds")


def _threshold(text: str) -> dict[str, Any]:
    """Describe a threshold, which is judged when the result is known, and changes nothing before."""
    return described(
        f"{text} that the result must have, in the unit of the metric (200k, 1.5M)",
        check=partial(in_range, lowest=0.0, highest=1e15),
        type=Amount(),
        moves_figures=False,
    )


#: Metrics with another default use this description for their own field.
ABOUT_REPEAT: Final = described(
    "repetitions of the measurement; auto: until the confidence interval is narrow",
    "repetitions", _check_repeat, type=RepetitionCount(),
    # They make a figure surer, not larger.
    label="requested repetitions", moves_figures=False,
)  # fmt: skip
#: No larger loss may be tolerated.
MOST_TOLERATED: Final = 0.5
ABOUT_LOSS_TOLERANCE: Final = described(
    "largest share of lost frames in a passing trial", "share", (0.0, MOST_TOLERATED)
)
ABOUT_MOST_SECONDS: Final = described(
    "longest time of the measurement; it then ends with the results so far; 0 = unlimited",
    "s",
    _check_most,
    # The result says so where the time was used up.
    label="longest time",
    moves_figures=False,
)
ABOUT_FRAME_TIMEOUT: Final = described(
    "delay above which a frame counts as lost", "s", _check_timeout, label="frame time limit", also=("--frame-timeout",)
)


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """Settings that every procedure has (RFC 9693 sections 4.1 to 4.4, 6); `most_seconds` None = no end."""

    connections: int = field(
        metadata=described(
            "number of connections, N",
            "connections",
            partial(whole, lowest=1, highest=MAXIMUM_CONNECTIONS),
            group="traffic",
        )
    )
    placement: Placement = field(metadata=described("cores that run the device", group="place"))
    own_processes: bool = chosen(
        False, "whether the device works in processes of its own", label="processes of its own", group="device"
    )
    order: Order = chosen(
        "permutation",
        "order in which phase 1 enumerates the four tuples",
        label="order of four tuples",
        group="traffic",
    )
    repeat: Repeat = field(default=3, metadata=ABOUT_REPEAT)
    profile: Profile = chosen(
        "default",  # A profile's defaults are compared one by one.
        "set of defaults for the other settings",
        moves_figures=False,
    )
    loss_tolerance: float = field(default=0.0, metadata=ABOUT_LOSS_TOLERANCE)
    zero_checksum: Literal["damaged", "accept"] = chosen(
        "damaged", "UDP frames with a checksum of 0 over IPv6: damaged (RFC 8200), or received (accept)"
    )
    frame_timeout_seconds: float | None = field(default=None, metadata=ABOUT_FRAME_TIMEOUT)
    invalid_repeats: int = chosen(
        10, "repetitions of an INVALID trial before its load is abandoned", "trials", (0, 1000), section="Search"
    )
    settle_seconds: float = chosen(0.0, "idle time before each trial", "s", (0.0, 600.0))
    most_seconds: float | None = field(default=MOST_SECONDS, metadata=ABOUT_MOST_SECONDS)
    at_least: float | None = field(default=None, metadata=_threshold("Lowest value"))
    at_most: float | None = field(default=None, metadata=_threshold("Highest value"))

    #: Whether delays are recorded, which costs the tester speed.
    times_frames: ClassVar[bool] = False
    #: Whether the device keeps its own limits and time-outs, unless the user chose others.
    keeps_limits: ClassVar[bool] = False
    #: Whether connections are to time out, so that the device's time-outs are not made longer than need be.
    waits_for_expiry: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse every value that its field's check refuses; a metric adds what contradicts itself."""
        check_all(self)
        if self.most_seconds == 0:
            object.__setattr__(self, "most_seconds", None)

    @property
    def most_repetitions(self) -> int:
        """The most repetitions there will be."""
        return MOST_AUTO_REPETITIONS if isinstance(self.repeat, str) else self.repeat

    def needs(self) -> frozenset[Ability]:
        """Return the abilities that the measurer must have, beyond plain trials."""
        return frozenset()

    def facts_of(self, measurer: Measurer) -> Mapping[str, object]:  # noqa: ARG002 - for those that rest on some
        """Return what the device has, and the result rests on, beside these settings and its own, by parameter."""
        return {}

    @property
    def has_phase1(self) -> bool:
        """Whether connections are established at all."""
        return True

    @property
    def unused(self) -> dict[str, str]:
        """Settings that have no effect beside the others, by name, each with the reason; to choose one is refused."""
        return {}

    @property
    def always_draws(self) -> bool:
        """Whether some trials draw their four tuples, whatever the order of the traffic."""
        return False

    @property
    def phase1_frames(self) -> int:
        """Number of frames of phase 1."""
        return self.connections

    @property
    def held_at_least(self) -> int:
        """Number of connections for which the device's table must have room at every load."""
        return self.connections

    def held_at_most(self, top: float) -> int:  # noqa: ARG002 - for loads that grow with it
        """The same at the highest load; `top` is the tester's highest rate in frames/s of all directions."""
        return self.held_at_least

    def most_opened(self, top: float, sources: int, timeout: int | None) -> int:  # noqa: ARG002 - for loads that grow
        """Return the most connections that a trial opens, as far as that is known before.

        `top` is the tester's highest rate in frames/s of all directions, the time-out the device's in s; None = not
        known.
        """
        return self.phase1_frames if self.has_phase1 else 0

    def fewer_by(self, most: int) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002 - for those with ranges
        """Return the settings by which a trial opens fewer connections, each with the least of it, by words.

        `most` is how many are wanted at most.
        """
        return {"fewer connections": {"connections": 1}}

    def fewer_opened(self, most: int, top: float, sources: int, timeout: int | None) -> str:
        """Return what to choose so that `most_opened` is no more than `most`, in words.

        Each alternative is enough by itself; where none is, all are named together.
        """

        def is_enough(changed: Mapping[str, Any]) -> bool:
            try:
                fewer = dataclasses.replace(self, **changed)
                fewer.refuse_unlike(sources, timeout)
            except UsageError:
                return False
            return fewer.most_opened(top, sources, timeout) <= most

        ways = self.fewer_by(most)
        return ", or ".join(words for words, changed in ways.items() if is_enough(changed)) or enumerated([*ways])

    @property
    def phase2_seconds(self) -> float:
        """Nominal length of phase 2 as far as the settings decide it, in seconds; 0 = no trial has one."""
        return 0.0

    @property
    def sent_seconds(self) -> float:
        """Nominal length of phase 2 with the time until its rate is whole, in seconds."""
        return self.phase2_seconds

    @property
    def query(self) -> Query | None:
        """Content of the Initiator's DNS queries; None = its frames are no DNS queries."""
        return None

    @property
    def close(self) -> Close | None:
        """The segment with which the Initiator closes TCP connections; None = connections stay open."""
        return None

    @property
    def request_octets(self) -> int | None:
        """Octets of the request of each TCP connection, and of its response; None = there are no requests."""
        return None

    @property
    def half_open(self) -> bool:
        """Whether TCP connections stay half-open."""
        return False

    @property
    def lasting_state(self) -> TcpState:
        """The state of TCP connections whose time-out decides how long trials may take."""
        return "half-open" if self.half_open else "established"

    @property
    def far_side(self) -> str:
        """Responder to DNS queries: "tester", or the name of a real server."""
        return TESTER

    @property
    def fills_table(self) -> bool:
        """Whether the device's table is filled on purpose."""
        return False

    @property
    def floods(self) -> bool:
        """Whether the host after the last source address opens connections, too."""
        return False

    def refuse_unlike(self, sources: int, timeout: int | None) -> None:
        """Refuse what does not fit the source addresses, and the device's time-out in s; None = not known."""

    @classmethod
    def traffic_of(cls, chosen: Mapping[str, object]) -> Mapping[str, object]:  # noqa: ARG003 - for those that have some
        """Return the options of the traffic that follow from the user's choices."""
        return {}

    @property
    def of_file(self) -> str:
        """What these settings have read of a file that they name; empty = they name none."""
        return ""

    def as_run(self) -> Self:
        """The settings that trials are run with, where a metric decides one that was left open."""
        return self

    def notes(self) -> list[Note]:
        """Return facts about these settings that a reader must know, whatever was measured."""
        return []

    @property
    def lag_share(self) -> float:
        """Share of a phase's nominal length by which its sending may be behind at the end."""
        return LAG_SHARE

    def phase1_plan(self, rate: float) -> TrialPlan:
        """A trial that establishes the connections at this rate and leaves them in the device's table."""
        return TrialPlan(
            connections=self.phase1_frames,
            phase1_rate=rate,
            order=self.order,
            frame_timeout_seconds=self.frame_timeout_seconds,
            loss_tolerance=self.loss_tolerance,
            settle_seconds=self.settle_seconds,
            lag_share=self.lag_share,
            accept_zero_checksum=self.zero_checksum == "accept",
            close=self.close,
            request_octets=self.request_octets,
            half_open=self.half_open,
        )

    def parameters(self) -> dict[str, Any]:
        """Return the settings as plain values, as in a result; none that had no effect on it."""
        unused = self.unused
        values = {item.name: getattr(self, item.name) for item in dataclasses.fields(self) if item.name not in unused}
        # The device is reported with it, where it is so.
        del values["own_processes"]
        for name in THRESHOLDS.values():
            if values[name] is None:
                del values[name]
        return {name: str(value) if isinstance(value, SearchError) else value for name, value in values.items()}
