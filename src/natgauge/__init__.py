# SPDX-License-Identifier: Apache-2.0
"""natgauge measures NAT gateways the way RFC 9693 and RFC 8219 prescribe.

`measure` measures one gateway, `compare` compares the cost of gateways, `audit` examines what a gateway does,
`selftest` measures the tester itself, and `doctor` reports what this host can measure. The recipes of
`natgauge.gateways` describe the gateways. Errors are `natgauge.errors.NatgaugeError`s.

Names are loaded when they are first used, so `import natgauge` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from natgauge.audits.audit import Audited, audit
    from natgauge.comparisons.compare import Compared, compare
    from natgauge.measurements.measure import measure
    from natgauge.records.measurement import Result
    from natgauge.tester.doctor import examine as doctor
    from natgauge.tester.own_rates import SelfTest
    from natgauge.tester.own_rates import run_selftest as selftest
    from natgauge.version import VERSION as __version__  # noqa: N811 - the name that Python gives it

__all__ = [
    "Audited", "Compared", "Result", "SelfTest", "__version__", "audit", "compare", "doctor", "measure", "selftest",
]  # fmt: skip

#: Public name -> the module that has it, and its name there.
_LAZY: Final = {
    "Audited": ("natgauge.audits.audit", "Audited"),
    "Compared": ("natgauge.comparisons.compare", "Compared"),
    "Result": ("natgauge.records.measurement", "Result"),
    "SelfTest": ("natgauge.tester.own_rates", "SelfTest"),
    "__version__": ("natgauge.version", "VERSION"),
    "audit": ("natgauge.audits.audit", "audit"),
    "compare": ("natgauge.comparisons.compare", "compare"),
    "doctor": ("natgauge.tester.doctor", "examine"),
    "measure": ("natgauge.measurements.measure", "measure"),
    "selftest": ("natgauge.tester.own_rates", "run_selftest"),
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'natgauge' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(import_module(module), attribute)
