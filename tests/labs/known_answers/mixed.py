# SPDX-License-Identifier: Apache-2.0
"""A device whose version changes between the repetitions of a measurement, as a user who upgrades it would see it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.labs.known_answers.devices import LAB_NAME
from tests.labs.known_answers.rows import Evidence, Read
from tests.labs.rough import settings_of, slow_tester
from tests.plans import with_trials

import natgauge
from natgauge.analysis.derived import comparable
from natgauge.procedures.kit.results import make_result
from natgauge.records.measurement import Result
from natgauge.stored.find_results import read_summary

METRIC = "connection-rate"
#: Repetitions, and connections of each.
REPETITIONS, CONNECTIONS = 2, 500
#: Each lab made for a repetition asks for the version once; the last one stays.
RECIPE = """
name = "upgraded"
title = "Linux IPv4 forwarding that reports the versions of a list, one after the other"
kind = "routing"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = false
source = "unchanged"
extends = ["linux-ipv4"]

[environment]
VERSIONS = "{versions}"

[verbs]
version = '''
read -r now < "$VERSIONS"
sed -i '1{{$!d}}' "$VERSIONS"
echo "router $now"
'''
"""


def upgraded() -> Evidence:
    """Measure in real labs a series of two versions, and then one of the later version alone."""
    with tempfile.TemporaryDirectory() as name, slow_tester():
        folder = Path(name)
        recipe, versions = folder / "upgraded.toml", folder / "versions"
        recipe.write_text(RECIPE.format(versions=versions))

        def measured(every: str) -> Result:
            versions.write_text(every)
            return natgauge.measure(
                METRIC,
                recipe,
                results=folder,
                lab_name=LAB_NAME,
                connections=CONNECTIONS,
                **{**settings_of(METRIC), "repeat": REPETITIONS},
            )

        answers = measured("1\n2\n"), measured("2\n")
        said = tuple(read_summary(answer.folder) for answer in answers)
    repetitions = with_trials(answers[0])
    result = make_result(answers[0].metric, answers[0].unit, {}, repetitions)
    return Evidence(repetitions[-1].attempts[-1].outcome, {}, result, said)


def doubt_of(series: int) -> Read:
    """The doubt that says that repetitions are of several devices, of the first series (0) or the second (1)."""
    return lambda evidence: next((one.word for one in evidence.said[series].doubts if one.word == "mixed"), "none")


def differing(evidence: Evidence) -> str:
    """The names of the parameters by which the two series are not comparable."""
    return ", ".join(one.name for one in comparable(*evidence.said)) or "none"
