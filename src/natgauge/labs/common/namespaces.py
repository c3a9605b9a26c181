# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: make, mark, enter, list, and delete until they are really gone.

Only short-lived threads ever enter a namespace; the thread that calls stays where it is.

A mark tells the namespaces that natgauge made: a name alone is no proof, because other programs may use it, too. It is
a file named like the namespace. It contains the namespace's cookie, a number that the kernel gives to no other network
namespace until the next boot (SO_NETNS_COOKIE, socket(7)); numbers of inodes are reused. The mark is written while the
namespace has no name yet, so a kill in between leaves a mark without a namespace, never the reverse.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from pyroute2 import IPRoute, IPRSocket, netns
from pyroute2.netlink import NLM_F_DUMP, NLM_F_REQUEST
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import RTM_GETNSID, RTM_NEWNSID
from pyroute2.netlink.rtnl.nsidmsg import nsidmsg

from natgauge import file_access
from natgauge.errors import BrokenError, HostError, remedy_of
from natgauge.host import capabilities
from natgauge.host.private_files import FILE_MODE, boot, unwritable
from natgauge.labs.common import locks
from natgauge.labs.common import processes as running
from natgauge.labs.common.processes import NoThreadError, in_thread
from natgauge.labs.common.processes import all_processes as all_processes  # noqa: PLC0414 - cleanup ends processes by this module
from natgauge.labs.common.processes import end_processes as end_processes  # noqa: PLC0414 - as above

#: include/uapi/asm-generic/socket.h
_SO_NETNS_COOKIE: Final = 71
_COOKIE_OCTETS: Final = 8
#: Content of a mark: a cookie, and the number of the boot.
_MARK: Final = re.compile(r"\d+ [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Longer than any mark.
_MOST_OCTETS: Final = 256


def cookie() -> str:
    """Return the cookie of the calling thread's namespace."""
    # A folder that outlives a boot would have marks of other namespaces.
    return f"{cookie_number()} {boot()}"


def cookie_number() -> int:
    """Return the kernel's number of the calling thread's namespace, which no other one gets before the next boot."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as opened:
        return cookie_number_of(opened)


def cookie_number_of(opened: socket.socket) -> int:
    """Return the kernel's number of the namespace of a socket."""
    return int.from_bytes(opened.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, _COOKIE_OCTETS), "little")


def write_mark(name: str, of: str) -> None:
    """Mark a namespace that is about to get its name."""
    path = locks.made_folder("namespaces") / name
    try:
        file_access.replace(path, of, mode=FILE_MODE)
    except OSError as error:
        raise unwritable(path, error) from error


