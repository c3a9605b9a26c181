# SPDX-License-Identifier: Apache-2.0
"""Recipes: properties of a gateway and the commands that run it, read from TOML (docs/recipes.md)."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator

from natgauge.embedding import PREFIX_LENGTHS
from natgauge.errors import UsageError, did_you_mean, listed_by, shown
from natgauge.gateways.logs import LoggingWay
from natgauge.gateways.port_sets import PortSets
from natgauge.gateways.recipe_model import (
    BY_RESTART,
    BY_VERB,
    Emptying,
    GatewayLimits,
    Knobs,
    Module,
    Process,
    RecipeTable,
    RequiredPrograms,
    System,
    Verbs,
)
from natgauge.gateways.toml_layers import (
    BUILT_IN,
    contents,
    digests,
    file_of,
    files_of,
    frozen,
    layered,
    merge,
    pieces_of,
)
from natgauge.host.programs import named_folders
from natgauge.inputs.input import wrong
from natgauge.labs.common.addresses import INNER_LINKS
from natgauge.toml_text import rule_in_words
from natgauge.words import Family, Transport

#: Folders with recipes of the user's own, separated like PATH.
VARIABLE: Final = "NATGAUGE_GATEWAYS"

_PARTS: Final = "parts"
#: As many as a lab can place.
MOST_DEVICES: Final = INNER_LINKS + 1
#: What a chain's recipe has of its devices.
_OF_DEVICES: Final = frozenset(
    {"extends", "environment", "needs", "modules", "limits", "process", "verbs", "emptyings", "logging", "knobs"}
)
#: Neither the location of the files nor what their authors declare changes what a recipe does.
_ORIGINS: Final[Any] = {
    "origin": True, "declares": True, "rules_from": True,
    "chain": {"__all__": {"recipe": {"origin", "declares", "rules_from"}}},
}  # fmt: skip

#: Variable of the snippets of a gateway that can have several outside addresses.
POOL: Final = "NG_POOL4"

#: A recipe that is a folder, with what it needs next to it, has its file of this name there.
FILE_IN_FOLDER: Final = "gateway.toml"

Kind = Literal[
    "routing", "nat44", "nat66", "nptv6", "nat64", "siit", "softwire", "464xlat", "ds-lite", "lw4o6", "map-e", "map-t",
    "map-t-br", "map-e-br", "lwaftr", "aftr", "map-t-ce", "map-e-ce", "lwb4", "b4", "dns64", "dns",
]  # fmt: skip

_FAMILIES: Final[Mapping[Kind, tuple[tuple[Family, Family], ...]]] = {
    "routing": (("ipv4", "ipv4"), ("ipv6", "ipv6")),
    "nat44": (("ipv4", "ipv4"),),
    "nat66": (("ipv6", "ipv6"),),
    "nptv6": (("ipv6", "ipv6"),),
    "nat64": (("ipv6", "ipv4"),),
    "siit": (("ipv6", "ipv4"), ("ipv4", "ipv6")),
    "softwire": (("ipv4", "ipv6"), ("ipv6", "ipv4")),
    **dict.fromkeys(("464xlat", "ds-lite", "lw4o6", "map-e", "map-t"), (("ipv4", "ipv4"),)),
    **dict.fromkeys(("map-t-br", "map-e-br", "lwaftr", "aftr"), (("ipv6", "ipv4"),)),
    **dict.fromkeys(("map-t-ce", "map-e-ce", "lwb4", "b4"), (("ipv4", "ipv6"),)),
    "dns64": (("ipv6", "ipv6"),),
    "dns": (("ipv4", "ipv4"), ("ipv6", "ipv6")),
}


#: Kinds that are one half of a chain; the tester emulates the other half (RFC 8219 section 4.2). Relays are the
#: provider's half, customer edges the other one.
_RELAYS: Final[tuple[Kind, ...]] = ("map-t-br", "map-e-br", "lwaftr", "aftr")
_EDGES: Final[tuple[Kind, ...]] = ("map-t-ce", "map-e-ce", "lwb4", "b4")
#: Kinds whose subscribers each have an inside address with all its ports, so that they share none (RFC 6333).
_UNSHARED: Final[tuple[Kind, ...]] = ("aftr", "b4")
#: Halves between which IPv4 is tunnelled over IPv6.
_TUNNELS: Final[tuple[Kind, ...]] = ("map-e-br", "lwaftr", "aftr", "map-e-ce", "lwb4", "b4")
#: Kinds whose mapping of the Initiator's addresses is known in advance, and that keep the port.
_MAPPING: Final[tuple[Kind, ...]] = ("nptv6", "siit", "map-t-br", "map-e-br", "lwaftr")
#: Kinds that answer DNS queries themselves, and forward nothing.
_ANSWERING: Final[tuple[Kind, ...]] = ("dns64", "dns")
#: Kinds with IPv6 addresses that embed IPv4 ones, which an emulated relay has, too (RFC 6052).
_EMBEDDING: Final[tuple[Kind, ...]] = ("nat64", "siit", "464xlat", "map-t", "map-t-br", "dns64", *_EDGES)
#: Kinds with subscribers: each has an address and a set of its ports.
_SUBSCRIBERS: Final[tuple[Kind, ...]] = ("lw4o6", "map-e", "map-t", *_RELAYS, *_EDGES)


#: Names of recipes, and the most characters of names and titles.
NAME: Final = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
LONGEST_NAME: Final = 64
LONGEST_TITLE: Final = 120


def _requirement(name: str) -> str:
    if not re.fullmatch(r"RFC[0-9]{3,5}-.+", name):
        raise ValueError('a requirement has a name like "RFC4787-REQ-9"')
    return name


class Recipe(RecipeTable):
    """One gateway.

    Attributes:
        source: what happens to the Initiator's source address and port; "mapped": the address follows from the
            Initiator's address, and the port stays (RFC 7757, RFC 6296, RFC 7599).
        chain: its devices from the Initiator to the Responder, where there are several; verbs, knobs and limits are
            then those of the device that holds the state.
        port_sets: addresses and ports of its subscribers; each of the Initiator's addresses is a subscriber, or each
            customer edge that the tester emulates.
        declares: requirements on NATs, such as "RFC4787-REQ-4", that its author says it meets (True) or fails (False).
        rules_from: software, with its version, whose rule set the gateway has, where that software does not run; None =
            the rules are the recipe's own.
    """

    name: Annotated[str, Field(pattern=NAME, max_length=LONGEST_NAME)]
    title: Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE)]
    kind: Kind
    initiator_family: Family
    responder_family: Family
    stateful: bool
    source: Literal["translated", "unchanged", "mapped"]
    transports: Annotated[tuple[Transport, ...], Field(min_length=1)] = ("udp",)
    system: System = "Linux"
    extends: tuple[str, ...] = ()
    environment: dict[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], str] = Field(default_factory=dict)
    needs: tuple[RequiredPrograms, ...] = ()
    modules: tuple[Module, ...] = ()
    limits: GatewayLimits = GatewayLimits()
    process: tuple[Process, ...] = ()
    verbs: Verbs
    emptyings: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")], Emptying] = Field(default_factory=dict)
    logging: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")], LoggingWay] = Field(default_factory=dict)
    knobs: Knobs = Knobs()
    chain: tuple[ChainDevice, ...] = ()
    port_sets: PortSets | None = None
    declares: dict[Annotated[str, AfterValidator(_requirement)], bool] = Field(default_factory=dict)
    rules_from: Annotated[str, Field(min_length=1, max_length=120)] | None = None
    origin: Path

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        families = (self.initiator_family, self.responder_family)
        if families not in _FAMILIES[self.kind]:
            known = " or ".join(f"from {first} to {last}" for first, last in _FAMILIES[self.kind])
            raise ValueError(f"kind {self.kind} does not go from {families[0]} to {families[1]}, but {known}")
        if (self.source == "mapped") != (self.kind in _MAPPING):
            remedy = "choose another source" if self.source == "mapped" else 'write source = "mapped"'
            kinds = " or ".join(_MAPPING)
            raise ValueError(
                f'source "mapped" and kind {kinds} come together, or not at all; {remedy}, or another kind'
            )
        if (self.port_sets is not None) != (self.kind in _SUBSCRIBERS):
            remedy = "add [port_sets]" if self.port_sets is None else "leave [port_sets] out"
            kinds = " or ".join(_SUBSCRIBERS)
            raise ValueError(
                f"port_sets and kind {kinds} come together, or not at all; {remedy}, or choose another kind"
            )
        in_folder, stem = self.origin.name == FILE_IN_FOLDER, self.origin.stem
        if self.name not in (stem, self.origin.absolute().parent.name if in_folder else None):
            or_folder = ", nor of its folder" if in_folder else ""
            remedy = f'write name = "{stem}", or rename it' if re.fullmatch(NAME, stem) else "rename the file"
            raise ValueError(f'name "{self.name}" is not the name of the file{or_folder}; {remedy}')
        if own := next((name for name in self.environment if name.startswith("NG_")), None):
            raise ValueError(f"environment: {own}: names that begin with NG_ are natgauge's; choose another")
        if self.chain:
            self._chain_consistent()
        if self.stateful and not (self.verbs.empty and self.verbs.count):
            raise ValueError("a stateful gateway needs the verbs empty and count; add them, or write stateful = false")
        of_state = self.verbs.empty or self.verbs.count or self.emptyings or self.logging or self.limits.mapping
        if not self.stateful and of_state:
            raise ValueError(
                "a gateway without state has neither the verbs empty and count, nor emptyings, logging or a mapping; "
                "leave them out, or write stateful = true"
            )
        if taken := sorted({BY_VERB, BY_RESTART} & self.emptyings.keys()):
            raise ValueError(f"emptyings: {taken[0]} is a way of every gateway; choose another name")
        return self

    @model_validator(mode="after")
    def _ports_fit(self) -> Self:
        """Refuse a rule without MAP addresses, and blocks of ports where no inside host can have one."""
        if self.port_sets is not None and self.half:
            self.port_sets.refuse_long_rule()
        unlike = {
            "stateful = false": not self.stateful,
            f'source = "{self.source}"': self.source != "translated",
            f'responder_family = "{self.responder_family}"': self.responder_family != "ipv4",
            f"kind {self.kind}, whose subscribers have port_sets": self.port_sets is not None,
        }
        if self.limits.port_blocks is not None and any(unlike.values()):
            found = next(text for text, is_so in unlike.items() if is_so)
            raise ValueError(
                f"limits.port_blocks: {found}; only hosts without port_sets that a stateful gateway translates to IPv4 "
                "have blocks; leave them out"
            )
        return self

    @model_validator(mode="after")
    def _processes_differ(self) -> Self:
        """Refuse processes of one name, the second of which would take the first one's files, and records in these."""
        beside_them: dict[str, tuple[Process, ...]] = {"process": ()}
        beside_them |= {f"logging.{name}.process": way.process for name, way in self.logging.items()}
        for where, others in beside_them.items():
            names = [process.name for process in (*self.process, *others)]
            if twice := next((name for number, name in enumerate(names) if name in names[:number]), None):
                beside = " (a way's processes run beside those of the recipe)" if others else ""
                raise ValueError(f'{where}: name "{twice}" occurs twice{beside}; give each process a name of its own')
        for name, way in self.logging.items():
            for process in (*self.process, *way.process):
                if way.records in process.files:
                    raise ValueError(
                        f'logging.{name}.records: "{way.records}" is a file of the process {process.name}, whose '
                        "output is kept only in part; have the records written to another file"
                    )
        return self

    def _chain_consistent(self) -> None:
        before, who = self.initiator_family, "the Initiator"
        for part in self.chain:
            if part.recipe.initiator_family != before:
                takes = f"{part.device} takes {part.recipe.initiator_family}, but {who} sends {before}"
                raise ValueError(f"chain: {takes}; put a device between them that translates, or change their order")
            before, who = part.recipe.responder_family, part.device
        if before != self.responder_family:
            takes = f"{who} sends {before}, but the Responder takes {self.responder_family}"
            raise ValueError(f"chain: {takes}; correct responder_family, or the last device")
        names = [part.device for part in self.chain]
        if len(set(names)) < len(names):
            raise ValueError(f"chain: devices {', '.join(names)}: a name occurs twice; name each device differently")
        holding = [part.device for part in self.chain if part.recipe.stateful]
        if len(holding) != int(self.stateful):
            keeps = f"{' and '.join(holding) or 'no device'} {'keep' if len(holding) > 1 else 'keeps'} connections"
            one = f"write stateful = {str(bool(holding)).lower()}"
            remedy = one if len(holding) < 2 else "only one device of a chain may: choose other recipes for the others"
            raise ValueError(f"stateful is {str(self.stateful).lower()}, but {keeps}; {remedy}")

    def carrying(self, transport: Transport) -> Recipe:
        """Return the same gateway with its time-outs for these test frames.

        Raises:
            UsageError: it does not translate them.
        """
        if transport not in self.transports:
            remedy = "leave it out" if "udp" in self.transports else f"choose {self.transports[0]}"
            known = " and ".join(self.transports)
            raise wrong("transport", f"{transport}, but the recipe of {self.name} is for {known} only; {remedy}")
        if transport == "udp":
            return self
        chain = tuple(part.model_copy(update={"recipe": part.recipe.carrying(transport)}) for part in self.chain)
        return self.model_copy(update={"knobs": self.knobs.of(transport), "chain": chain})

    @property
    def usual_transport(self) -> Transport:
        """Transport of test frames for which none is chosen."""
        return "udp" if "udp" in self.transports else self.transports[0]

    @property
    def destination_ports(self) -> Mapping[Transport, str]:
        """The only ports outside to which one of its devices lets connections go, by transport; see `GatewayLimits`."""
        every = (played.limits.destination_ports for played in self.of_devices(1))
        return {name: text for ports in every for name, text in ports.items()}

    def ports_of(self, transport: Transport) -> tuple[int, ...]:
        """The only ports outside to which its rules let connections of a transport go; empty = any."""
        parts = (part.partition("-") for part in self.destination_ports.get(transport, "").split(",") if part)
        return tuple(dict.fromkeys(each for low, _, high in parts for each in range(int(low), int(high or low) + 1)))

    @property
    def names_traffic(self) -> bool:
        """Whether it says which frames its rules accept, so that the usual ones would be dropped."""
        return bool(self.destination_ports) or "udp" not in self.transports

    def usual_ports(self, transport: object) -> str | None:
        """Ports outside to which test frames go where none are chosen: the first of those; None = any."""
        return next(
            (ports.partition(",")[0] for name, ports in self.destination_ports.items() if name == transport), None
        )

    @property
    def half(self) -> bool:
        """Whether it is one half of a chain, whose other half the tester emulates."""
        return self.relay_alone or self.edges_alone

    def with_variables(self, variables: Mapping[str, str]) -> Self:
        """Return a copy whose snippets have these variables in addition."""
        return self.model_copy(update={"environment": {**self.environment, **variables}}) if variables else self

    @property
    def shares_addresses(self) -> bool:
        """Whether its subscribers share outside addresses, each with a set of their ports."""
        return self.port_sets is not None and self.kind not in _UNSHARED

    @property
    def answers_queries(self) -> bool:
        """Whether it answers DNS queries itself, and forwards nothing."""
        return self.kind in _ANSWERING

    @property
    def asks_server(self) -> bool:
        """Whether it asks an authoritative DNS server, whose names have no AAAA records (RFC 6147)."""
        return self.kind == "dns64"

    @property
    def relay_alone(self) -> bool:
        """Whether it is a BR, lwAFTR or AFTR alone: the Initiator emulates its customer edges."""
        return self.kind in _RELAYS

    @property
    def edges_alone(self) -> bool:
        """Whether it is customer edges alone: the Responder emulates their BR, lwAFTR or AFTR."""
        return self.kind in _EDGES

    @property
    def tunnelled(self) -> bool:
        """Whether it is a half, and IPv4 is tunnelled over IPv6 to or from the other half (RFC 2473)."""
        return self.kind in _TUNNELS

    @property
    def own_processes(self) -> bool:
        """Whether the gateway works in processes of its own, as far as its recipe says so.

        It has a process that handles frames, or a knob that pins one. Others are found on the machine
        (`labs/common/device.py`). What writes a log handles none, and is no process of the recipe.
        """
        return any(
            any(process.handles_frames for process in played.process)
            or (played.knobs.cores is not None and played.knobs.cores.scope == "device")
            for played in self.of_devices(1)
        )

    @property
    def embeds(self) -> bool:
        """Whether a NAT64 prefix is in use on one of its sides, or between its devices."""
        return any(played.kind in _EMBEDDING for played in (self, *self.of_devices(1)))

    @property
    def nat64_prefix(self) -> str | None:
        """The only NAT64 prefix that its devices know; None = they take any."""
        return next((known for played in self.of_devices(1) if (known := played.limits.nat64_prefix)), None)

    @property
    def nat64_lengths(self) -> tuple[int, ...]:
        """The lengths of NAT64 prefixes that all its devices take."""
        taken = [set(played.limits.nat64_lengths or PREFIX_LENGTHS) for played in self.of_devices(1)]
        return tuple(sorted(set(PREFIX_LENGTHS).intersection(*taken)))

    @property
    def pool4(self) -> str | None:
        """The outside addresses that its last device names itself; None = it has those of the lab."""
        return self.of_devices(1)[-1].limits.pool4

    @property
    def takes_pool(self) -> bool:
        """Whether it translates to as many outside IPv4 addresses as the lab gives its last device."""
        translates = self.source == "translated" and self.responder_family == "ipv4"
        return translates and POOL in self.of_devices(1)[-1].model_dump_json(exclude=_ORIGINS)

    @property
    def length(self) -> int:
        """Number of its devices: more than one where it is a chain."""
        return len(self.chain) or 1

    @property
    def holder(self) -> int:
        """Index, from 0, of the device of the chain that holds the state."""
        return next((index for index, part in enumerate(self.chain) if part.recipe.stateful), 0)

    def of_devices(self, count: int) -> tuple[Recipe, ...]:
        """The recipe of each of `count` devices."""
        return tuple(part.recipe for part in self.chain) or (self,) * count


