"""The answers of generated timelines, checked by a replay of the history that shares no code with the maker."""

import re
from itertools import pairwise
from typing import Any

import pytest

from generators.timelines import generate

TRUE_KINDS = {"set", "change", "correct", "increment", "revert"}


def replay(record: dict[str, Any]) -> list[str]:
    """The values that the asked fact went through, by date."""
    values: list[str] = []
    for event in record["history"]["events"]:
        if event["asked_slot"] and event["kind"] in TRUE_KINDS and values[-1:] != [event["value"]]:
            values.append(event["value"])
    return values


def earlier(values: list[str]) -> str:
    return [v for v in values if v != values[-1]][-1] if values[-2] == values[-1] else values[-2]


def named_value(record: dict[str, Any]) -> str:
    """The value that a yes/no question asks about: the longest candidate that its text contains."""
    if record["tags"]["value_type"] == "boolean":
        return "Yes"
    found = [
        v
        for v in record["history"]["candidates"]
        if re.search(rf"(?<!\w){re.escape(v)}(?!\w)", record["question"], re.I)
    ]
    return max(found, key=len)


def check(record: dict[str, Any]) -> None:
    gold, values = record["gold"], replay(record)
    if record["asks"] in ("current", "count"):
        assert gold == values[-1]
        assert set(record["stale"]) == set(values) - {gold}
    elif record["asks"] == "previous":
        assert gold == earlier(values)
        assert set(record["stale"]) == set(values) - {gold}
    elif record["asks"] == "yesno":
        named = named_value(record)
        assert gold == ("Yes" if values[-1] == named else "No")
        truths = {"Yes" if v == named else "No" for v in values}
        assert set(record["stale"]) == truths - {gold}
    elif record["asks"] == "change":
        if gold.startswith("from "):
            assert gold == f"from {earlier(values)} to {values[-1]}"
        assert not {values[-1], earlier(values)} & set(record["stale"])
    else:
        assert record["abstain"]
        assert not record["stale"]
        assert not record["evidence"]
        told_of = {
            e["person"].replace("user's", "my")
            for e in record["history"]["events"]
            if e["attribute"] == record["tags"]["attribute"]
        }
        assert not [p for p in told_of if p != "user" and p in record["question"]]
    # What was said last about the asked fact is what is true: no later statement makes the answer stale.
    told = [e for e in record["history"]["events"] if e["session"] is not None]
    assert [e["session"] for e in told] == sorted(e["session"] for e in told)
    said = [e["value"] for e in told if e["asked_slot"] and e["kind"] in TRUE_KINDS]
    assert said[-1] == values[-1]
    # A return that does not name its value can only be followed with the change that it undoes.
    effects = [e for e in told if e["asked_slot"] and e["kind"] in TRUE_KINDS]
    for before, event in pairwise(effects):
        if event["kind"] == "revert" and not event["named"] and [event["session"], event["turn"]] in record["evidence"]:
            assert [before["session"], before["turn"]] in record["evidence"], record["id"]
    if record["evidence"]:
        decisive = max(record["evidence"])
        later = [
            e for e in told if e["asked_slot"] and e["kind"] in TRUE_KINDS and [e["session"], e["turn"]] > decisive
        ]
        assert not later


@pytest.mark.parametrize(
    ("preset", "seeds"), [("curriculum", 5000), ("hard", 3000), ("quick", 1000), ("longmemeval", 500), ("control", 500)]
)
def test_no_later_statement_makes_a_gold_stale(preset: str, seeds: int) -> None:
    for seed in range(seeds):
        check(generate(seed, preset, split="train" if seed % 2 else "validation"))


@pytest.mark.parametrize("preset", ["curriculum", "hard", "quick"])
def test_the_oracle_notes_hold_the_answer(preset: str) -> None:
    """The last notes name the present value, and the previous one where the question asks for it."""
    for seed in range(400):
        record = generate(seed, preset)
        if record["asks"] in ("current", "count", "previous"):
            assert record["gold"] in record["history"]["oracle_notes"][-1], record["id"]


@pytest.mark.parametrize("preset", ["curriculum", "hard"])
def test_values_are_said_only_where_the_history_says_so(preset: str) -> None:
    """Off-topic talk never carries a value of the asked attribute; only an echo repeats one."""
    for seed in range(300):
        record = generate(seed, preset)
        events = [e for e in record["history"]["events"] if e["attribute"] == record["tags"]["attribute"]]
        values = {e["value"] for e in record["history"]["events"] if e["value"] not in ("Yes", "No", "")}
        facts = [e["text"] for e in record["history"]["events"] if e["text"]]
        assert events
        for session in record["sessions"]:
            for turn in session["turns"]:
                rest = turn["content"]
                if turn["role"] == "assistant":
                    continue
                for fact in facts:
                    rest = rest.replace(fact, "")
                for value in values:
                    assert not re.search(rf"(?<![\w$]){re.escape(value)}(?!\w)", rest), (record["id"], value)
