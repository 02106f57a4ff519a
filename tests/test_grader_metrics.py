"""Rates and what they leave out; the judge's strictness and its audit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eval.judge_audit import run as judge_audit
from rewards.judge import Judge, Probe, audit, build_probes, build_prompt, openai_completer, parse_reply, prompt_hash
from rewards.metrics import ALL, false_abstention_rate, fama, hedge_rate, refusal_rate, stale_rate
from tests.scripted_endpoint import ScriptedEndpoint


def row(name: str, verdict: str | None, *, stale: bool = True, abstain: bool = False) -> dict[str, Any]:
    penal = verdict in ("stale", "hedged") and stale
    return {
        "id": name,
        "scored": verdict is not None,
        "verdict": verdict,
        "r_stale": -int(penal),
        "abstain": abstain,
        "stale": ["old"] if stale else [],
    }


ROWS = [
    row("a", "correct"),
    row("b", "stale"),
    row("c", "hedged"),
    row("d", "refused"),
    row("e", "correct", stale=False),
    row("f", "correct", stale=False, abstain=True),
    row("g", "wrong", stale=False, abstain=True),
    row("h", None),
]


def test_rates_name_the_rows_they_leave_out() -> None:
    assert (stale_rate(ROWS).hits, stale_rate(ROWS).n) == (1, 4)
    assert stale_rate(ROWS).left_out == {
        "no superseded value known": ("e",),
        "abstention row": ("f", "g"),
        "unscored": ("h",),
    }
    assert hedge_rate(ROWS).value == 1 / 5
    assert refusal_rate(ROWS).value == 2 / 7  # one rightly, on an abstention row
    assert false_abstention_rate(ROWS).value == 1 / 5


def test_fama_is_presence_less_weighted_leaks() -> None:
    # presence 2/5; 4 forgetting checks, 2 leaks; lambda = 4 / (5 + 4)
    assert fama(ROWS).value == pytest.approx(2 / 5 - 4 / 9 * 2 / 4)
    assert fama([row("x", "stale")]).value == 0
    assert fama([row("x", "correct")]).value == 1
    assert fama(ROWS).left_out["no superseded value known (forgetting check only)"] == ("e",)


def test_no_row_no_rate() -> None:
    assert [rate([row("h", None)]).value for rate in ALL] == [None] * len(ALL)


REPLY = '{"verdict": "stale", "reason": "old city"}'


@pytest.mark.parametrize(
    "reply",
    ["stale", "", "null", "[]", '{"verdict": "Stale", "reason": ""}', '{"verdict": "stale"}', f"Sure! {REPLY}",
     '{"verdict": "stale", "reason": "x", "score": 1}', f"```json\n{REPLY}\n```", '{"verdict": "stale", "reason": 3}',
     "[" * 100_000, '{"verdict": "wrong", "verdict": "correct", "reason": "x"}'],
)  # fmt: skip
def test_a_reply_that_is_not_the_structure_leaves_the_row_unscored(reply: str) -> None:
    assert parse_reply(reply) is None
    judged = Judge(lambda messages: reply, "m").judge("q", "g", ["s"], "a")
    assert judged.verdict is None
    assert judged.r_cur is None
    assert judged.unscored.startswith("not a verdict")


def test_a_judgement_keeps_model_and_prompt() -> None:
    judged = Judge(lambda messages: REPLY, "some-model").judge("q", "g", ["s"], "a")
    assert (judged.verdict, judged.r_cur, judged.reason, judged.unscored) == ("stale", 0, "old city", "")
    assert judged.model == "some-model"
    assert judged.prompt_hash == prompt_hash(build_prompt("q", "g", ["s"], "a"))
    assert judged.prompt_hash != prompt_hash(build_prompt("q", "g", ["s"], "b"))


def test_an_endpoint_that_fails_leaves_the_row_unscored_after_the_clients_retries() -> None:
    with ScriptedEndpoint(
        lambda messages: REPLY, fault=lambda messages, count: "500" if count == 1 else None
    ) as server:
        assert Judge(openai_completer(server.url, "m"), "m").judge("q", "g", [], "a").verdict == "stale"
        assert server.count >= 2
    with ScriptedEndpoint(lambda messages: REPLY, fault=lambda messages, count: "500") as server:
        judged = Judge(openai_completer(server.url, "m", retries=1), "m").judge("q", "g", [], "a")
        assert judged.verdict is None
        assert judged.unscored.startswith("no reply")


QUESTIONS = [{"question": f"q{i}", "gold": f"gold{i}", "stale": [f"old{i}"]} for i in range(20)]


def lenient(messages: list[dict[str, str]]) -> str:
    """Accepts every answer that has the gold in it, like a judge who does not mind a list."""
    task = json.loads(messages[-1]["content"])
    accepts = task["right value"] in task["answer"]
    return json.dumps({"verdict": "correct" if accepts else "wrong", "reason": "-"})


def strict(messages: list[dict[str, str]]) -> str:
    return json.dumps({"verdict": "wrong", "reason": "-"})


def test_the_audit_refuses_a_judge_that_accepts_lists() -> None:
    probes = build_probes(QUESTIONS)
    assert {p.kind for p in probes} == {"known_wrong", "both_values", "refusal"}
    assert audit(Judge(strict, "m"), probes).passed
    found = audit(Judge(lenient, "m"), probes)
    assert not found.passed
    assert found.by_kind["both_values"] == (20, 20)
    assert found.by_kind["refusal"] == (0, 20)


def test_a_judge_that_cannot_be_parsed_does_not_pass() -> None:
    found = audit(Judge(lambda messages: "yes", "m"), [Probe("refusal", "q", "g", (), "I don't know.")])
    assert (found.unscored, found.passed) == (1, False)


@pytest.mark.parametrize(("policy", "status"), [(lenient, 3), (strict, 0)])
def test_judge_audit_command(policy, status: int, tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps(r) for r in QUESTIONS))
    with ScriptedEndpoint(policy) as server:
        assert judge_audit(["--base-url", server.url, "--model", "m", "--rows", str(rows), "--limit", "12"]) == status
    assert "false accepts" in capsys.readouterr().out
