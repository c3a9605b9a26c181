# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: make, enter, list, and delete until they are really gone.

Only short-lived threads ever enter a namespace; the thread that calls stays where it is.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from pyroute2 import IPRoute, IPRSocket, netns
from pyroute2.netlink import NLM_F_DUMP, NLM_F_REQUEST
from pyroute2.netlink.rtnl import RTM_GETNSID, RTM_NEWNSID
from pyroute2.netlink.rtnl.nsidmsg import nsidmsg

from natgauge.errors import BrokenError, HostError

#: Every namespace of natgauge starts with this.
PREFIX: Final = "ng-"

_RUN = Path("/run/netns")
_OWN = Path("/proc/thread-self/ns/net")
_CLONE_NEWNET = 0x40000000
_INTERRUPTED_SECONDS = 5.0
_T = TypeVar("_T")


def path_of(name: str) -> Path:
    """Return the file of a namespace in /run/netns."""
    return _RUN / name


def exists(name: str) -> bool:
    """Whether there is a namespace of this name."""
    return path_of(name).exists()


def inode_of(name: str | None) -> int:
    """Return the inode number of a namespace, which is the same by any of its names.

    Args:
        name: its name; None = the namespace of the calling thread.

    Raises:
        FileNotFoundError: there is no such namespace.
    """
    return (_OWN if name is None else path_of(name)).stat().st_ino


def here() -> tuple[str, ...]:
    """Names of the calling thread's namespace; none where it has none."""
    own = _OWN.stat()
    found = []
    for name in names():
        with suppress(FileNotFoundError):  # deleted by now
            if os.path.samestat(path_of(name).stat(), own):
                found.append(name)
    return tuple(found)


def names() -> tuple[str, ...]:
    """Names of all namespaces of this machine, sorted."""
    return tuple(sorted(entry.name for entry in _RUN.iterdir())) if _RUN.is_dir() else ()


def in_thread(function: Callable[[], _T], name: str = "natgauge") -> _T:
    """Call `function` in a thread of its own and return what it returns, or raise what it raises."""
    outcome: Future[_T] = Future()

    def work() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # noqa: BLE001 - handed on to the caller, who sees it unchanged
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        return outcome.result()
    except KeyboardInterrupt:
        # What the thread is making is about to be undone: let it finish first.
        thread.join(_INTERRUPTED_SECONDS)
        raise


def inside(name: str | None, function: Callable[[], _T]) -> _T:
    """Call `function` inside a namespace; None = where we are.

    Raises:
        BrokenError: the namespace is gone.
    """
    if name is None:
        return function()

    def enter() -> _T:
        try:
            netns.setns(str(path_of(name)), flags=0)
        except OSError as error:
            raise BrokenError(f"namespace {name}: cannot be entered ({error.strerror}); was it deleted?") from error
        return function()

    return in_thread(enter, name)


def refuse_existing(name: str) -> None:
    """Refuse a name whose namespace exists already: another program may have made it.

    Raises:
        HostError: a namespace of this name exists.
    """
    if exists(name):
        raise HostError(f'namespace {name}: exists already and is no lab\'s; "natgauge lab clean" removes it')


def create(name: str) -> None:
    """Make an empty namespace.

    Raises:
        HostError: one of this name exists, or the kernel refuses.
    """
    refuse_existing(name)
    try:
        in_thread(lambda: _create(name), name)
    except OSError as error:
        raise HostError(f"namespace {name}: cannot be made ({error.strerror})") from error


def _create(name: str) -> None:
    """Move the calling thread into a new namespace and give that a name."""
    _unshare()
    # pyroute2 makes the path of it: /proc/thread-self/ns/net
    netns.attach(name, "thread-self")


def write_sysctls(values: Mapping[str, int]) -> None:
    """Write sysctls, by their names below /proc/sys, in the namespace of the calling thread.

    Sysctls that this kernel lacks are left out: it also lacks the features that they control.

    Raises:
        HostError: a value is refused.
    """
    for key, value in values.items():
        path = Path("/proc/sys", key)
        if not path.exists():
            continue
        try:
            path.write_text(str(value))
        except OSError as error:
            raise HostError(f"sysctl {path}: {value} is refused ({error.strerror})") from error


def processes(name: str) -> tuple[int, ...]:
    """Processes whose network namespace this is, without our own."""
    return within(name, all_processes())


def within(name: str, pids: Iterable[int]) -> tuple[int, ...]:
    """Return the processes whose network namespace is `name`."""
    try:
        wanted = path_of(name).stat()
    except OSError:
        return ()
    inside = []
    for pid in pids:
        with suppress(OSError):
            here = Path(f"/proc/{pid}/ns/net").stat()
            if os.path.samestat(here, wanted):
                inside.append(pid)
    return tuple(inside)


