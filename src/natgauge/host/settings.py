# SPDX-License-Identifier: Apache-2.0
"""Global settings of a machine that a gateway needs: read, remembered by the lab, written.

A process that uses such a setting relies on it until the process ends. Raising the setting disturbs no other process;
lowering it is refused while another process relies on it. The process announces its reliance to all processes of the
machine, also in other containers (`natgauge.host.announcements`), and the kernel ends the announcement with the
process, for any reason. So whoever needs another value waits until it has ended. A process that makes several labs one
after the other keeps the announcement between them (`reliance_kept`). A setting that changes all the same is found when
it is read again after each trial.
"""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, Protocol

from natgauge.errors import HostError
from natgauge.host.announcements import Announced, Announcement, Kind, ends_never, is_own, others, turn

_MODPROBE_SECONDS: Final = 10.0
#: Longest wait for another natgauge, and the time between two looks at it.
PATIENCE_SECONDS: Final = 1800.0
_LOOK_SECONDS: Final = 0.1

#: Announcements that outlast the gateways that made them, by path; None = announcements end with the gateways.
_kept: ContextVar[dict[Path, list[Announcement]] | None] = ContextVar("kept reliance", default=None)
#: Values that this process set last, by path: several gateways of one process may set the same setting.
_set_here: dict[Path, int] = {}
#: Receives for whom this process waits, what ends a wait that nobody wants any more, and the settings of which the rule
#: was told; None = nobody and nothing.
_waits: ContextVar[tuple[Callable[[str], None], Callable[[], None], set[str]] | None] = ContextVar(
    "waits", default=None
)


class OccupiedError(HostError):
    """Another natgauge of this machine needs another value of a setting."""


def _nothing(*_: object) -> None:
    """Tell nobody, and end no wait."""


@contextmanager
def waits_told(tell: Callable[[str], None], go_on: Callable[[], None] = _nothing) -> Iterator[None]:
    """Within the block, `tell` receives a line whenever another natgauge is waited for, unless it is told already.

    The first line on a setting says why and for how long, later ones only that it is waited for again.
    `go_on` is called again and again during a wait, which ends with what it raises.
    """
    before = _waits.set(_waits.get() or (tell, go_on, set()))
    try:
        yield
    finally:
        _waits.reset(before)


@contextmanager
def reliance_kept() -> Iterator[None]:
    """Within the block, keep relying on all settings of this machine that a gateway of this process used.

    The values are still restored with each gateway. But no other natgauge can lower a setting between the end of a lab
    and the beginning of the next. The next gateway takes over the announcements.
    """
    if _kept.get() is not None:
        yield
        return
    held: dict[Path, list[Announcement]] = {}
    before = _kept.set(held)
    try:
        yield
    finally:
        _kept.reset(before)
        for announcements in held.values():
            for announcement in announcements:
                announcement.close()


class Remembers(Protocol):
    """Stores values before their change, so that they can be restored even after a kill (labs and registers do)."""

    def remember_global(self, path: str | Path, value: str) -> None:
        """Write down the present `value` of the file `path`; it is restored when the lab is undone."""

    def confirm_global(self, path: str | Path, value: str) -> None:
        """Write down the `value` that was set; the first value is restored only while this one stands."""

    def share_global(self, path: str | Path, value: str) -> None:
        """Restore the file `path`, too, where another lab has changed it to the present `value`."""

    def value_set(self, path: str | Path) -> str | None:
        """Return the value of the file `path` that a natgauge of this container set last; None = none has."""


