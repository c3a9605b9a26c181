# SPDX-License-Identifier: Apache-2.0
"""Run a command that sees only the programs of the listed Debian packages.

    python -m tools.listed_programs PURPOSE... -- COMMAND...

The purposes are those of tools/debian-packages.txt. The command sees the programs of these packages, of the packages
they depend on, and of the smallest Debian system. Each folder of programs is covered by an overlay that hides every
other program, in a mount namespace of the command's own. A test that calls a program that no list has thus fails on a
developer's machine as it fails on a new one. The overlay also holds for absolute paths, for the snippets of gateways,
and for far machines that a test makes on this host, whatever they set PATH to.

Without Debian's package database, without root, or without overlays, nothing is hidden; one line says so. The command
finds in the variable NATGAUGE_HIDDEN_PROGRAMS how many programs are hidden from it, or why none is.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LIST: Final = ROOT / "tools" / "debian-packages.txt"
#: Folders of programs that packages and administrators fill.
FOLDERS: Final = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/usr/local/games",
    "/usr/games",
)
#: What PATH has on a new machine (those folders, without games).
SYSTEM_PATH: Final = FOLDERS[:6]
#: A Rust toolchain may come from anywhere (tools/install-packages), and so may Python.
TOOLCHAIN: Final = ("cargo", "rustc", "rustdoc")
#: Where the hiding layers are mounted: a folder that is empty outside of the namespace.
LAYERS: Final = ROOT / "target" / "listed-programs"
#: Says to the command, and to tools/run_tests.py, what was hidden.
OUTCOME: Final = "NATGAUGE_HIDDEN_PROGRAMS"
NETWORK_NAMESPACES: Final = Path("/run/netns")
_ALTERNATIVES: Final = "/etc/alternatives"
_FIELDS: Final = (
    "db:Status-Status",
    "Package",
    "binary:Package",
    "Essential",
    "Priority",
    "Provides",
    "Pre-Depends",
    "Depends",
)


def in_force(environment: Mapping[str, str]) -> bool:
    """Whether a command with this environment sees only the programs of listed packages."""
    return environment.get(OUTCOME, "").endswith(" hidden")


class CannotHideError(Exception):
    """Programs cannot be hidden here; the message says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Package:
    """An installed Debian package.

    Attributes:
        names: as dpkg calls it, with the architecture where several can be installed.
        base: every Debian system has it.
        provides: names of virtual packages.
        depends: for each dependency, the names of which one is enough, the preferred one first.
    """

    names: frozenset[str]
    base: bool = False
    provides: frozenset[str] = frozenset()
    depends: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Owned:
    """Files of packages.

    Attributes:
        paths: the files, their folder without symbolic links.
        moved: for each file that another package's diversion moved, the path it has now.
    """

    paths: frozenset[str]
    moved: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layer:
    """Changes to one folder of programs.

    Attributes:
        folder: the folder, without symbolic links.
        hidden: names that cannot be seen.
        replaced: names that lead to another file: {name: path}.
    """

    folder: str
    hidden: tuple[str, ...]
    replaced: Mapping[str, str]


def wanted_packages(text: str, purposes: Collection[str]) -> set[str]:
    """Names of the packages that a list (the text of tools/debian-packages.txt) has for some purposes.

    Raises:
        ValueError: the list has no package for one of the purposes.
    """
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if unknown := set(purposes) - {row[0] for row in rows}:
        raise ValueError(f"{LIST.name}: no package has the purpose {', '.join(sorted(unknown))}")
    return {row[1] for row in rows if row[0] in purposes}


def parse_packages(text: str) -> dict[str, Package]:
    """Read the installed packages from `dpkg-query --show` with the fields of this module, by name."""
    found: dict[str, Package] = {}
    for line in text.splitlines():
        status, name, full_name, essential, priority, provides, *depends = line.split("\t")
        if status != "installed":
            continue
        same_name = found.get(name, Package(frozenset()))
        found[name] = Package(
            names=same_name.names | {full_name},
            # apt is in every installation, but its priority is lower.
            base=same_name.base or essential == "yes" or priority == "required" or name == "apt",
            provides=same_name.provides | {one for group in _dependencies(provides) for one in group},
            depends=same_name.depends + tuple(_dependencies(", ".join(depends))),
        )
    return found


