# SPDX-License-Identifier: Apache-2.0
"""Places where a gateway can run, and its last run by natgauge's authors, as `natgauge gateways` shows them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

from natgauge import file_access, toml_text
from natgauge.gateways.recipe import Kind, Recipe, is_own
from natgauge.gateways.recipe_model import OWN_PACKAGE, System
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.host import programs
from natgauge.labs.vm.image import PACKAGES
from natgauge.labs.vm.image import modules as guest_modules

#: "here": in namespaces of this machine. "guest": `--lab vm`. "ssh": on another machine.
Place = Literal["here", "guest", "ssh"]
PLACES: Final[tuple[Place, ...]] = get_args(Place)
_SAID: Final[Mapping[Place, str]] = {"here": "here", "guest": "in a guest", "ssh": "over SSH"}
#: What gateways of each kind do.
KINDS: Final[Mapping[Kind, str]] = {
    "routing": "forwards and translates nothing: the baseline",
    "nat44": "IPv4 to IPv4, stateful",
    "nat66": "IPv6 to IPv6, stateful",
    "nptv6": "IPv6 to IPv6, prefix for prefix, stateless (RFC 6296)",
    "nat64": "IPv6 to IPv4, stateful (RFC 6146)",
    "siit": "between IPv4 and IPv6, stateless (RFC 7915); also a CLAT alone",
    "softwire": "one end of a tunnel of IPv4 in IPv6",
    "464xlat": "IPv4 over an IPv6 network: CLAT and PLAT, both by translation (RFC 6877)",
    "ds-lite": "IPv4 over an IPv6 network: B4 and AFTR, by a tunnel; the AFTR has the NAT (RFC 6333)",
    "lw4o6": "IPv4 over an IPv6 network: lwB4 with the NAT, and lwAFTR, by a tunnel (RFC 7596)",
    "map-e": "IPv4 over an IPv6 network: customer edge with the NAT, and border relay, by a tunnel (RFC 7597)",
    "map-t": "IPv4 over an IPv6 network: customer edge with the NAT, and border relay, by translation (RFC 7599)",
    "map-t-br": "the border relay of map-t alone; the tester emulates the customer edges",
    "map-e-br": "the border relay of map-e alone; the tester emulates the customer edges",
    "lwaftr": "the lwAFTR of lw4o6 alone; the tester emulates the lwB4s",
    "aftr": "the AFTR of ds-lite alone, with the NAT; the tester emulates the B4s",
    "map-t-ce": "the customer edges of map-t alone; the tester emulates the border relay",
    "map-e-ce": "the customer edges of map-e alone; the tester emulates the border relay",
    "lwb4": "the lwB4s of lw4o6 alone; the tester emulates the lwAFTR",
    "b4": "the B4s of ds-lite alone; the tester emulates the AFTR",
    "dns64": "answers DNS queries, with AAAA records made of A records where a name has none (RFC 6147)",
    "dns": "answers DNS queries from a zone of its own, an authoritative server",
}
#: Only the lab tests write this file (`make record-runs`).
RUNS: Final = BUILT_IN / "runs" / "last.toml"
#: How the version of a kernel begins, among the versions of programs (`uname -sr`).
_SYSTEMS: Final = tuple(f"{system} " for system in get_args(System))
#: Packages that are in every Debian guest.
_ALWAYS: Final = frozenset({"util-linux", "coreutils"})


@dataclass(frozen=True, slots=True)
class Run:
    """The last run of a gateway's lab test by natgauge's authors at one place; empty distribution = not recorded."""

    date: str
    place: Place
    version: tuple[str, ...]
    distribution: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        return asdict(self)

    @property
    def system(self) -> str:
        """Kernel and distribution of the gateway's machine, in words; a part that was not recorded is called so."""
        kernel_release = next((line for line in self.version if line.startswith(_SYSTEMS)), "")
        if not kernel_release and not self.distribution:
            return "not recorded"
        return f"{kernel_release or 'kernel not recorded'}, {self.distribution or 'distribution not recorded'}"

    @property
    def software(self) -> tuple[str, ...]:
        """Versions of the gateway's programs; empty = the kernel alone forwards."""
        return tuple(line for line in self.version if not line.startswith(_SYSTEMS))


