# SPDX-License-Identifier: Apache-2.0
"""The guest before it is booted: its command line, its keys' archive, what is refused, and whether KVM is tried."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge import guest_building
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.host import capabilities
from natgauge.labs import vm
from natgauge.labs.common import locks
from natgauge.labs.contract import LabNeeds
from natgauge.labs.vm import image, lab
from natgauge.labs.vm.image import ArchivedFile, Image, archive
from natgauge.labs.vm.lab import Accelerator, Guest, Shape, mask_of

NEED = LabNeeds(families=("ipv4", "ipv4"))


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guest:
    """One whose remembered facts are its own."""
    monkeypatch.setattr(locks, "RUN", tmp_path)
    return Guest(Image(Path("/k"), Path("/i"), "6.1"), Shape(2, 512), "ng-x-tester", tmp_path, ("ng0i", "ng0r"))


def test_the_command_line_has_what_was_chosen(guest: Guest) -> None:
    line = " ".join(guest.command("tcg"))
    assert "-accel tcg,thread=multi -cpu max -smp 2 -m 512 -kernel /k" in line
    assert "ifname=ng0i" in line
    assert "ifname=ng0r" in line
    assert "restrict=on,hostfwd=tcp:127.0.0.1:22022-10.0.2.15:22" in line
    assert "-accel kvm -cpu host" in " ".join(guest.command("kvm"))


@pytest.mark.parametrize(
    ("cores", "tap", "card"),
    [(1, "downscript=no", "romfile="), (2, "queues=2", "vectors=6"), (8, "queues=8", "vectors=18")],
)
def test_each_processor_has_a_queue_of_its_own_at_both_taps(guest: Guest, cores: int, tap: str, card: str) -> None:
    guest.shape = Shape(cores, 512)
    line = guest.command("tcg")
    ends = [line[at + 1] for at, word in enumerate(line) if word == "-netdev"]
    cards = [line[at + 1] for at, word in enumerate(line) if word == "-device" and "net-pci" in line[at + 1]]
    assert [one.endswith(tap) for one in ends] == [True, True, False]
    assert all((card in one) and ("mq=on" in one) == (cores > 1) for one in cards[:2])
    # The guest distributes flows: with its flow hash, QEMU stops reading a tap for good when a queue is full.
    assert not any("rss" in one for one in cards)
    # Control has one queue.
    assert "mq" not in cards[2]
    assert "queues" not in ends[2]


@pytest.mark.parametrize(("cores", "mask"), [(2, "3"), (32, "ffffffff"), (33, "1,ffffffff"), (64, "ffffffff,ffffffff")])
def test_the_processors_of_a_guest_are_written_as_the_kernel_reads_them(cores: int, mask: str) -> None:
    assert mask_of(cores) == mask


def test_the_archive_is_of_the_newc_format_and_a_name_that_is_no_text_keeps_its_octets(tmp_path: Path) -> None:
    found = archive([ArchivedFile("natgauge/host", 0o100600, b"12345")])
    assert len(found) % 4 == 0
    at = found.index(b"natgauge/host\0") - 110
    assert found[at : at + 6] == b"070701"
    assert int(found[at + 14 : at + 22], 16) == 0o100600
    assert int(found[at + 54 : at + 62], 16) == 5
    assert b"12345" in found
    assert b"TRAILER!!!" in found
    name = b"caf\xe9"
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("x")
    assert name + b"\0" in archive(image.read_user_files(str(tmp_path), 100).entries)


def own_build(folder: Path) -> Path:
    """A folder with a program, a link to it, and a kernel module."""
    for name, content in (("usr/local/bin/mine", "x"), ("lib/modules/6.1/mine.ko.xz", "y")):
        file = folder / name
        file.parent.mkdir(parents=True)
        file.write_text(content)
    (folder / "usr/local/bin/mine").chmod(0o755)
    (folder / "usr/local/bin/alias").symlink_to("mine")
    return folder


def test_files_of_the_user_keep_their_places_and_never_replace_a_link_of_the_guest(tmp_path: Path) -> None:
    folder = own_build(tmp_path)
    (folder / "sbin").symlink_to("usr/sbin")
    files = image.read_user_files(str(folder), 100)
    # /lib is a link to /usr/lib in a guest.
    assert [(entry.name, oct(entry.mode), entry.content) for entry in files.entries] == [
        ("usr/lib", "0o40755", b""),
        ("usr/lib/modules", "0o40755", b""),
        ("usr/lib/modules/6.1", "0o40755", b""),
        ("usr/lib/modules/6.1/mine.ko.xz", "0o100644", b"y"),
        ("usr", "0o40755", b""),
        ("usr/local", "0o40755", b""),
        ("usr/local/bin", "0o40755", b""),
        ("usr/local/bin/alias", "0o120777", b"mine"),
        ("usr/local/bin/mine", "0o100755", b"x"),
    ]
    assert files.has_modules
    (folder / "usr/local/bin/mine").chmod(0o700)
    assert image.read_user_files(str(folder), 100).digest != files.digest


def test_a_guest_gets_keys_and_the_users_files_and_lists_modules_only_where_there_are_some(
    guest: Guest, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    for name in ("host", "authorized"):
        (keys / name).write_text(name)
    assert [entry.name for entry in guest._added(keys)] == ["natgauge", "natgauge/host", "natgauge/authorized"]
    guest.files = image.read_user_files(str(own_build(tmp_path / "own")), 100)
    names = [entry.name for entry in guest._added(keys)]
    assert names[3] == "natgauge/modules"
    assert names[-1] == "usr/local/bin/mine"


def test_keys_of_a_guest_are_readable_by_root_alone(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_keys(command: list[str]) -> None:
        for name in (command[-1], f"{command[-1]}.pub"):
            Path(name).touch()

    monkeypatch.setattr(lab, "_run", make_keys)
    (tmp_path / "image").write_bytes(b"")
    guest.image, guest.taps = Image(Path("/k"), tmp_path / "image", "6.1"), ()  # type: ignore[assignment] # no taps
    guest.prepare()
    secrets = [path for path in tmp_path.iterdir() if path.name not in {"image", "ssh_config"}]
    assert {path.name: path.stat().st_mode & 0o077 for path in secrets} == {"natgauge": 0, "initrd": 0}


@pytest.mark.parametrize("missing", ["debootstrap", "gpgv", "keyring", None])
def test_a_guest_is_built_of_signed_packages_only(
    missing: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    asked = list[list[str]]()

    def run(command: list[str], *_: object) -> None:
        asked.append(command)
        raise HostError("enough")

    monkeypatch.setenv(image.VARIABLE, str(tmp_path))
    monkeypatch.setattr(capabilities, "require", lambda *_: None)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else name)
    monkeypatch.setattr(guest_building, "_run", run)
    keyring = tmp_path / "keyring"
    if missing != "keyring":
        keyring.touch()
    monkeypatch.setattr(guest_building, "KEYRING", keyring)
    with golden.raises(HostError):
        guest_building.build(lambda _: None)
    signed = ["debootstrap", "--force-check-gpg", f"--keyring={keyring}"]
    assert [command[:3] for command in asked] == ([] if missing else [signed])


def test_files_that_a_guest_cannot_have_are_refused(tmp_path: Path, golden: Golden) -> None:
    with golden.raises(UsageError):
        image.read_user_files("/nowhere", 100)
    with golden.raises(UsageError):
        image.read_user_files(str(tmp_path), 100)
    (tmp_path / "large").write_bytes(bytes(3 << 20))
    with pytest.raises(UsageError, match=r"contains 3 MiB, .* at most 2 MiB are allowed, .* raise --guest-memory"):
        image.read_user_files(str(tmp_path), 2 << 20)
    (tmp_path / "large").unlink()
    os.mkfifo(tmp_path / "pipe")
    with golden.raises(UsageError):
        image.read_user_files(str(tmp_path), 100)
    (tmp_path / "pipe").rename(tmp_path / "tmp")
    with golden.raises(UsageError):
        image.read_user_files(str(tmp_path), 100)


@pytest.mark.parametrize(
    ("host", "tried"),
    [
        ("its KVM works", ["kvm"]),
        ("its KVM is broken", ["kvm", "tcg"]),
        ("without KVM", ["tcg"]),
    ],
)
def test_kvm_is_used_where_a_guest_comes_up_with_it(
    host: str, tried: list[str], guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: host != "without KVM")
    asked: list[str] = []

    def up(_self: Guest, accelerator: Accelerator, _seconds: float) -> bool:
        asked.append(accelerator)
        return accelerator == "tcg" or host == "its KVM works"

    monkeypatch.setattr(Guest, "_up", up)
    assert guest.boot(None) == tried[-1]
    assert asked == tried
    # What was found out is not found out again.
    asked.clear()
    assert guest.boot(None) == tried[-1]
    assert asked == tried[-1:]
    if host == "without KVM":
        with pytest.raises(HostError, match="no /dev/kvm"):
            guest.boot("kvm")


def test_a_guest_that_does_not_come_up_tells_its_last_words(
    guest: Guest, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(Guest, "_up", lambda *_: False)
    (guest.folder / "console").write_text("Linux\nKernel panic - not syncing: no init\n\n")
    with golden.raises(BrokenError):
        guest.boot("tcg")


def test_shapes_out_of_range_or_beyond_the_memory_of_this_host_are_refused(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    for shape in (Shape(0, 1024), Shape(65, 1024), Shape(1, 383), Shape(1, 1 << 21)):
        with pytest.raises(UsageError, match="guest"):
            shape.checked()
    monkeypatch.setattr(lab, "available_octets", lambda: 1024**3)
    Shape(1, 256).refuse_short_memory()
    with golden.raises(HostError):
        Shape(1, 512).refuse_short_memory()


def test_a_guest_that_was_not_built_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(image.VARIABLE, str(tmp_path))
    with pytest.raises(HostError, match="natgauge lab guest"):
        image.find()
    place = image.folder()
    place.mkdir(parents=True)
    (place / "kernel").write_text("6.1.0-50-amd64\n")
    assert image.find() == Image(place / "vmlinuz", place / "initrd", "6.1.0-50-amd64")
    assert guest_building.build(print) == image.find()
    # Another way of packing is another guest.
    before = image.folder()
    monkeypatch.setattr(image, "PACKAGES", (*image.PACKAGES, "mtr"))
    assert image.folder() != before


def test_the_lab_is_planned_without_a_guest_and_names_the_users_files_by_their_digest(tmp_path: Path) -> None:
    lab = vm.plan("x", vm.VmOptions(guest_cores=2, guest_accelerator="tcg"), NEED)
    assert lab.emulated
    assert vm.KIND.cores_option == "guest_cores"
    assert [device.name for device in lab.devices] == ["gateway"]
    assert lab.ground.mtu == 1500
    assert "guest_files" not in lab.parameters()
    folder = str(own_build(tmp_path))
    lab = vm.plan("x", vm.VmOptions(guest_files=folder, guest_accelerator="tcg"), NEED)
    assert lab.parameters()["guest_files"] == image.read_user_files(folder, 100).digest
    with pytest.raises(UsageError, match="guest cores: 0"):
        vm.plan("x", vm.VmOptions(guest_cores=0), NEED)
