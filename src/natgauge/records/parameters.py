# SPDX-License-Identifier: Apache-2.0
"""Every parameter of a result, described once: its group, its unit, and whether it moves the figure."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, Self, get_args

from pydantic import BaseModel, ConfigDict, JsonValue, model_validator

from natgauge.figure_text import in_full
from natgauge.metrics import declared
from natgauge.metrics.catalogue import FORGETS, SUBSCRIBER_RATES
from natgauge.words import Group, Transport

#: The file with the descriptions of all inputs, made of those in the code.
INPUTS: Final = "inputs.toml"
GROUPS: Final[tuple[Group, ...]] = get_args(Group)
#: Transports as people write them.
TRANSPORT_NAMES: Final[Mapping[Transport, str]] = {"udp": "UDP", "icmp": "ICMP echo", "tcp": "TCP"}
#: What a result with these test frames is, where it is not a result of RFC 9693.
METHODS: Final[Mapping[str, str]] = {
    "icmp": "RFC 9693's method applied to ICMP echo, which the RFC does not cover",
    "tcp": "RFC 9693's method applied to TCP, which the RFC does not cover",
}


@dataclass(frozen=True, slots=True)
class Description:
    """One parameter.

    Attributes:
        name: name in records.
        label: name in tables and comparisons.
        unit: unit of the value; empty where there is none.
        group: group that contains the parameter.
        moves_figures: whether a different value can change the figure of any metric; of others, see
            `Metric.moved_by`.
    """

    name: str
    label: str
    unit: str = ""
    group: Group = "settings"
    moves_figures: bool = True

    @property
    def heading(self) -> str:
        """The label, and the unit where it does not say it itself."""
        has_unit = not self.unit or self.unit in self.label or (self.unit == "s" and self.label.endswith("seconds"))
        return self.label if has_unit else f"{self.label} ({self.unit})"

    def moves_figure_of(self, metric: str) -> bool:
        """Whether results of this metric are comparable only with equal values of this parameter."""
        return self.moves_figures or self.name in declared(metric).moved_by


def _shown_only(name: str, label: str, group: Group, unit: str = "") -> Description:
    """A parameter that is stored and shown, and decides nothing."""
    return Description(name, label, unit, group, moves_figures=False)


#: The parameter with the UDP time-out of trials for which natgauge raised the one that the device began with.
RAISED_TIMEOUT: Final = "raised_udp_timeout"
#: The parameter with the device's own UDP time-out of connections with frames both ways, which natgauge raised for its
#: trials.
OWN_TIMEOUT: Final = "own_udp_timeout"
#: The parameter with the values that settings of the whole machine had before the device was set; without those that
#: the user chose.
OF_HOST: Final = "of_host"

#: Parameters that the user does not choose: values derived from inputs, found on the host, or measured.
_FACTS: Final = (
    _shown_only("connection_rate_timeout_seconds", "frame time limit of the connection rate", "settings", "s"),
    # Goals and the length of trials, which are compared, in words.
    _shown_only("goal_criteria", "criteria of the goals", "settings"),
    # The content of the profile, whatever its file is called.
    Description("subscriber_profile", "profile of a subscriber", group="traffic"),
    # The numbers of the profile.
    _shown_only(SUBSCRIBER_RATES, "frames and new connections of a subscriber", "traffic", "per second"),
    Description("initiator_family", "Initiator's family", group="traffic"),
    Description("source_address_count", "source addresses", group="traffic"),
    Description("source_port_count", "source ports", group="traffic"),
    Description("destination_address_count", "destination addresses", group="traffic"),
    Description("destination_port_count", "destination ports", group="traffic"),
    # Follow from size, side and what the device translates to.
    _shown_only("frame_octets", "frame sizes of both sides", "traffic", "octets"),
    _shown_only("mean_frame_octets", "mean frame sizes of both directions on both sides", "traffic", "octets"),
    _shown_only("least_frame_octets", "least frame of a mix from the Initiator on both sides", "traffic", "octets"),
    _shown_only("segment_octets", "octets of a TCP segment without data", "traffic", "octets"),
    _shown_only("seeds", "seed of each repetition", "traffic"),
    # The options that were chosen, in the words of the command line.
    _shown_only("command", "command that measures this again", "place"),
    _shown_only("lab_stays", "one lab for all repetitions", "place"),
    # They make a figure surer, not larger.
    _shown_only("labs", "labs of all repetitions", "place"),
    _shown_only("begun", "beginning of each repetition", "place", "s since 1970"),
    Description("ports", "tester ports", group="place"),
    Description("port_drivers", "drivers of the ports", group="place"),
    Description("port_firmware", "firmware of the ports", group="place"),
    Description("media", "media of the links", group="place"),
    Description("link_speeds", "speeds of the links", "Mbit/s", "place"),
    Description("flow_control", "flow control of the ports", group="place"),
    # Follows from the speeds of the links and the frame sizes.
    _shown_only("theoretical_maximum", "theoretical maximum of the link", "place", "frames/s"),
    Description("device_kernel", "kernel of the device's machine", group="place"),
    Description("device_cpu", "CPU of the device's machine", group="place"),
    Description("device_governor", "governor of the device's machine", group="place"),
    Description("device_queues", "queues of the device's interfaces", group="place"),
    Description("device_flow_hash", "flow hash of the device's interfaces (RSS)", group="place"),
    # Sentences for the result's notes, as `port_remarks`.
    _shown_only("device_remarks", "remarks on the device's machine", "place"),
    _shown_only("boot_took_seconds", "time of the device's restart", "place", "s"),
    Description("emulated", "emulated device", group="place"),
    # The list of cores is reported; only their number moves a figure, because the idlest core changes from run to run.
    Description("sender_cores", "sender cores", group="place"),
    Description("device_cores", "device cores", group="place"),
    Description("cores_of_devices", "division of the cores among the devices", group="place"),
    _shown_only("cpus_of_devices", "CPUs of each device", "place"),
    # Most metrics find a rate, a time or a cost below the tester's highest rate: where it lies shows in `limited_by`.
    _shown_only("tester_highest_phase1_rate", "tester's highest rate of phase 1", "place", "frames/s"),
    _shown_only("tester_highest_phase2_rate", "tester's highest rate of phase 2", "place", "frames/s"),
    # Where the highest rates of the ports themselves are not known: the rates of a veth cable.
    _shown_only("search_top_phase1_rate", "highest rate tried in phase 1", "place", "frames/s"),
    _shown_only("search_top_phase2_rate", "highest rate tried in phase 2", "place", "frames/s"),
    # Measured, not set: what the tester itself took of the device's cores.
    # The CPU's model is compared; a guest sees the caches that its hypervisor reports.
    _shown_only("device_caches", "data caches of the device's cores", "place", "octets"),
    _shown_only("receiver_ns", "tester's receiver on the device's cores", "place", "ns a frame"),
    # The server's name is among the settings.
    Description("server_version", "server's version", group="place"),
    _shown_only("server_alone", "the server alone, without a device", "place", "queries/s"),
    # Each on cores of its own, but memory and the last cache are shared.
    Description("beside", "other workers on the machine", group="place"),
    # Sentences of the wire lab for the result's notes; the frames that a port refuses are counted in each trial.
    _shown_only("port_remarks", "remarks on the ports", "place"),
    Description("port_queues", "queues of the ports", group="place"),
    Description("port_coalescing", "coalescing of the ports", group="place"),
    Description("port_flow_hash", "flow hash of the ports (RSS)", group="place"),
    Description("port_irq_affinity", "cores of the ports' interrupts", group="place"),
    Description("natgauge", "natgauge version", group="place"),
    Description("kernel", "kernel", group="place"),
    Description("cpu", "CPU", group="place"),
    Description("microcode", "microcode", group="place"),
    Description("cpus_online", "cores online", group="place"),
    Description("kernel_parameters", "kernel parameters that move figures", group="place"),
    Description("hypervisor", "hypervisor", group="place"),
    Description("cpu_quota", "CPU quota in cores", group="place"),
    Description("governor", "governor", group="place"),
    Description("smt", "SMT", group="place"),
    Description("mitigations", "mitigations", group="place"),
    Description("clock_source", "clock source", group="place"),
    # A trial with the time-out of before would have ended as one that outlasts it.
    _shown_only(RAISED_TIMEOUT, "UDP timeout, raised for long trials", "device", "s"),
    # It decides nothing in trials, which outlast it no more.
    _shown_only(OWN_TIMEOUT, "UDP timeout of the device before it was raised", "device", "s"),
    # Of a load whose connections leave: it decides how many of them fill the table.
    _shown_only(FORGETS, "time until a connection that left is forgotten", "device", "s"),
    # They decide where the device's own need was less: the setting itself is compared.
    _shown_only(OF_HOST, "settings of the device that the host had before", "device"),
    Description("gateway", "gateway", group="device"),
    _shown_only("title", "title of the gateway", "device"),
    Description("chain", "devices of the chain", group="device"),
    Description("kind", "kind of device", group="device"),
    Description("recipe_digest", "recipe digest", group="device"),
    Description("responder_family", "Responder's family", group="device"),
    # Follow from the recipe and the PSID.
    _shown_only("port_blocks", "blocks of outside ports", "device"),
    _shown_only("shared_addresses", "outside addresses of the port sets", "device", "addresses"),
    Description("version", "device version", group="device"),
    Description("cores", "cores the device is set to", group="device"),
)  # fmt: skip


@cache
def descriptions() -> Mapping[str, Description]:
    """Every parameter by name: the facts, and the inputs, of whose descriptions `INPUTS` has a copy."""
    copied = tomllib.loads(resources.files(__package__).joinpath(INPUTS).read_text(encoding="utf-8"))
    inputs = {name: Description(name, **{"label": spoken(name), **own}) for name, own in copied.items()}
    return {**inputs, **{each.name: each for each in _FACTS}}


def spoken(name: str) -> str:
    """Return the label of a parameter that has no other one."""
    return name.replace("_", " ")


def describe(name: str) -> Description:
    """The description of a parameter; a parameter without one moves the figure."""
    return descriptions().get(name) or Description(name, spoken(name))


def is_fact(name: str) -> bool:
    """Whether the user does not choose this parameter: it is derived, found on the host, or measured."""
    return any(fact.name == name for fact in _FACTS)


#: The key of a value that was not the same for all repetitions.
SEVERAL: Final = "several"


def several(values: Sequence[JsonValue]) -> JsonValue:
    """The value of a parameter that repetitions do not share: all of theirs, each once, under "several"."""
    different: list[JsonValue] = []
    for value in values:
        if value not in different:
            different.append(value)
    return {SEVERAL: different}


def differing(value: JsonValue) -> Sequence[JsonValue]:
    """The values that repetitions had where they did not share one; none where they did."""
    values = value.get(SEVERAL) if isinstance(value, dict) and set(value) == {SEVERAL} else None
    return values if isinstance(values, list) else ()


def joined(every: Sequence[Parameters], metric: str) -> Parameters:
    """Parameters of a result of a metric from those of its repetitions, at least one.

    A parameter that moves the figure and differs is stored as `several`. Other parameters have the first repetition's
    value.
    """
    first, flat = every[0], [parameters.flat() for parameters in every]
    groups: dict[str, dict[str, JsonValue]] = {group: dict(getattr(first, group)) for group in GROUPS}
    for name, group in {name: group for parameters in every for group, name, _ in parameters.items()}.items():
        values = [parameters.get(name) for parameters in flat]
        if any(value != values[0] for value in values) and describe(name).moves_figure_of(metric):
            groups[group][name] = several(values)
    return Parameters(**groups)


def separated(value: JsonValue) -> str:
    """A parameter's value in sentences and tables, as `shown`: whole numbers have separators."""
    if values := differing(value):
        return f"{SEVERAL} {' '.join(map(separated, values))}"
    return in_full(value) if isinstance(value, int) and not isinstance(value, bool) else shown(value)