class MachineSetting(ABC):
    """One global setting of a machine, a whole number held in one or more files.

    Attributes:
        name: name in messages, e.g. "table_size (nf_conntrack_max)".
        paths: at least one file; all are written, the smallest value counts.
        module: kernel module whose loading makes the files appear; None = none does.
    """

    def __init__(self, name: str, paths: Sequence[str | Path], module: str | None, where: str = "") -> None:
        self.paths = tuple(Path(path) for path in paths)
        self.module = module
        self._expected: dict[Path, int] = {}
        self.name = f"{name} ({', '.join(path.name for path in self.paths)}){where}"

    @abstractmethod
    def available(self) -> bool:
        """Whether the machine has the setting; a missing kernel module is loaded first."""

    @abstractmethod
    def values(self) -> dict[Path, int]:
        """The present values by their files."""

    def read(self) -> int:
        """The present value, the smallest one of several files."""
        return min(self.values().values())

    def settle(self) -> None:  # noqa: B027 - no other natgauge uses a machine that is locked
        """Wait until no other natgauge has lowered it, so that what is found is the machine's own value."""

    def rely(self) -> None:  # noqa: B027 - as above
        """See that no other natgauge lowers it from now on; wait for one that has."""

    def write(self, value: int) -> None:
        """Set the value, and rely on it; the lab stores the previous value, and restores it even after a kill."""
        # Reading loads the module where that is what is missing.
        before = self.values()
        while self._claim(value, min(before.values())):
            before = self.values()
        for path in self.paths:
            self._remember(path, before[path])
            self._put(path, value)
        self._expected = self.values()
        for path in self.paths:
            self._confirm(path, self._expected[path])
        if (accepted := min(self._expected.values())) < value:
            raise HostError(f"{self.name}: set to {value}, but the kernel made it {accepted}; use a smaller value")

    def found_changed(self) -> str:
        """Return which file of the setting has another value than when it was set or relied on; empty = none has."""
        now = self.values()
        for path in self.paths:
            was, found = self._expected.get(path), now[path]
            if was not in (None, found) and not self._set_by_us(path, found):
                if self._may_be_taken_over(path, found):
                    self._expected[path] = found
                return (
                    f"{self.name}: {path} was {was} when the device was set up, and is {found} now; "
                    "another program, or another natgauge, changed it"
                )
        return ""

    def release(self) -> None:  # noqa: B027 - as above
        """Stop relying on the setting."""

    def _set_by_us(self, _path: Path, _value: int) -> bool:
        """Whether this process itself set the value."""
        return False

    def _may_be_taken_over(self, _path: Path, _value: int) -> bool:
        """Whether later trials may run with this other value."""
        return False

    def _confirm(self, _path: Path, _value: int) -> None:  # noqa: B027 - most settings store nothing more
        """Have the lab write down the value that was accepted."""

    def _claim(self, _value: int, _present: int) -> bool:
        """Rely on a value that is about to be set; True = it had to wait, so that another value may be present now."""
        return False

    @abstractmethod
    def _remember(self, path: Path, value: int) -> None:
        """Have the lab write down what a file holds; only the first value of a file counts."""

    @abstractmethod
    def _put(self, path: Path, value: int) -> None:
        """Write a file."""


