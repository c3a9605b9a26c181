# SPDX-License-Identifier: Apache-2.0
"""`--lab vm`: a QEMU guest with a kernel of its own, built of Debian's packages by `natgauge lab guest`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from natgauge.inputs.input import FileText, chosen
from natgauge.labs.common.port_options import SenderOptions
from natgauge.labs.contract import Kind, LabNeeds
from natgauge.labs.ssh import undo

if TYPE_CHECKING:
    from natgauge.labs.vm.lab import GuestLab


@dataclass(frozen=True, kw_only=True, slots=True)
class VmOptions(SenderOptions):
    """Options of the guest."""

    guest_cores: int = chosen(1, "Virtual CPUs of the guest", label="device cores", parameter="device_cores")
    guest_memory: int = chosen(1024, "Memory of the guest, in MiB", "MiB", label="memory of the guest")
    guest_accelerator: Literal["kvm", "tcg"] | None = chosen(
        None,
        "Virtualization of the guest's CPUs: by hardware (kvm), or emulation (tcg)",
        label="accelerator of the guest",
        default="kvm if available",
    )
    guest_files: str | None = chosen(
        None,
        "Folder whose content is put into the guest: programs and kernel modules of your own build",
        type=FileText("FOLDER"),
        # The folder is stored as a digest of its content.
        label="files added to the guest",
    )


def plan(name: str, options: VmOptions, need: LabNeeds) -> GuestLab:
    """A guest; it is booted when the lab is entered."""
    # What may be chosen is known without what boots guests.
    from natgauge.labs.vm.lab import GuestLab, Shape  # noqa: PLC0415

    return GuestLab(
        name,
        need,
        shape=Shape(options.guest_cores, options.guest_memory),
        accelerator=options.guest_accelerator,
        sender_cpus=options.sender_cores,
        files=options.guest_files,
    )


KIND = Kind(
    summary="devices in a QEMU guest with its own kernel",
    options=VmOptions,
    plan=plan,
    cores_option="guest_cores",
    undo=undo,
)