class ChainDevice(RecipeTable):
    """One device of a chain."""

    device: Annotated[str, Field(pattern=r"^[a-z0-9]{1,16}$")]
    recipe: Recipe


class _Entry(RecipeTable):
    """One device of a chain as written in the file: the name of a recipe, and values that replace the recipe's."""

    device: str
    recipe: str
    environment: dict[str, str] = Field(default_factory=dict)
    verbs: dict[str, str] = Field(default_factory=dict)


def digest(recipe: Recipe) -> str:
    """Return the SHA-256 of the recipe with its fragments and the files that it names, wherever they are; in hex."""
    files = "".join(f"\n{name} {each}" for name, each in _files(recipe).items())
    return hashlib.sha256((recipe.model_dump_json(exclude=_ORIGINS) + files).encode()).hexdigest()


def as_played(recipe: Recipe) -> dict[str, Any]:
    """Return everything that decides what the recipe does, as plain values; of files that it names their SHA-256."""
    files = _files(recipe)
    return {**recipe.model_dump(mode="json", exclude=_ORIGINS), **({"files": files} if files else {})}


def _files(recipe: Recipe) -> dict[str, str]:
    """SHA-256 of the files that the recipes of all devices name, by name; one file for devices of the same folder."""
    found: dict[str, str] = {}
    for each in recipe.of_devices(1):
        found |= digests(each.model_dump_json(exclude=_ORIGINS), each.origin.parent)
    return found


