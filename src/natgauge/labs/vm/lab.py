# SPDX-License-Identifier: Apache-2.0
"""The `vm` lab: the `ssh` lab, with a guest for the other machine and taps for the ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from natgauge.host import capabilities
from natgauge.interruption import uninterrupted
from natgauge.labs.common.base import make_namespace
from natgauge.labs.common.locks import directory_of
from natgauge.labs.common.namespaces import PREFIX
from natgauge.labs.common.register import Register
from natgauge.labs.contract import LabNeeds
from natgauge.labs.ssh.lab import RemoteLab
from natgauge.labs.ssh.openssh import SshHost
from natgauge.labs.ssh.segment import ChosenMachine
from natgauge.labs.vm import image, user_files
from natgauge.labs.vm.qemu import Accelerator, Guest, Shape
from natgauge.labs.vm.user_files import UserFiles

_TAPS: Final = ("ng0i", "ng0r")
#: The guest's interfaces at the other ends of the taps.
_INTERFACES: Final = ("eth0", "eth1")


class GuestLab(RemoteLab):
    """Devices in namespaces of a guest that is booted for the lab and ends with it."""

    kind: ClassVar[str] = "vm"

    def __init__(  # noqa: PLR0913 - each part of a guest by its name
        self,
        name: str,
        need: LabNeeds,
        *,
        shape: Shape,
        accelerator: Accelerator | None = None,
        sender_cpus: Sequence[int] | None = None,
        files: str | None = None,
    ) -> None:
        self._tester = f"{PREFIX}{name}-tester"
        folder = directory_of(name)
        super().__init__(
            name,
            need,
            machines=[ChosenMachine(SshHost("guest", str(folder / "ssh_config"), self._tester), _INTERFACES)],
            ports=((_TAPS[0], self._tester), (_TAPS[1], self._tester)),
            sender_cpus=sender_cpus,
        )
        self.initiator, self.responder = (replace(port, tap=True) for port in (self.initiator, self.responder))
        self._shape = shape.checked()
        # The guest keeps its files in memory.
        self._files = UserFiles() if files is None else user_files.read(files, (shape.memory << 20) // 2)
        self._wanted = accelerator
        self._accelerator: Accelerator = accelerator or "tcg"
        self._guest: Guest | None = None
        # If the user chose no accelerator, this is known only when the guest runs.
        self.emulated = self._accelerator == "tcg"

    def parameters(self) -> Mapping[str, Any]:
        """Return the guest's options, in addition to those of the `ssh` lab."""
        guest = {"guest_memory": self._shape.memory, "guest_accelerator": self._accelerator}
        files = {"guest_files": self._files.digest} if self._files.entries else {}
        return {**super().parameters(), **guest, **files}

    def _prepare(self, register: Register) -> None:
        capabilities.require("starting a guest", *capabilities.MEASURING)
        base_image = image.find()
        self._shape.refuse_short_memory()
        make_namespace(register, self._tester, forwards=False)
        self._guest = guest = Guest(base_image, self._shape, self._tester, register.directory, _TAPS, self._files)
        guest.prepare()
        self._accelerator = guest.boot(self._wanted)
        self.emulated = self._accelerator == "tcg"

    def _boot_machine(self) -> None:
        """Let the guest distribute flows over its processors by a hash of addresses and ports.

        That is receive packet steering (Documentation/networking/scaling.rst). A network card would do it itself.
        """
        if self._shape.cores > 1:
            queues = " ".join(f"/sys/class/net/{name}/queues/rx-*/rps_cpus" for name in _INTERFACES)
            (segment,) = self._segments
            segment.remote.ask(f"for queue in {queues}; do echo {mask_of(self._shape.cores)} > $queue || exit 1; done")

    @uninterrupted()
    def down(self) -> None:
        """End the guest, and give back what it needed; nothing happens when nothing is up."""
        guest, self._guest = self._guest, None
        if guest is not None:
            guest.end()
        super().down()

    def _remember(self, at: int, undo: str, says: str) -> None:
        """The guest ends with the lab, and all that was made in it."""


def mask_of(cores: int) -> str:
    """Return the first `cores` processors, 1 to 64, in the form of a kernel mask: groups of 32 bits."""
    mask = f"{(1 << cores) - 1:x}"
    return f"{mask[:-8]},{mask[-8:]}" if len(mask) > 8 else mask