def _dependencies(text: str) -> Iterator[tuple[str, ...]]:
    for group in text.split(","):
        # "libc6 (>= 2.34) | python3:any" without versions and architectures
        names = tuple(re.split(r"[\s(:\[]", one.strip(), maxsplit=1)[0] for one in group.split("|"))
        if names != ("",):
            yield names


def with_dependencies(wanted: Iterable[str], packages: Mapping[str, Package]) -> set[str]:
    """Installed packages among those wanted and of the base system, and what they depend on.

    Of several packages of which one is enough, the first one that is installed counts, as apt chooses it. Recommended
    packages do not count: tools/install-packages does not install them.
    """
    providers: dict[str, list[str]] = {}
    for name, package in packages.items():
        for virtual in package.provides:
            providers.setdefault(virtual, []).append(name)
    found: set[str] = set()
    waiting = [name for name, package in packages.items() if package.base] + list(wanted)
    while waiting:
        name = waiting.pop()
        for installed in [name] if name in packages else providers.get(name, []):
            if installed not in found:
                found.add(installed)
                for group in packages[installed].depends:
                    waiting += [one for one in group if one in packages or one in providers][:1]
    return found


def parse_files(text: str, packages: Collection[str]) -> Owned:
    """Read the files of packages from `dpkg-query --listfiles`; `packages` are the names of those packages."""
    paths: set[str] = set()
    moved: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        if match := re.fullmatch(r"(?:locally diverted|diverted by (\S+)) to: (.+)", line):
            paths.add(_resolved(match[2]))
            # A diversion by one of the packages themselves is what a new machine has, too.
            if match[1] not in packages:
                moved[_resolved(last)] = match[2]
        elif line.startswith("/"):
            last = line
            paths.add(_resolved(line))
    return Owned(frozenset(paths), moved)


def _resolved(path: str) -> str:
    """The path with its folder's symbolic links followed (/bin is /usr/bin), but not its own."""
    folder, name = os.path.split(path)
    return f"{os.path.realpath(folder)}/{name}"


def layer(folder: Path, owned: Owned, kept: Collection[str], choices: Mapping[str, Sequence[str]]) -> Layer:
    """Decide which programs of a folder can be seen.

    Args:
        folder: without symbolic links.
        owned: the files of the packages whose programs can be seen.
        kept: paths that can be seen in any case.
        choices: for each link of the alternatives system, the files that it may lead to, the best first.
    """
    hidden = []
    replaced = {}
    for entry in sorted(folder.iterdir()):
        path = str(entry)
        if path in owned.moved:
            replaced[entry.name] = owned.moved[path]
        elif path in owned.paths or path in kept or (_is_alternative(entry) and os.path.realpath(path) in owned.paths):
            continue
        elif allowed := [target for target in choices.get(path, ()) if os.path.realpath(target) in owned.paths]:
            replaced[entry.name] = allowed[0]
        else:
            hidden.append(entry.name)
    return Layer(str(folder), tuple(hidden), replaced)


def _is_alternative(entry: Path) -> bool:
    return entry.is_symlink() and entry.readlink().is_relative_to(_ALTERNATIVES)


def parse_choices(text: str) -> dict[str, list[str]]:
    """Read the links of one group of alternatives from `update-alternatives --query`: {link: files, the best first}."""
    head, *alternatives = text.split("\n\n")
    link = re.search(r"^Link: (.+)$", head, re.MULTILINE)
    if link is None:
        return {}
    name = re.search(r"^Name: (.+)$", head, re.MULTILINE)
    links = {name[1] if name else "": link[1]} | _slaves(head)
    ranked: list[tuple[int, dict[str, str]]] = []
    for text_of_one in alternatives:
        values = dict(re.findall(r"^(Alternative|Priority): (.+)$", text_of_one, re.MULTILINE))
        ranked.append((int(values["Priority"]), {next(iter(links)): values["Alternative"]} | _slaves(text_of_one)))
    ranked.sort(key=lambda one: -one[0])
    return {_resolved(path): [files[name] for _, files in ranked if name in files] for name, path in links.items()}


