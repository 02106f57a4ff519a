"""The store of short facts for Supersede: operations as models write them, its bound, and both ways of running it."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval import heldout
from eval.baselines.facts import FactsRollout, FactStore, Operation, outcome, parse_operations
from supersede_env.diagnosis import diagnose
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig, wordings
from tests.episodes import record
from tests.scripted_endpoint import ScriptedEndpoint

EPISODE = Episode.from_record(record())


def add(text: str) -> Operation:
    return Operation("add", None, text)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("ADD: I live in Rome", [add("I live in Rome")]),
        ('- **ADD**: "tea, not coffee"', [add("tea, not coffee")]),
        ("Add 2 cats", [add("2 cats")]),
        ("ADD: -5 degrees", [add("-5 degrees")]),
        ("1. UPDATE 2: now Paris", [Operation("update", 2, "now Paris")]),
        ("update [3] -> x", [Operation("update", 3, "x")]),
        ("UPDATE fact 2 to Paris", [Operation("update", 2, "Paris")]),
        ("UPDATE 2: to bed at 9", [Operation("update", 2, "to bed at 9")]),
        ("UPDATE 2: 5 cats", [Operation("update", 2, "5 cats")]),
        ("DELETE 4\nremove fact 5: it is over", [Operation("delete", 4, ""), Operation("delete", 5, "it is over")]),
        ("KEEP\n\nNone.", [Operation("keep", None, ""), Operation("keep", None, ".")]),
        ("Here you are:\n```\nADD: a\n```", [None, add("a")]),
        ("UPDATE: Paris", [Operation("update", None, "Paris")]),
        ('[{"op": "ADD", "text": "a"}, {"op": "merge"}]', [add("a"), None]),
        ('```json\n{"memory": [{"event": "UPDATE", "id": "1", "text": "b"}]}\n```', [Operation("update", 1, "b")]),
        ('{"op": "ADD", "text": "a"}\n{"op": "DELETE", "number": 2}', [add("a"), Operation("delete", 2, "")]),
        ('{"notes": [], "tags": ["x"], "operations": [{"op": "add", "text": "\\ud800a"}]}', [add("\ufffda")]),
        ("", []),
    ],
)
def test_operations_are_read_as_models_write_them(reply: str, expected: list[Operation | None]) -> None:
    assert parse_operations(reply) == expected


def test_a_reply_of_white_space_takes_no_time() -> None:
    started = time.process_time()
    parse_operations("UPDATE" + " " * 20_000 + "x\n" + "ADD" + " :" * 20_000)
    assert time.process_time() - started < 1


def test_numbers_are_those_of_the_list_that_was_shown() -> None:
    store = FactStore(300)
    store.apply(parse_operations("ADD: a\nADD: b\nADD: c"))
    store.apply(parse_operations("DELETE 1\nUPDATE 3: d\nDELETE 1\nUPDATE 9: x\nADD: b"))
    assert store.render() == "1. b\n2. d"
    assert store.counts == {"add": 4, "delete": 1, "update": 1, "malformed": 2, "forgotten": 0}


def test_over_the_budget_what_was_written_longest_ago_is_forgotten() -> None:
    store = FactStore(20)
    store.apply(parse_operations("ADD: aaaa\nADD: bbbb"))
    store.apply(parse_operations("UPDATE 1: aaax"))
    assert store.apply(parse_operations("ADD: cccc")) == "bbbb"
    assert store.render() == "1. aaax\n2. cccc"
    assert store.counts["forgotten"] == 1
    assert store.apply([add("y" * 50)]) == "aaax\ncccc\n" + "y" * 33
    assert store.render() == "1. " + "y" * 17


REPLIES = st.lists(
    st.tuples(st.sampled_from(["ADD", "UPDATE 1", "UPDATE 2", "DELETE 1", "DELETE 3", "KEEP"]), st.text(max_size=30)),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(REPLIES.map(lambda ops: "\n".join(f"{o}: {t}" for o, t in ops)), st.text())), st.integers(1, 60)
)
def test_notes_never_exceed_the_budget_and_every_line_is_counted(replies: list[str], budget: int) -> None:
    store = FactStore(budget)
    for reply in replies:
        before = store.render()
        operations = parse_operations(reply)
        store.apply(operations)
        assert len(store.render()) <= budget
        assert [line.split(". ")[0] for line in store.render().split("\n") if line] == [
            str(number) for number in range(1, len(store.facts) + 1)
        ]
        if not any(operation and operation.kind != "keep" for operation in operations):
            assert store.render() == before  # what is no operation costs nothing
    assert store.counts.total() - store.counts["forgotten"] == sum(len(parse_operations(reply)) for reply in replies)


@pytest.mark.parametrize("wording", sorted(wordings()))
def test_a_session_shows_the_facts_and_the_answer_is_asked_as_with_notes(wording: str) -> None:
    config = ProtocolConfig(budget=60, wording=wording)
    rollout, notes = FactsRollout(EPISODE.view, config), NotesRollout(EPISODE.view, config)
    assert rollout.num_turns == notes.num_turns == 4
    for number in range(3):
        prompt = "\n".join(message["content"] for message in rollout.prompt())
        assert [f"Told in session {i}" in prompt for i in range(3)] == [number == i for i in range(3)]
        assert (f"1. fact {number - 1}" in prompt) == (number > 0)
        assert EPISODE.question not in prompt
        rollout.step(f"<think>ADD: no</think>{'ADD:' if number == 0 else 'UPDATE 1:'} fact {number}\nso be it")
        notes.step(f"1. fact {number}")
    assert rollout.prompt() == notes.prompt()
    rollout.step("the answer")
    assert rollout.answer == "the answer"
    assert rollout.store.counts == {"add": 1, "update": 2, "malformed": 3, "forgotten": 0}
    with pytest.raises(RuntimeError, match="finished"):
        rollout.prompt()


def keeps_the_last(messages: list[dict[str, str]]) -> str:
    """A model that notes where the user lives and answers from the facts."""
    text = messages[-1]["content"]
    if "Question:" in text:
        found = re.search(r"1\. lives in (\w+)", text)
        return found.group(1) if found else ""
    place = re.search(r"I live in (\w+) now", text)
    assert place is not None
    return f"{'UPDATE 1' if '1. lives' in text else 'ADD'}: lives in {place.group(1)}\nThat is all."


def episodes(folder: Path, count: int) -> Path:
    file = folder / "episodes.jsonl"
    file.write_text("".join(json.dumps(record(number)) + "\n" for number in range(count)), encoding="utf-8")
    return file


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "facts" / "rows.jsonl").read_text().splitlines()]


def test_an_endpoint_plays_it_and_a_second_start_redoes_what_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault(messages: list[dict[str, str]], count: int) -> str | None:
        if "traveller 1?" in messages[-1]["content"]:
            return "html"
        return "window" if "Harbour2x1 now" in messages[-1]["content"] else None

    file, out = episodes(tmp_path, 4), tmp_path / "run"
    with ScriptedEndpoint(keeps_the_last, fault) as endpoint:
        command = ["--model", "scripted", "--base-url", endpoint.url, "--data", str(file), "--out", str(out)]
        assert heldout.run([*command, "--system", "facts"]) == 3
        rows = rows_of(out)
        assert [row["id"] for row in rows] == [f"secret-id-{number}" for number in range(4)]
        assert [row["scored"] for row in rows] == [True, False, False, True]
        assert "not JSON (text/html)" in rows[1]["unscored_reason"]
        assert rows[2]["unscored_reason"] == "over window"
        assert "malformed" in capsys.readouterr().out
        endpoint.fault = lambda messages, count: None
        before = endpoint.count
        assert heldout.run([*command, "--system", "facts"]) == 0
        assert endpoint.count - before == 2 * 4
        sent = "\n".join(endpoint.bodies)
    rows = rows_of(out)
    assert [row["verdict"] for row in rows] == ["correct"] * 4
    assert rows[0]["facts"] == {"add": 1, "update": 2, "delete": 0, "keep": 0, "malformed": 3, "forgotten": 0}
    assert rows[0]["notes"][-1] == "1. lives in Harbour0x2"
    assert rows[0]["metrics"]["gold_in_notes"] == 1
    info = json.loads((out / "facts" / "run.json").read_text())
    assert (info["condition"], info["protocol"]["system"]) == ("facts", "facts")
    assert "secret-id" not in sent
    assert "hidden" not in sent
    assert heldout.run([*command, "--system", "facts", "--condition", "full"]) == 2
    assert "no full-context condition" in capsys.readouterr().err


def test_a_local_model_plays_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from eval import local_model
    from tests.tiny import tiny_policy

    policy = tiny_policy(["ADD:", "Harbour0x2", "lives", "KEEP"], window=2048)
    monkeypatch.setattr(local_model, "load_policy", lambda options: policy)
    command = ["--model", "tiny", "--data", str(episodes(tmp_path, 2)), "--out", str(tmp_path / "run")]
    assert heldout.run([*command, "--system", "facts", "--max-tokens", "8"]) == 0
    rows = rows_of(tmp_path / "run")
    assert [row["calls"] for row in rows] == [4, 4]
    assert all(sum(row["facts"].values()) > 0 for row in rows)


def test_a_fact_that_the_budget_cost_is_diagnosed_as_cut() -> None:
    rollout = FactsRollout(EPISODE.view, ProtocolConfig(budget=30))
    for reply in ("KEEP", "KEEP", f"ADD: in {EPISODE.gold}\nADD: {'z' * 40}", "no idea"):
        rollout.step(reply)
    found = outcome(rollout)
    assert found.notes[-1] == f"1. {'z' * 27}"
    assert found.overflows == 1
    assert diagnose(EPISODE, found, "wrong") == "cut"
    long_winded = FactsRollout(EPISODE.view, ProtocolConfig(budget=30))
    for reply in ("KEEP", "KEEP", f"I will think about it. {'z' * 40} {EPISODE.gold}", "no idea"):
        long_winded.step(reply)
    assert diagnose(EPISODE, outcome(long_winded), "wrong") == "never_written"
