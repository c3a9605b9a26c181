# SPDX-License-Identifier: Apache-2.0
"""What the segments at the tester's ports say of a device, and where it is said."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.fake_engine import PORT
from tests.unit.test_trials import RESULT, STREAM

from natgauge.agreement.generated import TrialResult
from natgauge.errors import BrokenError
from natgauge.trial import forwarding
from natgauge.trial.judging import signs_of

NOTHING = {"resets": 0, "renumbered": 0, "restamped": 0}


def result(
    messages: dict[str, tuple[int, int]], initiator: dict[str, int] | None, responder: dict[str, int] | None
) -> TrialResult:
    """A trial with these arrivals (right ones, wrong ones) and signs at the two ports."""

    def port(signs: dict[str, int] | None) -> dict[str, Any]:
        return PORT if signs is None else {**PORT, "device_signs": {**NOTHING, **signs}}

    stream = {
        **STREAM,
        "received_frames": 0,
        "messages": [{"name": name, "received": right, "wrong": wrong} for name, (right, wrong) in messages.items()],
    }
    ports = {"initiator": port(initiator), "responder": port(responder)}
    return TrialResult.model_validate({**RESULT, "phase1": stream, "ports": ports})


ALL = {"syn": (8, 0), "syn-ack": (8, 0), "ack": (8, 0)}


@pytest.mark.parametrize(
    ("messages", "initiator", "responder", "said"),
    [
        (ALL, {}, {}, []),
        ({**ALL, "syn": (6, 0), "syn-ack": (6, 2)}, {}, {}, ["2 SYN-ACKs were not the Responder's"]),
        (
            {**ALL, "syn-ack": (16, 0)},
            {},
            {},
            ["8 more SYN-ACKs arrived than the Responder sent"],
        ),
        ({**ALL, "syn": (0, 0), "syn-ack": (0, 8)}, {}, {}, ["8 SYN-ACKs were not the Responder's"]),
        ({**ALL, "syn-ack": (5, 3)}, {}, {}, ["3 segments arrived with other sequence numbers"]),
        (dict.fromkeys(ALL, (0, 0)), {}, {"renumbered": 8}, ["8 segments arrived with other sequence numbers"]),
        ({"syn": (8, 0)}, {}, {}, []),
        (ALL, {"restamped": 8}, {}, ["8 SYN-ACKs arrived with other time stamps"]),
        (ALL, {"resets": 2}, {"resets": 1}, ["2 resets arrived at the Initiator", "1 resets arrived at the Responder"]),
    ],
)
def test_each_sign_says_what_the_gateway_does(
    messages: dict[str, tuple[int, int]], initiator: dict[str, int], responder: dict[str, int], said: list[str]
) -> None:
    signs = [str(sign) for sign in signs_of(result(messages, initiator, responder))]
    assert len(signs) == len(said)
    assert all(sign.startswith(start) for sign, start in zip(signs, said, strict=True)), signs


def test_other_transports_have_no_signs() -> None:
    assert signs_of(result({"datagram": (8, 0)}, None, None)) == ()


def test_a_server_that_answers_everything_wrong_is_not_said_to_be_silent() -> None:
    """Of a server that refused each query, the check said that none of 8 frames came back, and no more."""
    refusing = result({"response": (0, 8)}, None, None)
    with pytest.raises(BrokenError, match=r"answers wrong: .*: 0 of 10 frames came back, .*8 with wrong content"):
        forwarding.whole(refusing, last=False, faults={})
    with pytest.raises(BrokenError, match=r"does not forward: .* 1 with wrong content"):
        forwarding.whole(result({"response": (0, 1)}, None, None), last=False, faults={})


def test_the_check_before_the_first_trial_names_the_behaviour() -> None:
    proxied = result({"syn": (0, 0), "syn-ack": (0, 8), "ack": (0, 0)}, {}, {})
    with pytest.raises(BrokenError, match=r"does not forward: .*the gateway answered SYNs itself, as a SYN proxy does"):
        forwarding.whole(proxied, last=True, faults={})