class Parameters(BaseModel):
    """All parameters of a measurement by group; each name is in exactly one group.

    Attributes:
        settings: settings of the procedure.
        traffic: frames and four tuples.
        place: lab, cores, the tester and its machine.
        device: properties of the measured device.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    settings: dict[str, JsonValue] = {}
    traffic: dict[str, JsonValue] = {}
    place: dict[str, JsonValue] = {}
    device: dict[str, JsonValue] = {}

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [name for _, name, _ in self.items()]
        twice = [] if len(set(names)) == len(names) else [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is in two groups")
        return self

    @classmethod
    def grouped(cls, **groups: Mapping[str, JsonValue]) -> Self:
        """Each described value in its own group, others in the group they are given in."""
        grouped: dict[str, dict[str, JsonValue]] = {group: {} for group in GROUPS}
        for stored_group, values in groups.items():
            for name, value in values.items():
                known = descriptions().get(name)
                grouped[stored_group if known is None else known.group][name] = value
        return cls(**grouped)

    def with_settings(self, run: Mapping[str, JsonValue]) -> Self:
        """Return these parameters with the settings that a procedure ran with, in place of those of the same name."""
        groups = {group: getattr(self, group) for group in GROUPS}
        return self.grouped(**{**groups, "settings": {**self.settings, **run}})

    def items(self) -> Iterator[tuple[Group, str, JsonValue]]:
        """Group, name and value of every parameter, group by group."""
        for group in GROUPS:
            for name, value in getattr(self, group).items():
                yield group, name, value

    def get(self, name: str, default: JsonValue = None) -> JsonValue:
        """The value of this name, whatever its group."""
        return next((values[name] for group in GROUPS if name in (values := getattr(self, group))), default)

    def flat(self) -> dict[str, JsonValue]:
        """All values by name."""
        return {name: value for _, name, value in self.items()}


def shown(value: JsonValue) -> str:
    """A parameter's value as people read it."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return " ".join(map(shown, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(inner)}" for name, inner in value.items()) or "none"
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)