def _slaves(text: str) -> dict[str, str]:
    return dict(re.findall(r"^ (\S+) (.+)$", text, re.MULTILINE))


def chain(program: str) -> Iterator[str]:
    """The path of a program and of everything that its symbolic links lead to."""
    path = Path(_resolved(program))
    yield str(path)
    while path.is_symlink():
        path = Path(_resolved(str(path.parent / path.readlink())))
        yield str(path)


@contextmanager
def _reason() -> Iterator[None]:
    """Make what a machine refuses the reason for which programs cannot be hidden there."""
    try:
        yield
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip() or f"exit status {error.returncode}"
        raise CannotHideError(f"{error.cmd[0]}: {said}") from error
    except OSError as error:
        raise CannotHideError(str(error)) from error


def _ask(*command: str) -> str:
    environment = os.environ | {"LC_ALL": "C"}
    with _reason():
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def _owned(purposes: Sequence[str]) -> Owned:
    form = "\\t".join(f"${{{name}}}" for name in _FIELDS) + "\\n"
    packages = parse_packages(_ask("dpkg-query", "--show", "--showformat", form))
    names = with_dependencies(wanted_packages(LIST.read_text(), purposes), packages)
    full_names = sorted(full for name in names for full in packages[name].names)
    return parse_files(_ask("dpkg-query", "--listfiles", *full_names), names)


def _choices() -> dict[str, list[str]]:
    groups = [line.split()[0] for line in _ask("update-alternatives", "--get-selections").splitlines()]
    return {
        link: files
        for group in groups
        for link, files in parse_choices(_ask("update-alternatives", "--query", group)).items()
    }


def _toolchain() -> dict[str, str]:
    return {name: found for name in TOOLCHAIN if (found := shutil.which(name))}


def layers(purposes: Sequence[str]) -> list[Layer]:
    """Decide, for each folder of this machine, which programs can be seen."""
    folders = {os.path.realpath(folder) for folder in FOLDERS if Path(folder).is_dir()}
    kept = {path for program in (sys.executable, *_toolchain().values()) for path in chain(program)}
    owned, choices = _owned(purposes), _choices()
    return [layer(Path(folder), owned, kept, choices) for folder in sorted(folders)]


def _check_possible() -> None:
    if shutil.which("dpkg-query") is None:
        raise CannotHideError("it has no package database of Debian's")
    if os.geteuid() != 0:
        raise CannotHideError("that needs root")


def _mount(*words: str, folder: Path | None = None) -> None:
    with _reason():
        subprocess.run(["mount", *words], check=True, capture_output=True, text=True, cwd=folder)


def share_network_namespaces() -> None:
    """Make /run/netns what `ip netns add` makes of it, so that namespaces made in here are known outside, too.

    Raises:
        CannotHideError: the folder cannot be made, or a mount failed.
    """
    place = NETWORK_NAMESPACES
    with _reason():
        place.mkdir(exist_ok=True)
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # `ip` holds the same lock: two that find no mount at the same time would both mount.
        fcntl.flock(folder, fcntl.LOCK_EX)
        # As `ip` does it: this fails where the folder is no mount yet. Path.is_mount does not notice a folder that is
        # mounted on itself, and each further mount of a shared folder on itself doubles the number of mounts.
        with _reason():
            done = subprocess.run(["mount", "--make-shared", place], check=False, capture_output=True)
        if done.returncode != 0:
            _mount("--bind", str(place), str(place))
            _mount("--make-shared", str(place))
    finally:
        os.close(folder)


