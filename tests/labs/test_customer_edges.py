# SPDX-License-Identifier: Apache-2.0
"""Customer edges before a relay that the tester emulates, or before their own, and faults that it must name."""

from __future__ import annotations

from typing import Final

import pytest
from tests.labs.program import own
from tests.labs.rough import SLOW_RATES, settings_of

from natgauge.errors import BrokenError
from natgauge.inputs.question import Question
from natgauge.labs.contract import Device
from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.words import Verdict

pytestmark = pytest.mark.waits


def question(gateway: str, subscribers: int) -> Question:
    asked = {"lab_name": own(f"e2e-{gateway}"), "subscribers": subscribers, "connections": 1000}
    return ask("throughput", gateway, {**asked, **settings_of("throughput")})


@pytest.mark.parametrize("gateway", ["map-e-ce", "lwb4", "b4"])
def test_customer_edges_that_tunnel_have_a_throughput(gateway: str) -> None:
    asked, kept = question(gateway, 10), Memory()
    with Bench(asked.cell, rates=SLOW_RATES) as bench:
        found = bench.ready(bench.plan("throughput", asked.settings), kept).run()
    assert found.summary.median > 0
    assert Verdict.PASS in [trial["verdict"] for trial in kept.trials]


#: Subscriber 1 has PSID 2, ports 4096 to 6143.
WRONG_RANGE: Final = """
nft -f - <<RULES
delete element ip natgauge sets { 10.0.0.3 }
add element ip natgauge sets { 10.0.0.3 : 198.18.0.1 . 6144-8191 }
RULES
"""
HOLE: Final = """
natgauge-softwire detach --interface "$NG_OUTSIDE"
sed -i '/^198.18.0.1 2 /d' "$NG_WORK/bindings"
natgauge-softwire attach --interface "$NG_OUTSIDE" --technology lw4o6 --role ce --relay 2001:db8:ffff::1 \\
    --bindings "$NG_WORK/bindings" --psid-length 5 --psid-offset 0
"""


def run(device: Device, snippet: str) -> None:
    answer = device.run(snippet)
    assert answer.status == 0, answer.stderr


@pytest.mark.slow("a subscriber is named only after several more tries, each a trial")
@pytest.mark.parametrize(
    ("gateway", "fault", "kind"),
    [
        ("map-t-ce", WRONG_RANGE, "mistranslated from inside; look at its rules"),
        ("lwb4", HOLE, "lost from inside, the device counted no_subscriber; look at its rules"),
        # The relay finds nothing wrong: in its eyes the frames are those of the subscriber whose ports they have.
        ("map-t", WRONG_RANGE, "mistranslated from inside; look at its rules"),
    ],
    ids=["wrong range", "hole in the binding table", "wrong range, with the relay"],
)
def test_an_edge_that_leaves_its_set_or_has_no_binding_is_named(gateway: str, fault: str, kind: str) -> None:
    asked = question(gateway, 2)
    with Bench(asked.cell, rates=SLOW_RATES) as bench:
        measurer = bench.ready(bench.plan("throughput", asked.settings), Memory(), prove=False).measurer
        measurer.check_subscribers()
        run(bench.lab.devices[0], fault)
        with pytest.raises(BrokenError) as refusal:
            measurer.check_subscribers()
    said = str(refusal.value)
    assert "for 1 of 2 subscribers: subscriber 1 (198.18.0.1, PSID 2, 2001:db8:0:110:0:c612:1:2): " in said
    assert kind in said
    assert "\n" not in said
