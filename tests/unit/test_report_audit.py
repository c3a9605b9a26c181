# SPDX-License-Identifier: Apache-2.0
"""Audits as text, table and difference, and what is refused before a lab is made."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.labs.nat44 import variant
from tests.unit.conftest import Ran, Report
from tests.unit.golden import Golden
from tests.unit.made_audits import record, requirement

import natgauge
from natgauge import Audited
from natgauge.cli import run
from natgauge.errors import UsageError


def stored(folder: Path, name: str, one: Any) -> Path:
    path = folder / name
    path.mkdir()
    (path / "audit.json").write_text(json.dumps(one.document()))
    return path


def all_stored(folder: Path, *records: Any) -> list[str]:
    """The folders of these audits: 1, 2, ..."""
    return [str(stored(folder, str(number), one)) for number, one in enumerate(records, start=1)]


def test_a_record_is_read_as_it_was_written(tmp_path: Path, ran: Ran) -> None:
    (read,) = json.loads(ran(["report", *all_stored(tmp_path, record()), "--format", "json"]).out)["audits"]
    assert read["record"] == record().document()


def test_the_text_has_classes_verdicts_and_counts(report: Report, golden: Golden) -> None:
    golden(report(record(requirement(), requirement("REQ-9", "fails", measured="not delivered"))))


def test_an_audit_without_a_verdict_begins_with_the_reason(report: Report, golden: Golden) -> None:
    unseen = [requirement(f"REQ-{number}", "not seen", measured="no frame arrived") for number in (1, 2)]
    golden(report(record(*unseen, requirement("REQ-3", "not applicable"))).splitlines()[:2])


def test_the_first_lines_say_that_no_time_out_was_tested_and_how_many_musts_have_no_verdict(
    report: Report, golden: Golden
) -> None:
    unseen = [requirement(f"REQ-{at}", "not seen", level=level) for at, level in enumerate(("MUST", "MUST", "SHOULD"))]
    waited = record(requirement(), *unseen, requirement("REQ-9", "not applicable"))
    hurried = waited.model_copy(update={"wait_seconds": 0.0, "gateway": "other"})
    golden([report(waited).splitlines()[0], *report(hurried).splitlines()[:2]])
    assert "of them" not in report(record(requirement(), unseen[2])).splitlines()[0]
    assert "no verdict" not in report(record(requirement())).splitlines()[0]
    # It is said once.
    assert report(hurried).count("longest wait") == 1
    assert "Time-outs of other were not tested (longest wait 0 s)." in report(waited, hurried)
    assert "not tested" not in report(waited)


def test_what_a_gateway_must_do_and_does_not_is_named_once_with_all_that_require_it(
    report: Report, golden: Golden
) -> None:
    """Seen: of seven failed requirements of level MUST four were "4 more", and none had its subject."""
    failed = [
        requirement("REQ-1", "fails", text="one mapping"),
        requirement("REQ-9", "fails", text="hairpinning"),
        requirement("REQ-1", "fails", text="one mapping", rfc=5382, transport="tcp"),
    ]
    golden(report(record(*failed, requirement("REQ-8", "fails", level="SHOULD"))).splitlines()[:3])
    many = [requirement(f"REQ-{at}", "fails", text=f"text {at}") for at in range(1, 13)]
    golden(report(record(*many)).splitlines()[1])


def test_the_answer_says_at_its_top_which_transport_was_not_seen_and_why(report: Report) -> None:
    unseen = [requirement(f"REQ-{number}", "not seen", transport="tcp", measured="routed") for number in (1, 2)]
    other = requirement("REQ-3", "not seen", transport="tcp", measured="its log says")
    udp = record().document()["classes"]["udp"]
    seen = record(requirement(), other, *unseen, classes={"udp": udp, "tcp": dict.fromkeys(udp)})
    assert report(seen).splitlines()[1] == "No class of behaviour was seen for TCP: routed."
    assert "No class of behaviour" not in report(record(requirement(), *unseen))


def test_sentences_of_a_table_have_the_rest_of_the_line(report: Report, golden: Golden) -> None:
    measured = "all flows of all inside hosts had one outside address"
    text = report(record(*(requirement(f"REQ-{number}", measured=measured) for number in range(9))), width=80)
    golden(text)
    assert max(map(len, text.splitlines())) <= 80


def test_a_declaration_that_differs_is_shown_beside_the_verdict(report: Report, golden: Golden) -> None:
    declared = (requirement(declared=False), requirement("REQ-9", declared=True))
    assert (
        report(record(*declared)).count("(declared: ")
        == report(record(*declared)).count("meets (declared: fails)")
        == 1
    )
    both = report(record(*declared), record(gateway="other"))
    (sentence,) = (line for line in both.splitlines() if "declares" in line)
    golden(sentence)


def test_a_difference_lists_changes_and_its_status_says_what_is_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worse = record(requirement(verdict="fails"), filtering="address-dependent")
    before, after = all_stored(tmp_path, record(filtering="endpoint-independent"), worse)
    assert run(["diff", before, after]) == 1
    out = capsys.readouterr().out
    assert "RFC4787-REQ-8" in out
    assert "address-dependent" in out
    assert run(["diff", after, before, "--json"]) == 0
    changes = json.loads(capsys.readouterr().out)["audits"]
    assert [(one["what"], one["before"], one["after"]) for one in changes] == [
        ("filtering", "address-dependent", "endpoint-independent"),
        ("RFC4787-REQ-8", "fails", "meets"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("meets", "not seen", (5, 1)),
        ("meets", "not applicable", (5, 1)),
        ("fails", "not seen", (5, 1)),
        ("not seen", "meets", (5, 1)),
        ("not seen", "not applicable", (5, 0)),
    ],
)
def test_a_difference_does_not_take_what_is_undecided_now_for_no_change(
    before: str, after: str, told: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, one_sided = told
    assert (
        run(["diff", *all_stored(tmp_path, *(record(requirement(verdict=one)) for one in (before, after)))]) == status
    )
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("Behaviour of mine (audits): 0 verdicts differ (0 worse, 0 better)")
    assert (f"; {one_sided} have a verdict in one run only" in first) == bool(one_sided)
    # One of both has no verdict at all.
    assert first.endswith("cannot tell, for an audit saw almost nothing") == ("not seen" in (before, after))


@pytest.mark.parametrize(("of_second", "status"), [("meets", 0), ("fails", 1)])
def test_a_difference_counts_what_neither_audit_has_seen(
    of_second: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """A gateway of which 14 requirements could not be told was said to have changed in none."""
    unseen = [requirement(f"REQ-{number}", "not seen") for number in (1, 2, 3)]
    alike = [*unseen, requirement("REQ-4"), requirement("REQ-5", "not applicable")]
    both = [record(*alike, requirement("REQ-8", verdict)) for verdict in ("meets", of_second)]
    assert run(["diff", *all_stored(tmp_path, *both)]) == status
    golden(capsys.readouterr().out.splitlines()[:2])


def test_audits_without_a_common_gateway_are_not_compared(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    for name, gateways in (("a", ("mine", "other")), ("b", ("mine", "other")), ("c", ("third", "fourth"))):
        (tmp_path / name).mkdir()
        all_stored(tmp_path / name, *(record(gateway=gateway) for gateway in gateways))
    first, again, others = (str(tmp_path / name) for name in "abc")
    assert "Behaviour of mine, other (audits): nothing changed" in ran(["diff", first, again]).out
    golden(ran(["diff", first, others], 2).err)


def test_an_audit_that_only_one_run_has_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    for name, gateways in (("a", ("mine", "other")), ("b", ("mine", "third"))):
        (tmp_path / name).mkdir()
        for gateway in gateways:
            stored(tmp_path / name, gateway, record(gateway=gateway))
    assert run(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 5
    golden(capsys.readouterr().out.splitlines())


def versions(folder: Path, *names: str) -> list[Path]:
    """Audits of versions of one recipe, each in a folder of that name."""
    made = []
    for number, name in enumerate(names, start=1):
        (folder / name).mkdir(parents=True)
        made.append(stored(folder / name, f"2026-11-27-16402{number}-audit-mine", record(filtering=name)))
        recipe = {"schema": "natgauge-recipe-1", "sha256": f"{number}" * 64, "recipe": {}}
        (made[-1] / "recipe.json").write_text(json.dumps(recipe))
    return made


def test_a_folder_above_those_of_audits_has_all_of_them_by_the_names_of_their_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: `report audits` held no result, and `report audits/*` called both "mine" with a digest."""
    versions(tmp_path / "mine" / "audits", "base", "change")
    above, tests, page = str(tmp_path / "mine" / "audits"), tmp_path / "tests.xml", tmp_path / "page.html"
    assert run(["report", above]) == 0
    assert capsys.readouterr().out.startswith("No verdicts differ from mine (change).")
    assert run(["report", above, "--junit", str(tests), "--html", str(page)]) == 0
    for name in ("mine (base)", "mine (change)"):
        assert name in tests.read_text()
        assert name in page.read_text()
    # What is two levels above holds none.
    capsys.readouterr()
    assert run(["report", str(tmp_path)]) == 2
    assert "holds no result" in capsys.readouterr().err