def hide(planned: Sequence[Layer]) -> Path:
    """Cover the folders in this mount namespace. Return a folder with links to the Rust toolchain, wherever it is.

    Raises:
        CannotHideError: a mount failed. No folder is covered then.
    """
    for folder in (str(LAYERS), *(each.folder for each in planned)):
        # The mount points that hold the folders, so that the covers stay in this namespace; others remain shared.
        _mount("--make-private", _ask("findmnt", "--noheadings", "--output", "TARGET", "--target", folder).strip())
    # PATH may already lead to links in here, when this namespace is in another one of ours.
    programs = {name: os.path.realpath(found) for name, found in _toolchain().items()}
    mounted: list[str] = []
    try:
        _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(LAYERS))
        mounted.append(str(LAYERS))
        with _reason():
            toolchain = _links(programs)
            for number, each in enumerate(planned):
                _prepare(LAYERS / str(number), each)
        for number, each in enumerate(planned):
            _mount("-t", "overlay", "-o", f"lowerdir={number}:{each.folder}", "overlay", each.folder, folder=LAYERS)
            mounted.append(each.folder)
    except CannotHideError:
        for place in reversed(mounted):
            # Lazily: umount itself may be a program in the folder that it uncovers.
            subprocess.run(["umount", "--lazy", place], check=False)
        raise
    return toolchain


def _links(programs: Mapping[str, str]) -> Path:
    toolchain = LAYERS / "toolchain"
    toolchain.mkdir()
    for name, path in programs.items():
        (toolchain / name).symlink_to(path)
    return toolchain


def _prepare(above: Path, changes: Layer) -> None:
    """Make the folder that goes over a folder of programs."""
    above.mkdir(mode=0o755)
    for name in changes.hidden:
        os.mknod(above / name, 0o020000, os.makedev(0, 0))  # an overlay's sign for "deleted"
    for name, target in changes.replaced.items():
        (above / name).symlink_to(target)


def _run(command: Sequence[str], outcome: str, path: Sequence[str] | None = None) -> None:
    """Become the command. `path` has the folders of PATH; None = as it is."""
    own = str(Path(sys.executable).parent)
    search = os.pathsep.join([own, *path]) if path else os.environ["PATH"]
    environment = os.environ | {"PATH": search, OUTCOME: outcome}
    os.execvpe(command[0], list(command), environment)  # noqa: S606 - no shell is wanted


def _inside(purposes: Sequence[str], command: Sequence[str]) -> None:
    planned = layers(purposes)
    toolchain = hide(planned)
    count = sum(len(each.hidden) for each in planned)
    print(f"tools/listed_programs: {count} programs of this machine are hidden: no list has their packages", flush=True)
    _run(command, f"{count} hidden", [str(toolchain), *SYSTEM_PATH])


def _enter(words: Sequence[str]) -> None:
    """Start anew in a mount namespace of its own."""
    unshare = ["unshare", "--mount", "--propagation", "unchanged"]
    _check_possible()
    share_network_namespaces()
    with _reason():
        LAYERS.mkdir(parents=True, exist_ok=True)
        # Once this process has become unshare, it is too late to go on without.
        subprocess.run([*unshare, "true"], check=True, capture_output=True, text=True)
    _run([*unshare, sys.executable, "-m", "tools.listed_programs", "--inside", *words], "")


def main(arguments: Sequence[str]) -> None:
    """Become the command, in a namespace where programs are hidden, or as things are where they cannot be."""
    inside = arguments[:1] == ["--inside"]
    words = list(arguments[1:] if inside else arguments)
    if "--" not in words[1:-1]:
        sys.exit("tools/listed_programs: wants PURPOSE... -- COMMAND...")
    at = words.index("--")
    purposes, command = words[:at], words[at + 1 :]
    try:
        if inside:
            _inside(purposes, command)
        _enter(words)
    except CannotHideError as obstacle:
        why = " ".join(str(obstacle).split())
        print(f"tools/listed_programs: hides no program of this machine: {why}", file=sys.stderr, flush=True)
        _run(command, f"not hidden: {why}")


if __name__ == "__main__":
    main(sys.argv[1:])