def read_mark(name: str) -> str | None:
    """Return the cookie in the mark of this name; None = there is no mark."""
    with suppress(FileNotFoundError):
        # A FIFO in its place would wait for a writer.
        handle = os.open(locks.folder("namespaces") / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(handle, _MOST_OCTETS).decode(errors="replace")
        finally:
            os.close(handle)
    return None


def remove_mark(name: str) -> None:
    """Remove a mark, and what killed processes wrote of it; do nothing where there is none.

    A file with other content is none, and neither is any file where the folder of the marks is a link to another one.
    """
    folder = locks.folder("namespaces")
    if not _is_link(folder):
        with suppress(OSError):
            file_access.remove_partial(folder / name)
            if is_mark(name):
                mark_path(name).unlink(missing_ok=True)


def mark_path(name: str) -> Path:
    """Return the file of a mark."""
    return locks.folder("namespaces") / name


def is_mark(name: str) -> bool:
    """Whether the file of this name has the content of a mark."""
    with suppress(OSError):
        return _MARK.fullmatch(read_mark(name) or "") is not None
    return False


def mark_names() -> tuple[str, ...]:
    """Return the names of all marked namespaces, whether these still exist or not."""
    folder = locks.folder("namespaces")
    if not _is_link(folder):
        with suppress(OSError):
            return tuple(sorted(path.name for path in folder.iterdir() if not file_access.whole_name(path.name)))
    return ()


def _is_link(folder: Path) -> bool:
    """Whether the folder, or the one it is in, is a link: what is there then was not made by natgauge."""
    return folder.is_symlink() or folder.parent.is_symlink()


#: Every namespace of natgauge starts with this.
PREFIX: Final = "ng-"

_CLONE_NEWNET: Final = 0x40000000
_RUN = Path("/run/netns")
_OWN = Path("/proc/thread-self/ns/net")
#: Errors of a process that may open no more files.
_NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
_T = TypeVar("_T")
#: Cookies of the namespaces that this process made: a device may delete the files of natgauge, and so the marks.
_made: dict[str, str] = {}


def path_of(name: str) -> Path:
    """Return the file of a namespace in /run/netns."""
    return _RUN / name


def exists(name: str) -> bool:
    """Whether there is a namespace of this name."""
    return path_of(name).exists()


def inode_of(name: str | None) -> int:
    """Return the inode number of a namespace, which is the same by any of its names."""
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


def inside(name: str | None, function: Callable[[], _T]) -> _T:
    """Call `function` inside a namespace; None = where we are."""
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
    """Refuse a name whose namespace exists already."""
    if not exists(name):
        return
    if is_marked(name):
        raise HostError(f'namespace {name}: exists already, a killed run left it; "natgauge lab clean" removes it')
    raise HostError(
        f"namespace {name}: exists already, and natgauge did not make it; use another lab name, or, if nobody "
        'needs it, "natgauge lab clean --strays"'
    )


def create(name: str) -> None:
    """Make an empty namespace, and mark it as natgauge's."""
    refuse_existing(name)
    try:
        in_thread(lambda: _create(name), name)
    except OSError as error:
        if os.path.lexists(_RUN) and not _RUN.is_dir():
            raise HostError(f"namespace {name}: cannot be made: {_RUN} is no folder; delete it") from error
        raise HostError(f"namespace {name}: cannot be made ({error.strerror})") from error


def _create(name: str) -> None:
    """Move the calling thread into a new namespace, mark that, and give it a name."""
    _unshare()
    # The mark comes before the name: a namespace without a name ends with the thread, also in a kill.
    _made[name] = cookie()
    write_mark(name, _made[name])
    try:
        # pyroute2 makes the path of it: /proc/thread-self/ns/net
        netns.attach(name, "thread-self", ctypes.CDLL(None, use_errno=True))
    except BaseException:
        if not exists(name):
            remove_mark(name)
        raise


def is_marked(name: str) -> bool:
    """Whether natgauge made the namespace that has this name now."""
    try:
        mark = read_mark(name) or _made.get(name)
        if mark is None:
            return False
        return _cookie_of(name) == mark if _is_namespace(name) else name.startswith(PREFIX) and _is_half_made(name)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise HostError(f"namespace {name}: cannot be examined ({error.strerror})") from error


def _cookie_of(name: str) -> str:
    with path_of(name).open("rb") as there:
        try:
            return in_thread(lambda: _cookie_in(there.fileno()))
        except NoThreadError:
            # Nothing can fail half way here, so the calling thread may go there and return.
            with _OWN.open("rb") as home:
                try:
                    return _cookie_in(there.fileno())
                finally:
                    enter(home.fileno())


def _cookie_in(handle: int) -> str:
    enter(handle)
    return cookie()


def enter(handle: int) -> None:
    """Move the calling thread into the namespace of an open file."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(handle, _CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def write_sysctls(values: Mapping[str, int]) -> None:
    """Write sysctls, by their names below /proc/sys, in the namespace of the calling thread.

    Sysctls that this kernel lacks are left out: it also lacks the features that they control.
    """
    for key, value in values.items():
        path = Path("/proc/sys", key)
        if not path.exists():
            continue
        try:
            path.write_text(str(value))
        except OSError as error:
            raise HostError(f"sysctl {path}: {value} is refused ({error.strerror}){remedy_of(error)}") from error


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


def delete(doomed: Sequence[str], timeout: float = 60.0, *, unmarked: bool = False) -> list[str]:
    """End the processes in namespaces, delete these and wait until the kernel has taken them apart.

    Names that do not exist are passed over. A namespace that natgauge did not make, the namespace of this process or of
    the first process, and one with a process that must not be ended stay as they are, whoever asks; all others go.

    Args:
        timeout: seconds for the kernel to finish; a table of ten million connections takes it tens of seconds.
    """
    existing = [name for name in doomed if exists(name)]
    refusals = {name: why for name in existing if (why := refusal(name, unmarked=unmarked))}
    ours = [name for name in existing if name not in refusals]
    files = [name for name in ours if _is_file(name)]
    namespaces = [name for name in ours if name not in files]
    deleted = [name for name in files if _did_remove(path_of(name).unlink)]
    for name in namespaces:
        # What ends may have started another process after the list was made.
        while pids := processes(name):
            end_processes(pids)
    try:
        if namespaces:
            deleted += _take_apart(namespaces, timeout)
    finally:
        for name in doomed:
            if not exists(name):
                remove_mark(name)
    if refusals:
        raise BrokenError("; ".join(f"namespace {name}: left as it is: {why}" for name, why in refusals.items()))
    return [name for name in ours if name in deleted]


def _did_remove(remove: Callable[[], object]) -> bool:
    """Remove a file or a name; return whether this process did it: another natgauge may clean at the same time."""
    try:
        remove()
    except FileNotFoundError:
        return False
    return True


def refusal(name: str, *, unmarked: bool = False) -> str:
    """Return why an existing namespace is not deleted, as a part of a sentence; empty = it may be."""
    try:
        namespace = path_of(name).stat()
    except OSError:
        return ""
    if running.is_machines_own(namespace):
        return f"it is the network of this machine or of this natgauge (ip netns delete {name} removes the name alone)"
    if not unmarked and not is_marked(name):
        return "natgauge did not make it"
    using = running.using()
    pids = within(name, [*all_processes(), os.getpid()])
    reasons = (running.why_protected(pid, using) for pid in pids)
    return next(filter(None, reasons), "")


def _take_apart(names: Sequence[str], timeout: float) -> list[str]:
    """Delete namespaces without processes and wait for the kernel, if threads and files can be had for the waiting."""
    try:
        return in_thread(lambda: _delete_watched({name: path_of(name) for name in names}, timeout), "natgauge-delete")
    except NoThreadError:
        return _delete_unwatched(names)
    except NetlinkError as error:
        raise BrokenError(f"namespaces {', '.join(names)}: cannot be deleted ({os.strerror(error.code)})") from error
    except OSError as error:
        if error.errno not in _NO_FILES:
            raise
        return _delete_unwatched(names)


def _unshare() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        code = ctypes.get_errno()
        raise HostError(f"a network namespace cannot be made ({os.strerror(code)})")


def _remove(name: str) -> bool:
    return _did_remove(lambda: netns.remove(name, ctypes.CDLL(None, use_errno=True)))


def _delete_watched(doomed: Mapping[str, Path], timeout: float) -> list[str]:
    """Delete namespaces, watched from an anonymous one (the calling thread ends up in it).

    A namespace loses its number in ours when the kernel begins to take it apart, which one worker does for the whole
    machine, batch by batch. So when the number of a second, empty namespace, let go after that, is lost too, the
    first batch is done: interfaces, tables and memory are free again.
    """
    deadline = time.monotonic() + timeout
    deleted = []
    _unshare()
    with IPRoute() as numbering, IPRSocket() as watcher:
        for number, (name, path) in enumerate(doomed.items()):
            with suppress(FileNotFoundError):
                _number(numbering, os.open(path, os.O_RDONLY | os.O_CLOEXEC), number)
            if _remove(name):
                deleted.append(name)
        _wait_gone(watcher, range(len(doomed)), deadline, ", ".join(doomed))
        _number(numbering, in_thread(_anonymous), len(doomed))
        _wait_gone(watcher, [len(doomed)], deadline, ", ".join(doomed))
    return deleted


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
            lacking = capabilities.missing(*capabilities.PROCESSES)
            why = f" (not all can be found without {capabilities.described(lacking)})" if lacking else ""
            raise BrokenError(
                f"namespaces {what}: still in use after deletion; end what holds them{why} (see: lsns -t net)"
            )
        time.sleep(0.01)


def _numbers(watcher: IPRSocket) -> set[int]:
    # A dump, not a question for one number: the latter says "gone" already when the last user has let go.
    watcher.put(nsidmsg(), msg_type=RTM_GETNSID, msg_flags=NLM_F_REQUEST | NLM_F_DUMP)
    return {reply.get_attr("NETNSA_NSID") for reply in watcher.get() if reply["header"]["type"] == RTM_NEWNSID}


def _delete_unwatched(names: Sequence[str]) -> list[str]:
    return [name for name in names if exists(name) and _remove(name)]


def _is_namespace(name: str) -> bool:
    """Whether the file of this name is a namespace; a kill while one is made leaves an ordinary file."""
    return path_of(name).stat().st_dev == Path("/proc/self/ns/net").stat().st_dev


def _is_half_made(name: str) -> bool:
    """Whether a kill while a namespace was made may have left this ordinary file, which is empty."""
    found = path_of(name).lstat()
    return stat.S_ISREG(found.st_mode) and not found.st_size


def _is_file(name: str) -> bool:
    """Whether there is an ordinary file of this name."""
    with suppress(FileNotFoundError):  # deleted by now
        return not _is_namespace(name)
    return False