def test_an_audit_against_another_version_has_the_paths_of_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = versions(tmp_path, "a", "b")
    mine, other = (path.rename(tmp_path / path.name) for path in (mine, other))
    made = {"nftables-nat44": mine, "iptables-nat44": other}
    monkeypatch.setattr("natgauge.audits.audit.audit", lambda gateway, **_choices: Audited(record(), 0, made[gateway]))
    assert against(tmp_path, "iptables-nat44") == 0
    assert "No verdicts differ from mine (iptables-nat44)." in capsys.readouterr().out


def test_a_recipe_that_declares_what_is_no_requirement_is_refused(tmp_path: Path, golden: Golden) -> None:
    path = variant(tmp_path, "mine", '[declares]\n"4787 REQ-9" = true\n')
    with golden.raises(UsageError):
        natgauge.audit(path)


def pair() -> tuple[Any, Any]:
    """Mine fails one requirement that the other meets, meets one that it fails, and shares a failure with it."""
    both = requirement("REQ-1", "fails", level="SHOULD")
    mine = record(both, requirement("REQ-8"), requirement("REQ-9", "fails"), requirement("REQ-10", "not seen"))
    other = record(
        both, requirement("REQ-8", "fails"), requirement("REQ-9"), requirement("REQ-10", "fails"), gateway="usual"
    )
    return mine, other


