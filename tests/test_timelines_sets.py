"""The two fixed sets: recorded bytes, questions without a second answer, and nothing shared with what is held out."""

import json
import os
import re
import tracemalloc
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from generators.language import SWITCH, language
from generators.timelines import DATASET_VERSION, fingerprint, generate, training_set, validation_set
from generators.values import CLOSED_TYPES, universe

ROOT = Path(__file__).resolve().parents[1]
BANKS = ROOT / "generators" / "language"
SHARED = Path(os.environ.get("SUPERSEDE_SHARED", ROOT.parent / "shared"))
HELD_OUT = SHARED / "data" / "longmemeval_oracle" / "knowledge_update_78.json"
STALE = SHARED / "data" / "longmemeval_stale" / "stale_annotations.jsonl"
WORD = re.compile(r"[a-z0-9']+|\{[a-z0-9]+\}")
RUN = 6
"""Phrasings count as shared when this many words in a row are the same (slots such as {v} count as words)."""
SMALL_COUNT = 100
"""Bare counts below this are a closed class: too few to keep apart from anything."""


@cache
def sets() -> dict[str, list[dict[str, Any]]]:
    return {"training": list(training_set()), "validation": list(validation_set())}


def templates(split: str) -> set[str]:
    """Every phrase of a split in both persons, except those without words of their own."""

    def walk(node: Any) -> Iterator[str]:
        if isinstance(node, str):
            yield node
        else:
            for child in node.values() if isinstance(node, dict) else node:
                yield from walk(child)

    found: set[str] = set()
    for bank in ("attributes", "wrappers", "chatter"):
        for text in walk(json.loads((BANKS / f"{bank}_{split}.json").read_text(encoding="utf-8"))):
            found |= {SWITCH.sub(r"\1", text), SWITCH.sub(r"\2", text)}
    return {t for t in found if re.sub(r"\{\w+\}|\W", "", t)}


def runs(texts: Any) -> set[tuple[str, ...]]:
    out: set[tuple[str, ...]] = set()
    for text in texts:
        words = WORD.findall(text.lower())
        out |= {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}
    return out


def open_values(split: str) -> set[str]:
    """The open-class values of a split: everything but closed types and small bare counts, in lower case."""
    bank = language(split)
    return {
        v.lower()
        for name, a in bank.attributes.items()
        if a.value_type not in CLOSED_TYPES
        for v in universe(split, name)
        if not (v.isdigit() and int(v) < SMALL_COUNT)
    }


def entities(split: str) -> set[str]:
    pools = language(split).pools
    return {v.lower() for key in ("women", "men", "manuals") for v in pools[key]}


def test_the_fixed_sets_have_their_recorded_bytes_and_sizes() -> None:
    recorded = json.loads((BANKS / "fixed_sets.json").read_text(encoding="utf-8"))
    assert recorded["version"] == DATASET_VERSION
    assert {name: len(records) for name, records in sets().items()} == {"training": 2000, "validation": 300}
    for name, records in sets().items():
        assert fingerprint(records) == recorded[name], f"the {name} set changed: raise DATASET_VERSION and record it"
        assert {len(r["sessions"]) for r in records} == {6, 7, 8}


def test_no_question_has_two_answers_in_the_same_words() -> None:
    for records in sets().values():
        answers: dict[str, str] = {}
        for record in records:
            assert answers.setdefault(record["question"].casefold(), record["gold"]) == record["gold"]


def test_training_and_validation_share_no_phrasing_question_or_open_value() -> None:
    train, validation = templates("train"), templates("validation")
    assert not train & validation
    assert not runs(train) & runs(validation)
    assert not open_values("train") & open_values("validation")
    assert not entities("train") & entities("validation")
    questions = [{r["question"].casefold() for r in records} for records in sets().values()]
    assert not questions[0] & questions[1]
    ids = [r["id"] for records in sets().values() for r in records]
    assert len(set(ids)) == len(ids)


@pytest.mark.skipif(not HELD_OUT.exists(), reason="the LongMemEval rows are not at ../shared")
@pytest.mark.parametrize("split", ["train", "validation"])
def test_nothing_is_shared_with_the_held_out_rows(split: str) -> None:
    rows = json.loads(HELD_OUT.read_text(encoding="utf-8"))
    talk = [t["content"] for r in rows for s in r["haystack_sessions"] for t in s if t["role"] == "user"]
    questions = [r["question"] for r in rows]
    assert not runs(templates(split)) & runs([*talk, *questions])
    records = sets()["training" if split == "train" else "validation"]
    assert not {r["question"].casefold() for r in records} & {q.casefold() for q in questions}
    annotated = [json.loads(line) for line in STALE.read_text(encoding="utf-8").splitlines()]
    answers = {str(r["answer"]).lower() for r in rows} | {
        form.lower() for a in annotated for form in (*a["current"], *a["stale"])
    }
    assert not open_values(split) & answers
    # Proper names are kept out of the whole text of the rows, not only of their answers.
    everything = " ".join(
        [*talk, *questions, *answers, *(t["content"] for r in rows for s in r["haystack_sessions"] for t in s)]
    ).lower()
    bank = language(split)
    names = entities(split) | {
        v.lower()
        for name, a in bank.attributes.items()
        if a.value_type in ("name", "place", "title")
        for v in universe(split, name)
    }
    seen = [n for n in sorted(names) if n in everything and re.search(rf"(?<!\w){re.escape(n)}(?!\w)", everything)]
    assert seen == []


def test_values_of_one_attribute_never_contain_each_other() -> None:
    """Otherwise a superseded value could be read out of a gold."""
    for split in ("train", "validation"):
        for name in language(split).attributes:
            values = [f" {v.lower()} " for v in universe(split, name)]
            joined = "|".join(values)
            assert all(joined.count(v) == 1 for v in values), name


def test_speed_and_flat_memory() -> None:
    """The bar is 1,000 a second on an idle core; a quarter of it is asserted, since test machines are shared."""
    generate(0, "curriculum")
    start = process_time()
    for seed in range(300):
        generate(seed, "curriculum")
    assert 300 / (process_time() - start) > 250
    tracemalloc.start()
    for _ in islice(training_set(), 100):
        pass
    tracemalloc.reset_peak()
    base = tracemalloc.get_traced_memory()[0]
    for seed in range(300, 600):
        generate(seed, "curriculum")
    grown = tracemalloc.get_traced_memory()[0] - base
    tracemalloc.stop()
    assert grown < 1_000_000, f"300 more episodes left {grown} bytes behind"