def rules_of(recipe: Recipe) -> str:
    """Return the text of what a recipe sets up: its snippets, and the files that they name."""
    texts: list[str] = []
    for each in recipe.of_devices(1):
        own = "\n".join(each.verbs.pieces("start"))
        files = contents(own, each.origin.parent).values()
        texts += [own, *each.environment.values(), *(octets.decode(errors="replace") for octets in files)]
    return "\n".join(texts)


def available() -> dict[str, tuple[Path, ...]]:
    """Return every recipe that can be named: in ./gateways, in the folders of $NATGAUGE_GATEWAYS, and natgauge's own.

    Returns:
        Files by name, sorted by name. `load` refuses a name with several files.

    Raises:
        UsageError: $NATGAUGE_GATEWAYS names something else than folders.
    """
    by_name: dict[str, list[Path]] = {}
    for folder in _folders():
        for name, path in files_of(folder).items():
            by_name.setdefault(name, []).append(path)
    return {name: tuple(paths) for name, paths in sorted(by_name.items())}


def load(name_or_path: str | Path) -> Recipe:
    """Read one recipe.

    Args:
        name_or_path: a name of `available()`, or a file or its folder: anything with a "/" in it or ".toml" at its end.

    Raises:
        UsageError: there is none of this name, or several, or it breaks a rule; the message has file, field, value and
            rule.
    """
    text = str(name_or_path)
    if "/" in text or text.endswith(".toml"):
        return _read(Path(text) / FILE_IN_FOLDER if _is_folder(text) else Path(text))
    files = [file for folder in _folders() if (file := file_of(text, folder)) is not None]
    if not files:
        folder = f"the folder is ./{text}; " if _is_folder(text) else ""
        raise UsageError(f'gateway "{text}": unknown; {folder}{listed_by("natgauge gateways", text, available())}')
    if len(files) > 1:
        # Snippets run as root, so the current folder must not decide which ones run.
        named = " and ".join(map(str, files))
        raise UsageError(f'gateway "{text}": {named} have the same name; give the path of one of them')
    return _read(files[0])


