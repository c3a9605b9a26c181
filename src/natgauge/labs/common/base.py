# SPDX-License-Identifier: Apache-2.0
"""Base of labs made of network namespaces: a register, and the steps that make and undo a lab."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from pyroute2.netlink.exceptions import NetlinkError

from natgauge.errors import HostError, of_host
from natgauge.host import capabilities
from natgauge.inputs.measuring_types import format_cores
from natgauge.interruption import uninterrupted
from natgauge.labs.common import namespaces
from natgauge.labs.common.device import NamespaceDevice, ThisMachine
from natgauge.labs.common.links import VethCable, drop_counters, make, prepare_namespace
from natgauge.labs.common.locks import check_name, directory_of
from natgauge.labs.common.register import Register, kept_settings
from natgauge.labs.contract import TESTER_PLACES, Device, ExternalDevice, LabCounters, Port
from natgauge.words import Placement

#: The tester's ports, in its namespace.
INITIATOR_PORT = "ng0i"
RESPONDER_PORT = "ng0r"
#: What a real server's home is called.
SERVER = "server"
#: Nice value of what is measured, and of a server, so that nothing else of this machine slows it down.
FIRST = -20
#: Interface numbers of the first ends of a lab's cables count from here.
FIRST_INDEX = 100


class MadeLab(ABC):
    """A lab that natgauge makes and takes down. Use it as a context manager, or `up` and `down`."""

    kind: ClassVar[str]
    placement: Placement
    initiator: Port
    responder: Port
    devices: Sequence[Device]
    external: ExternalDevice | None = None
    server: Device | None = None

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        self.name = name
        self.settings = dict(settings)
        self.tester = f"{namespaces.PREFIX}{name}-tester"
        self._register: Register | None = None
        self._adopts = False
        self._adopted_length = 0

    @classmethod
    def adopt(cls, name: str) -> Self | None:
        """A lab of this kind that was kept under this name (`natgauge lab up`); None = there is none.

        It is taken in its `with` block, and stays up afterwards as it was found.
        """
        settings = kept_settings(check_name(name), cls.kind)
        if settings is None:
            return None
        lab = cls(name, **settings)
        lab._adopts = True
        return lab

    @property
    def is_reused(self) -> bool:
        """Whether the lab was kept up before this process took it."""
        return self._adopts

    @abstractmethod
    def _cables(self) -> Sequence[VethCable]:
        """Every cable, from the Initiator to the Responder."""

    @property
    def cables(self) -> tuple[VethCable, ...]:
        """Every cable with both of its ends, from the Initiator to the Responder."""
        return tuple(self._cables())

    def _prepare(self) -> None:  # noqa: B027 - most labs have nothing to choose
        """Make the remaining choices just before the lab is made."""

    def _finish(self) -> None:  # noqa: B027 - most labs have nothing left to do
        """Do the remaining steps once all cables are connected."""

    def _fit(self) -> None:  # noqa: B027 - most labs fit whatever is done in them
        """Adapt the lab to its present use; called for each use."""

    def up(self) -> Self:
        """Make the lab, or take the kept one; when that fails half way, it is undone."""
        capabilities.require("making a lab", *capabilities.MEASURING)
        capabilities.refuse_lacking()
        try:
            return self._take() if self._adopts else self._made()
        except (OSError, RuntimeError, MemoryError, NetlinkError) as error:
            # Whatever the system refuses on the way.
            reason = OSError(error.code, os.strerror(error.code)) if isinstance(error, NetlinkError) else error
            refused = of_host(reason, f"lab {self.name}: cannot be made")
            if refused is None and isinstance(reason, OSError):
                refused = HostError(f"lab {self.name}: cannot be made: {reason}")
            if refused is None:
                raise
            raise refused from error

    def _made(self) -> Self:
        self._prepare()
        self._register = register = Register.begin(self.name, self.kind, self.settings)
        try:
            cables = self._cables()
            self._make_directories(register)
            for name in dict.fromkeys(end.netns for cable in cables for end in cable.ends):
                make_namespace(register, name, forwards=name != self.tester)
            for cable in cables:
                make(cable)
            self._finish()
            self._fit()
        except BaseException:
            self.down()
            raise
        return self

    def _take(self) -> Self:
        self._register = register = Register.reopen(self.name)
        try:
            register.require_kept(self.kind)
            self._adopted_length = register.length
            self._fit()
        except BaseException:
            self._let_go()
            raise
        return self

    @uninterrupted()
    def _let_go(self) -> None:
        """Leave a kept lab as it was found."""
        register, self._register = self._register, None
        if register is not None:
            with register.ended():
                if self._adopts:
                    register.undo_since(self._adopted_length)

    def _make_directories(self, register: Register) -> None:
        """Give each device, and a server, the directory its environment names."""
        homes = [*self.devices, *(() if self.server is None else (self.server,))]
        private = [home.environment["NG_WORK"] for home in homes]
        for directory in [register.directory, *map(Path, private)] if private else []:
            register.make_directory(directory)

    def _home_of_server(self, gateway_mac: str, cpus: Sequence[int]) -> NamespaceDevice:
        """A server's home: the tester's namespace, at whose port the frames arrive that it answers."""
        environment = {
            "NG_WORK": str(directory_of(self.name) / SERVER),
            "NG_PORT": RESPONDER_PORT,
            "NG_GATEWAY_MAC": gateway_mac,
            "NG_CPUS": format_cores(cpus),
        }
        port = RESPONDER_PORT
        return NamespaceDevice(SERVER, self.tester, port, port, environment, ThisMachine(lambda: self.register), FIRST)

    @uninterrupted()
    def down(self) -> None:
        """Undo all that was made, last first; nothing happens when nothing is up."""
        register, self._register = self._register, None
        if register is not None:
            with register.ended():
                register.undo()

    def keep(self) -> None:
        """Let the lab stay up when this process ends; `natgauge lab down` takes it down."""
        self.register.refuse_kept()
        self.register.keep()

    @property
    def register(self) -> Register:
        """The list of what the lab made."""
        if self._register is None:
            raise RuntimeError(f"lab {self.name} is not up")
        return self._register

    def counters(self) -> LabCounters:
        """Return the drops alone: in the sender's context, the cores of the device are the sender's."""
        return LabCounters(self.dropped())

    def dropped(self) -> Mapping[str, int]:
        """Frames dropped so far, by place: "initiator port received", "gateway inside sent" ...

        A frame that finds a full ring between two veths may be counted at both ends.
        """
        figures: dict[str, int] = {}
        places = dict(zip((INITIATOR_PORT, RESPONDER_PORT), TESTER_PLACES, strict=True))
        for netns, prefix in self._counted().items():
            for interface, dropped in drop_counters(netns).items():
                if place := places.get(interface) if netns == self.tester else interface:
                    figures |= dropped.at(f"{prefix}{place}")
        return figures

    def _counted(self) -> Mapping[str, str]:
        """Namespaces whose drop counters are read, with what precedes the interface's name in the result."""
        return {self.tester: ""}

    def __enter__(self) -> Self:
        return self if self._register else self.up()

    def __exit__(self, *exception: object) -> None:
        if self._register and self._register.kept:
            self._let_go()
        else:
            self.down()


def make_namespace(register: Register, name: str, *, forwards: bool) -> None:
    """Make a namespace of a lab, written down before, whose interfaces never speak by themselves."""
    namespaces.refuse_existing(name)
    register.record("namespace", name=name)
    namespaces.create(name)
    namespaces.inside(name, lambda: prepare_namespace(forwards=forwards))