def test_failures_come_first_and_what_is_required_before_what_is_recommended(report: Report) -> None:
    every = (
        requirement("REQ-1", "not applicable"),
        requirement("REQ-2"),
        requirement("REQ-3", "not seen"),
        requirement("REQ-4", "fails", level="SHOULD"),
        requirement("REQ-5", "fails"),
    )
    rows = [line for line in report(record(*every)).splitlines() if line.startswith("RFC 4787 REQ-")]
    assert [row.partition("REQ-")[2][0] for row in rows] == ["5", "4", "3", "2", "1"]


def test_two_audits_begin_with_the_number_of_verdicts_that_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    folders = all_stored(tmp_path, *pair())
    assert run(["report", *folders]) == 0
    golden(capsys.readouterr().out)
    assert run(["report", *folders, "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["differences"]
    assert (found["gateway"], found["against"], found["unlike"]) == ("mine", "usual", [])
    assert (found["fails"], found["meets"]) == (["RFC4787-REQ-9 (udp)"], ["RFC4787-REQ-8 (udp)"])
    assert (found["also_fails"], found["one_sided"]) == (["RFC4787-REQ-1 (udp)"], ["RFC4787-REQ-10 (udp)"])


def test_doubts_of_each_of_two_audits_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doubts = [f"it kept {number} observations from a result" for number in (3, 4)]
    fields = {"word": "other traffic", "value": 9.0, "grade": "answer"}
    requirements = [one.requirements for one in pair()]
    doubted = (
        record(*own, gateway=gateway, doubts=[{**fields, "text": text, "count": 3}])
        for own, gateway, text in zip(requirements, ("mine", "usual"), doubts, strict=True)
    )
    folders = all_stored(tmp_path, *doubted)
    assert run(["report", *folders]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"Doubt about mine: other traffic: {doubts[0]}." in out
    assert f"Doubt about usual: other traffic: {doubts[1]}." in out
    assert run(["report", *folders, "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert all(doubt in page for doubt in doubts)


def test_audits_of_other_options_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    mine, other = pair()
    changed = ({"profile": "home"}, {"parameters": {"lab_kind": "vm"}})
    folders = all_stored(tmp_path, mine, *(other.model_copy(update=each) for each in changed))
    assert run(["report", *folders]) == 0
    golden(capsys.readouterr().out.splitlines()[:2])
    assert run(["diff", *folders[:2]]) == 2
    golden(capsys.readouterr().err)
    assert run(["diff", *folders[:2], "--about", "profile"]) == 1


def test_only_a_terminal_has_colours_and_each_verdict_its_mark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = all_stored(tmp_path, pair()[0])
    assert run(["report", folder]) == 0
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    assert plain.count("✗ fails") == 2
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)
    assert run(["report", folder]) == 0
    assert capsys.readouterr().out.count("\x1b[31m✗ fails") == 2
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["report", folder]) == 0
    assert capsys.readouterr().out == plain


def test_the_page_links_to_each_capture_from_where_it_lies(tmp_path: Path) -> None:
    capture, gone = ({"file": f"evidence/{name}.pcapng", "frames": []} for name in ("a b", "gone"))
    mine = record(requirement(evidence=capture), requirement("REQ-9", "fails", evidence=gone))
    folder = stored(tmp_path, "1", mine)
    (folder / "evidence").mkdir()
    (folder / "evidence" / "a b.pcapng").write_bytes(b"")
    (tmp_path / "pages").mkdir()
    assert run(["report", str(folder), "--html", str(tmp_path / "pages" / "page.html")]) == 0
    page = (tmp_path / "pages" / "page.html").read_text()
    assert re.findall(r'href="([^#d][^"]*)"', page) == ["../1/evidence/a%20b.pcapng"]
    assert page.index("✗ fails") < page.index("✓ meets")


def against(tmp_path: Path, other: str, *options: str) -> int:
    words = ["--gateway", "nftables-nat44", "--results", str(tmp_path / "results"), "--wait", "0", *options]
    return run(["audit", *words, "--against", other])


def test_an_audit_against_another_gateway_shows_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    asked: list[str] = []

    def audited(gateway: str, **_choices: Any) -> Audited:
        asked.append(gateway)
        return Audited(pair()[len(asked) - 1], 0, tmp_path)

    monkeypatch.setattr("natgauge.audits.audit.audit", audited)
    assert against(tmp_path, "iptables-nat44") == 0
    assert asked == ["nftables-nat44", "iptables-nat44"]
    golden(capsys.readouterr().out)
    asked.clear()
    usual = stored(tmp_path, "usual", pair()[1].model_copy(update={"wait_seconds": 0.0}))
    assert against(tmp_path, str(usual), "--json") == 0
    assert asked == ["nftables-nat44"]
    document = json.loads(capsys.readouterr().out)
    assert [one["record"]["gateway"] for one in document["audits"]] == ["mine", "usual"]
    assert document["differences"][0]["against"] == "usual"


def test_the_seconds_that_a_restart_took_are_no_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = (record().model_copy(update={"parameters": {"boot_took_seconds": one}}) for one in (41.2, 39.8))
    assert run(["diff", *all_stored(tmp_path, *both)]) == 0
    assert "nothing changed" in capsys.readouterr().out


def test_outside_addresses_that_the_lab_chooses_are_no_other_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A carrier-grade NAT gets four of them, which nobody asked for."""
    pooled = {"wait_seconds": 0.0, "parameters": {"lab_kind": "netns", "outside_addresses": 4}}
    mine, other = (one.model_copy(update={**pooled, "profile": "cgn"}) for one in pair())
    monkeypatch.setattr("natgauge.audits.audit.audit", lambda *_, **__: Audited(mine, 0, tmp_path))
    folder = str(stored(tmp_path, "cgn", other))
    assert against(tmp_path, folder, "--profile", "cgn") == 0
    assert "2 verdicts differ from usual" in capsys.readouterr().out
    folder = str(stored(tmp_path, "all", pair()[1].model_copy(update=pooled)))
    assert against(tmp_path, folder) == 2
    assert "outside_addresses not set and 4" in capsys.readouterr().err


def test_an_audit_refuses_what_it_cannot_be_compared_with_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    (tmp_path / "two").mkdir()
    (tmp_path / "empty").mkdir()
    quick = {"wait_seconds": 0.0}
    changes: dict[str, dict[str, Any]] = {
        "waited": {},
        "home": {**quick, "profile": "home"},
        "vm": {**quick, "parameters": {"lab_kind": "vm", "timeouts": 5}},
        "two/a": quick,
        "two/b": {**quick, "results": "results/2"},
        "damaged": quick,
    }
    for name, changed in changes.items():
        stored(tmp_path, name, record().model_copy(update=changed))
    (tmp_path / "damaged" / "audit.json").write_text("{")
    others = [str(tmp_path / name) for name in ("absent", "waited", "home", "vm", "two", "empty", "damaged")]
    for other in ("nftables-nat4", "linux-ipv4", *others):
        assert against(tmp_path, other) == 2
        (line,) = capsys.readouterr().err.splitlines()
        golden(line.replace(str(tmp_path), "."))
    assert not (tmp_path / "results").exists()


def blind(*more: Any) -> Any:
    """An audit of rules that drop all frames but those of ICMP."""
    return record(requirement("REQ-1", "not seen", measured="did not arrive outside"), *more)


def test_an_audit_that_saw_only_queries_says_so_first(report: Report, golden: Golden) -> None:
    """Seen: of 114 requirements 113 were not seen, one failed, and nothing said that it was almost blind."""
    query = requirement("REQ-1a", "fails", transport="icmp", level="SHOULD")
    golden(report(blind(query, requirement("REQ-2", "not seen", transport="tcp"))).splitlines()[0])
    assert "almost" not in report(blind(query, requirement("REQ-2", "meets", transport="tcp")))


@pytest.mark.parametrize("after", ["blind", "seeing"])
def test_audits_of_which_one_saw_nothing_do_not_pass_as_alike(
    after: str, tmp_path: Path, ran: Ran, golden: Golden
) -> None:
    """Seen: "1 failed in both, 113 seen in neither", with exit status 0."""
    query = requirement("REQ-1a", "fails", transport="icmp")
    second = blind(query) if after == "blind" else record(query, requirement("REQ-1", "fails"))
    folders = all_stored(tmp_path, blind(query), second, record(query), record(query))
    golden(ran(["diff", *folders[:2]], 5).out)
    ran(["diff", *folders[2:]], 0)