class LocalSetting(MachineSetting):
    """A global setting of this machine."""

    def __init__(
        self, name: str, paths: Sequence[str | Path], *, memory: Callable[[], Remembers], module: str | None = None
    ) -> None:
        super().__init__(name, paths, module)
        self._memory = memory
        self._reliance: dict[Path, Announcement] = {}

    def available(self) -> bool:
        """Whether this kernel has the setting; a missing kernel module is loaded first."""
        if not self._exists() and self.module:
            _load_module(self.module)
        return self._exists()

    def values(self) -> dict[Path, int]:
        """The present values by their files."""
        if not self.available():
            hint = f'try "modprobe {self.module}"' if self.module else "use another kernel"
            raise HostError(f"{self.name}: this kernel has no {self.paths[0]}; {hint}")
        try:
            return {path: int(path.read_text()) for path in self.paths}
        except (OSError, ValueError) as error:
            raise HostError(f"{self.name}: {self.paths[0]} cannot be read ({error})") from error

    def settle(self) -> None:
        """Wait until no other natgauge has lowered it."""
        self._wait_for(lambda: self._rival(("lowered",)), "has lowered it")

    def rely(self) -> None:
        """See that no other natgauge lowers it from now on; wait for one that has."""
        self._announce("relies", ("lowered",), "has lowered it")
        self._expected = self.values()
        for path in self.paths:
            self._memory().share_global(path, str(self._expected[path]))

    def release(self) -> None:
        """Stop relying on it, or keep the announcements for the next gateway."""
        kept = _kept.get()
        while self._reliance:
            path, announcement = self._reliance.popitem()
            if kept is None:
                announcement.close()
            else:
                kept.setdefault(path, []).append(announcement)

    def _claim(self, value: int, present: int) -> bool:
        if value < present:
            return self._announce("lowered", ("relies", "lowered"), "relies on it")
        return self._announce("relies", ("lowered",), "has lowered it")

    def _remember(self, path: Path, value: int) -> None:
        self._memory().remember_global(path, str(value))

    def _confirm(self, path: Path, value: int) -> None:
        _set_here[path] = value
        self._memory().confirm_global(path, str(value))

    def _set_by_us(self, path: Path, value: int) -> bool:
        return _set_here.get(path) == value

    def _may_be_taken_over(self, path: Path, value: int) -> bool:
        """Allow a value that a natgauge of this container has set: raising a setting disturbs no other natgauge."""
        return self._memory().value_set(path) in (str(value), "")

    def _exists(self) -> bool:
        return all(path.exists() for path in self.paths)

    def _put(self, path: Path, value: int) -> None:
        try:
            path.write_text(str(value))
        except OSError as error:
            raise HostError(
                f"{self.name}: {path} cannot be set to {value} ({error.strerror}); run natgauge as root, outside of "
                "containers and network namespaces"
            ) from error

    def _announce(self, kind: Kind, opposed: tuple[Kind, ...], who: str) -> bool:
        """Announce the reliance as soon as no announcement is in its way; return whether it had to wait."""

        def tried() -> Announced | None:
            kept = _kept.get() or {}
            with turn():
                for path in self.paths:
                    if path not in self._reliance and (handed := kept.get(path)):
                        self._reliance[path] = handed.pop()
                    former = self._reliance.get(path)
                    if rivals := others(path, opposed, own=() if former is None else (former,)):
                        return rivals[0]
                    self._reliance[path] = Announcement(path, kind)
                    if former is not None:
                        former.close()
            return None

        return self._wait_for(tried, who)

    def _rival(self, opposed: tuple[Kind, ...]) -> Announced | None:
        """Return an announcement of another process."""
        every = (each for path in self.paths for each in others(path, opposed))
        return next((each for each in every if not is_own(each)), None)

    def _wait_for(self, rival_now: Callable[[], Announced | None], who: str) -> bool:
        """Wait until no other process is in the way; return whether there was one."""
        if (rival := rival_now()) is None:
            return False
        text = f"{self.name}: another natgauge on this machine {who} ({_who(rival)})"
        if is_own(rival):
            raise HostError(f"{text}; wait until it has ended")
        until = time.monotonic() + PATIENCE_SECONDS
        tell, go_on, told = _waits.get() or (_nothing, _nothing, set[str]())
        first = f"{text}; waiting until it has ended, for at most {PATIENCE_SECONDS / 60:g} min"
        tell(f"{self.name}: waiting again, for {rival.who}" if self.name in told else first)
        told.add(self.name)
        with ExitStack() as waits:
            waiting = [waits.enter_context(closing(Announcement(path, "waits"))) for path in self.paths]
            while rival is not None:
                go_on()
                mutual = ends_never(rival, waiting[0])
                if mutual or time.monotonic() > until:
                    why = "waits for this one, too" if mutual else "has not ended in time"
                    raise OccupiedError(f"{text}, and {why}; begin again when it has ended")
                time.sleep(_LOOK_SECONDS)
                rival = rival_now()
        return True


def _who(rival: Announced) -> str:
    return "another gateway of this one" if is_own(rival) else ": ".join(filter(None, (rival.who, rival.command)))


def _load_module(name: str) -> None:
    """Load a kernel module; without success when the kernel has none or modprobe is missing."""
    try:
        subprocess.run(["modprobe", name], capture_output=True, timeout=_MODPROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return