def _is_folder(text: str) -> bool:
    """Whether a path is a folder's; UsageError where the system takes it for none."""
    try:
        return Path(text).is_dir()
    except OSError as error:
        raise UsageError(f"gateway {shown(text)}: {error.strerror}; name another one", at="gateway") from error


def is_own(file: Path) -> bool:
    """Whether this recipe came with natgauge."""
    return file.parent == BUILT_IN


def _folders() -> Iterable[Path]:
    """Each once, also where it is named twice."""
    folders = (Path("gateways"), *named_folders(VARIABLE), BUILT_IN)
    return {os.path.realpath(folder): folder for folder in folders}.values()


def _read(path: Path) -> Recipe:
    table = layered(path)
    return _validated(_chained(table, path) if "chain" in table else table, path)


def _validated(table: Mapping[str, Any], path: Path, where: str = "") -> Recipe:
    """A recipe of this file; `where` = the place in another file that is to blame instead."""
    try:
        return Recipe.model_validate({**frozen(table), "origin": path})
    except ValidationError as error:
        raise UsageError(broken_rule(Path(where or path), error)) from None


def _chained(table: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Fill a chain's own tables from the device that holds the state; each device has a recipe of its own."""
    if own := sorted(_OF_DEVICES & table.keys()):
        raise UsageError(f"{path}: {own[0]}: a chain has this of its devices; leave it out, or give it in [[chain]]")
    if not isinstance(table["chain"], list):
        raise UsageError(f"{path}: chain: {shown(table['chain'])}: must be a list of devices; write each as [[chain]]")
    if len(table["chain"]) > MOST_DEVICES:
        raise UsageError(f"{path}: chain: has {len(table['chain'])} devices; the most is {MOST_DEVICES}")
    parts = [_part(number, entry, path) for number, entry in enumerate(table["chain"])]
    if len(parts) < 2:
        raise UsageError(f"{path}: chain: has {len(parts)} device; name at least two, from the Initiator on")
    played = [recipe for _, recipe in parts]
    holder = next((recipe for recipe in played if recipe.stateful), played[0])
    # Behind a device that gives other source addresses, records name these, and the tester knows its own.
    names_hosts = all(recipe.source == "unchanged" for recipe in played[: played.index(holder)])
    needs = dict.fromkeys(need for recipe in played for need in recipe.needs)
    of_holder = {
        "limits": holder.limits,
        "verbs": holder.verbs,
        "emptyings": holder.emptyings,
        "logging": holder.logging if names_hosts else {},
        "knobs": holder.knobs,
    }
    # Their names are checked with all else, in `_validated`.
    chain = tuple({"device": device, "recipe": recipe} for device, recipe in parts)
    return {**table, **of_holder, "needs": tuple(needs), "chain": chain}


def _part(number: int, entry: Any, path: Path) -> tuple[str, Recipe]:
    """The name of one device of a chain, as it is written, and its recipe."""
    where = f"{path}: chain.{number}"
    try:
        settings = _Entry.model_validate(frozen(entry))
    except ValidationError as error:
        raise UsageError(broken_rule(Path(where), error)) from None
    file = _part_file(settings.recipe, path)
    table = layered(file)
    if "chain" in table:
        raise UsageError(f"{where}: recipe: {settings.recipe!r} is a chain itself; name its devices one by one")
    alone = _validated(table, file)
    more = {name: dict(own) for name in ("environment", "verbs") if (own := getattr(settings, name))}
    # The part is right without what the chain adds, so what is wrong now stands in the chain's file.
    return settings.device, _validated(merge(table, pieces_of(more)), file, where) if more else alone


def _part_file(name: str, path: Path) -> Path:
    """The file in the chain's folder, else one of natgauge's own parts, else any gateway of that name."""
    if "/" in name:
        return path.parent / name
    folders = BUILT_IN / _PARTS, path.parent / _PARTS
    if (file := file_of(name, *folders)) is not None:
        return file
    gateways = available()
    files = gateways.get(name, ())
    if len(files) == 1:
        return files[0]
    known = files_of(*folders).keys() | gateways.keys()
    raise UsageError(f'{path}: chain: recipe "{name}": unknown; {did_you_mean(name, known)}')


def broken_rule(path: Path, error: ValidationError) -> str:
    """The first broken rule: file, field, value, rule; and the other fields that break one."""
    first, *others = error.errors(include_url=False)
    field = _field(first["loc"])
    rule = rule_in_words(first).removeprefix("Value error, ")
    # A missing field, and a rule over several fields, have a whole table as their value.
    value = "" if isinstance(first["input"], dict | BaseModel) else f"{shown(first['input'])}: "
    wrong = [name for name in dict.fromkeys(_field(each["loc"]) for each in others) if name not in ("", field)]
    more = f"; also wrong or missing: {', '.join(wrong)}" if wrong else ""
    return f"{path}: {field + ': ' if field else ''}{value}{rule[0].lower()}{rule[1:]}{more}"


def _field(place: tuple[int | str, ...]) -> str:
    """The name of a field of the file; an empty key is a key, too."""
    return ".".join(str(part) or '""' for part in place)