def has_module(module: str, root: Path = Path("/")) -> bool:
    """Whether a module is loaded, built in, or installed for this kernel."""
    if (root / "sys/module" / module).exists():
        return True
    folder = root / "lib/modules" / os.uname().release
    for name in ("modules.dep", "modules.builtin"):
        with suppress(OSError):
            # Lines such as "kernel/net/netfilter/nf_flow_table.ko.xz: ...".
            for line in (folder / name).read_text(encoding="utf-8").splitlines():
                file = line.partition(":")[0].rpartition("/")[2]
                if file.partition(".")[0].strip().replace("-", "_") == module:
                    return True
    return False


def places(recipe: Recipe, has: Callable[[str], bool] = has_module) -> tuple[Place, ...]:
    """Places where the gateway can run, after its packages are installed.

    A guest that lacks something can run the gateway with the user's own build (`--guest-files`). That is promised only
    where natgauge's authors have run it so.
    """
    if recipe.system != "Linux":
        return ("ssh",)
    played = recipe.of_devices(1)
    places: list[Place] = []
    if all(has(module.name) for each in played for module in each.modules):
        places.append("here")
    if not lacking_in_guest(recipe) or any(run.place == "guest" for run in runs_of(recipe)):
        places.append("guest")
    if all(need.package != OWN_PACKAGE for each in played for need in each.needs):
        # natgauge itself is on this machine only.
        places.append("ssh")
    return tuple(places)


def lacking(
    recipe: Recipe,
    has: Callable[[str], bool] = has_module,
    find: Callable[[str], str | None] = programs.find_of_devices,
) -> list[str]:
    """Return what this machine lacks to run the gateway in namespaces, in words; empty where it lacks nothing."""
    if recipe.system != "Linux":
        return [f"a machine with {recipe.system}"]
    played = recipe.of_devices(1)
    modules = dict.fromkeys(module.name for each in played for module in each.modules if not has(module.name))
    names = dict.fromkeys(name for each in played for need in each.needs for name in need.programs if not find(name))
    return [*(f"the kernel module {name}" for name in modules), *(f"the program {name}" for name in names)]


def lacking_in_guest(recipe: Recipe) -> list[str]:
    """Return what the guest of `--lab vm` lacks to run the gateway, in words; empty where it lacks nothing."""
    if recipe.system != "Linux":
        return [f"a machine with {recipe.system}"]
    played = recipe.of_devices(1)
    modules = [
        ("kernel module", module.name, module.name in guest_modules()) for each in played for module in each.modules
    ]
    needs = [(need, need.package in {*PACKAGES, *_ALWAYS}) for each in played for need in each.needs]
    programs_of = [("program", name, has) for need, has in needs for name in need.programs]
    lacks = (f"the {kind} {name} in the guest" for kind, name, has in (*modules, *programs_of) if not has)
    return [*dict.fromkeys(lacks)]


def runs_of(recipe: Recipe, file: Path = RUNS) -> tuple[Run, ...]:
    """Return the recorded runs of natgauge's own recipe of this name, the last one at each place; empty = never."""
    if not is_own(recipe.origin):
        return ()
    recorded = _recorded_runs(file).get(recipe.name, {})
    return tuple(
        Run(run["date"], place, tuple(run["version"]), run.get("distribution", ""))
        for place in PLACES
        if (run := recorded.get(place))
    )


def last_run(recipe: Recipe, file: Path = RUNS) -> Run | None:
    """Return the last recorded run of natgauge's own recipe of this name; None = never."""
    return max(runs_of(recipe, file), key=lambda run: run.date, default=None)


def run_in_words(run: Run | None) -> str:
    """Return the last recorded run in words: date, kind of host, versions."""
    if run is None:
        return "never run by natgauge's authors"
    return f"last run by natgauge's authors {run.date} {_SAID[run.place]}: {', '.join(run.version)}"


def places_in_words(recipe: Recipe) -> str:
    """Return the kinds of labs in which the recipe can run, in words."""
    said = dict(_SAID)
    if lacking_in_guest(recipe):
        said["guest"] = "in a guest with your own build (--guest-files)"
    return ", ".join(said[place] for place in places(recipe)) or "nowhere that we know"


@cache
def _recorded_runs(file: Path) -> Mapping[str, Any]:
    return toml_text.parse(file_access.read_text(file, file_access.TABLE)) if file.is_file() else {}