def all_processes() -> Iterable[int]:
    """List all processes but our own."""
    return (
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and entry.name != str(os.getpid())
    )


def end_processes(pids: Sequence[int], patience: float = 1.0) -> tuple[int, ...]:
    """End processes: ask, and after `patience` seconds make them.

    Args:
        pids: their numbers.
        patience: seconds from SIGTERM to SIGKILL.

    Returns:
        Processes that had not ended before the call.

    Raises:
        BrokenError: a process still exists 5 seconds after SIGKILL.
    """
    handles = {}
    for pid in pids:
        with suppress(OSError):
            handles[pid] = os.pidfd_open(pid)
    try:
        running = alive = [pid for pid, handle in handles.items() if not _ended(handle, 0.0)]
        for signal_number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 5.0)):
            alive = [pid for pid in alive if not _ended(handles[pid], 0.0)]
            for pid in alive:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handles[pid], signal_number)
            until = time.monotonic() + seconds
            alive = [pid for pid in alive if not _ended(handles[pid], until - time.monotonic())]
        if alive:
            raise BrokenError(f"process {alive[0]}: did not end after SIGKILL; end it, then run: natgauge lab clean")
        return tuple(running)
    finally:
        for handle in handles.values():
            os.close(handle)


def _ended(handle: int, seconds: float) -> bool:
    """Whether the process behind a pidfd ends within `seconds`."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


def delete(doomed: Sequence[str], timeout: float = 60.0) -> None:
    """End the processes in namespaces, delete these and wait until the kernel has taken them apart.

    Names that do not exist are passed over.

    Args:
        doomed: their names.
        timeout: seconds for the kernel to finish; a table of ten million connections takes it tens of seconds.

    Raises:
        BrokenError: a process does not end, or something still holds a namespace after `timeout`.
    """
    existing = [name for name in doomed if exists(name)]
    namespaces = [name for name in existing if _is_namespace(name)]
    for name in set(existing) - set(namespaces):
        path_of(name).unlink()
    for name in namespaces:
        # What ends may have started another process after the list was made.
        while pids := processes(name):
            end_processes(pids)
    if namespaces:
        in_thread(lambda: _delete_watched(namespaces, timeout), "natgauge-delete")


def _is_namespace(name: str) -> bool:
    """Whether the file of this name is a namespace; a kill while one is made leaves an ordinary file."""
    return path_of(name).stat().st_dev == Path("/proc/self/ns/net").stat().st_dev


def _delete_watched(doomed: Sequence[str], timeout: float) -> None:
    """Delete namespaces, watched from an anonymous one (the calling thread ends up in it).

    A namespace loses its number in ours when the kernel begins to take it apart, which one worker does for the whole
    machine, batch by batch. So when the number of a second, empty namespace, let go after that, is lost too, the
    first batch is done: interfaces, tables and memory are free again.
    """
    deadline = time.monotonic() + timeout
    _unshare()
    with IPRoute() as numbering, IPRSocket() as watcher:
        for number, name in enumerate(doomed):
            _number(numbering, os.open(path_of(name), os.O_RDONLY | os.O_CLOEXEC), number)
            netns.remove(name)
        _wait_gone(watcher, range(len(doomed)), deadline, ", ".join(doomed))
        _number(numbering, in_thread(_anonymous), len(doomed))
        _wait_gone(watcher, [len(doomed)], deadline, ", ".join(doomed))


def _unshare() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        code = ctypes.get_errno()
        raise HostError(f"a network namespace cannot be made ({os.strerror(code)})")


def _anonymous() -> int:
    """A descriptor of a new namespace that nothing else holds once the calling thread has ended."""
    _unshare()
    return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


def _number(numbering: IPRoute, handle: int, number: int) -> None:
    """Give the namespace behind `handle` a number in the watcher's, and close the handle."""
    try:
        numbering.set_netnsid(fd=handle, nsid=number)
    finally:
        os.close(handle)


def _wait_gone(watcher: IPRSocket, numbers: Iterable[int], deadline: float, what: str) -> None:
    waiting = set(numbers)
    while waiting & _numbers(watcher):
        if time.monotonic() > deadline:
            raise BrokenError(f"namespaces {what}: still in use after deletion; end what holds them (see: lsns -t net)")
        time.sleep(0.01)


def _numbers(watcher: IPRSocket) -> set[int]:
    # A dump, not a question for one number: the latter says "gone" already when the last user has let go.
    watcher.put(nsidmsg(), msg_type=RTM_GETNSID, msg_flags=NLM_F_REQUEST | NLM_F_DUMP)
    return {reply.get_attr("NETNSA_NSID") for reply in watcher.get() if reply["header"]["type"] == RTM_NEWNSID}
