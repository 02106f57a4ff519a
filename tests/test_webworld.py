"""Generated web worlds: real pages, true golds, evidence that answers, and nothing to be had by guessing."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.webworld import Bundle, bundle, explore, foils, generate_world, questions, write_dataset
from generators.webworld.app import Session
from generators.webworld.bank import bank
from generators.webworld.cli import main
from generators.webworld.closedbook import CEILING, check
from generators.webworld.config import BOUNDS, KINDS, PRESETS, SPLITS, config_from
from generators.webworld.fixed import DATASET_VERSION, fingerprints
from generators.webworld.premises import holds
from generators.webworld.questions import normalised
from lme_v2_env.dataset import open_dataset
from lme_v2_env.extractive import answer
from lme_v2_env.trajectory import QUESTION_TYPES
from rewards.lme_v2 import grade, needs_judge

ROOT = Path(__file__).parents[1]

LINE = re.compile(r"^(\t*)(?:\[([a-z]?\d+)\] )?([A-Za-z]+) ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(.*)$")
"""A line of BrowserGym's flattened tree."""

Pair = tuple[Bundle, dict[str, Any], dict[str, Any]]
"""A world's rows, a question and what is known about it."""


@pytest.fixture(scope="module")
def bundles() -> dict[str, list[Bundle]]:
    """Small and full worlds of all kinds; letters take turns over 32 consecutive seeds."""
    return {"easy": [bundle(seed, "easy") for seed in range(64)], "standard": [bundle(seed) for seed in range(32)]}


@pytest.fixture(scope="module")
def asked(bundles: dict[str, list[Bundle]]) -> list[Pair]:
    every = [made for group in bundles.values() for made in group]
    return [(made, *pair) for made in every for pair in zip(made.questions, made.evidence, strict=True)]


def tree(made: Bundle, point: dict[str, Any]) -> str:
    """The tree of the state that a piece of evidence points to."""
    record = next(row for row in made.trajectories if row["id"] == point["trajectory_id"])
    return record["states"][point["state_index"]]["accessibility_tree"]


def fingerprint(folder: Path) -> str:
    """One sha256 over the four files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def test_the_same_bytes_in_another_process_and_nothing_but_the_generator_is_imported(tmp_path: Path) -> None:
    write_dataset(tmp_path / "here", range(4), "standard")
    code = (
        "import sys; from pathlib import Path; from generators.webworld import write_dataset\n"
        "write_dataset(Path(sys.argv[1]), range(4), 'standard')\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'rewards', 'lme_v2_env', 'verifiers', 'torch', 'eval', 'numpy'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "there")],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": "4321", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
    assert fingerprint(tmp_path / "here") == fingerprint(tmp_path / "there")


def test_the_rows_are_those_of_the_recorded_version() -> None:
    assert bank("fixed") == {"version": DATASET_VERSION, **fingerprints()}


def test_a_world_is_the_same_in_any_data_set(tmp_path: Path) -> None:
    write_dataset(tmp_path, [9], "easy")
    alone = (tmp_path / "questions.jsonl").read_text()
    write_dataset(tmp_path, [8, 9], "easy")
    assert (tmp_path / "questions.jsonl").read_text().endswith(alone)
    world = generate_world(9, "easy")
    made = bundle(9, "easy")
    assert explore(world) == list(made.trajectories)
    assert questions(world, foils(9, "easy")) == list(made.questions)


def test_the_loader_reads_the_files_and_the_published_rules_hold(tmp_path: Path) -> None:
    counts = write_dataset(tmp_path / "data", range(20, 28))
    data = open_dataset(tmp_path / "data", "small", tmp_path / "cache")
    assert len(data.questions) == counts["questions"] == len(data.evidence)
    assert len(data.trajectories) == counts["trajectories"]
    assert {question.question_type for question in data.questions} == set(QUESTION_TYPES)
    ids = [question.id for question in data.questions] + list(data.trajectories.ids)
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[0-9a-f]{8}", name) for name in ids)
    assert {question.domain for question in data.questions} == {"web", "enterprise"}
    for question in data.questions:
        haystack = list(data.trajectories.read(data.haystacks[question.id]))
        assert {(row.domain, row.environment) for row in haystack} == {(question.domain, question.environment)}
        assert {point.trajectory_id for point in data.evidence[question.id]} <= {row.id for row in haystack}
        assert question.premise == question.eval_function.startswith("llm_abstention_checker")


def test_every_page_was_reached_by_its_action_and_half_of_the_runs_succeed(bundles: dict[str, list[Bundle]]) -> None:
    for made in bundles["easy"] + bundles["standard"]:
        outcomes = Counter(record["outcome"] for record in made.trajectories)
        assert outcomes["success"] == outcomes["failure"] == made.world.config.trajectories // 2
        for record in made.trajectories:
            session = Session(made.world)
            first, *rest = record["states"]
            assert first["action"] is None
            assert first["accessibility_tree"] == session.page.tree
            for index, state in enumerate(rest, 1):
                page = session.do(state["action"])
                assert (state["state_index"], state["url"], state["accessibility_tree"]) == (index, page.url, page.tree)
            assert all(state["thought"] for state in record["states"])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 999_999), preset=st.sampled_from(("easy", "standard")), moves=st.data())
def test_any_use_of_an_application_leads_to_well_formed_trees(seed: int, preset: str, moves: st.DataObject) -> None:
    session = Session(generate_world(seed, preset))
    for _ in range(12):
        depth, bids = 0, []
        for line in session.page.lines:
            match = LINE.match(line)
            assert match, line
            assert len(match[1]) <= depth + 1
            depth = len(match[1])
            bids += [match[2]] if match[2] else []
        assert len(set(bids)) == len(bids)
        bid = moves.draw(st.sampled_from(sorted(session.page.acts)))
        options = [str(part) for part in session.page.acts[bid][1:]] or ["7"]
        text = moves.draw(st.sampled_from(("", "7", "999", *options)))
        name = moves.draw(st.sampled_from(("click", "fill", "select_option")))
        session.do(f"click('{bid}')" if name == "click" else f"{name}('{bid}', {text!r})")


def test_golds_pass_their_own_graders(asked: list[Pair]) -> None:
    judged = 0
    for _, row, _ in asked:
        if needs_judge(row["eval_function"]):
            judged += 1
            continue
        for strict in (False, True):
            response = f"It is \\boxed{{{row['answer']}}}"
            verdict = grade(row["eval_function"], response, row["answer"], question=row["question"], strict=strict)
            assert verdict.correct, (row["question"], row["answer"], verdict.explanation)
    assert 0.25 < judged / len(asked) < 0.4


def test_evidence_lines_stand_in_their_states_and_answer(asked: list[Pair]) -> None:
    for made, row, hidden in asked:
        for point in hidden["evidence"]:
            assert point["line"] in [line.strip() for line in tree(made, point).split("\n")]
        told = " | ".join(normalised(point["line"]) for point in hidden["evidence"])
        if not needs_judge(row["eval_function"]):
            parts = re.split(" > |, ", hidden["gold_text"])
            assert all(normalised(part) in told for part in parts), (row["question"], hidden)


def test_a_premise_is_false_here_and_true_in_the_named_world(asked: list[Pair]) -> None:
    seen = Counter()
    for made, row, hidden in asked:
        assert ("premise" in hidden) == row["question_type"].endswith("-abs")
        if "premise" not in hidden:
            continue
        premise = hidden["premise"]
        other = generate_world(premise["true_in"], made.world.config)
        assert not holds(made.world, premise)
        assert holds(other, premise)
        assert other.kind == made.world.kind
        seen[premise["what"]] += 1
        assert not any(f"'{premise['name']}'" in point["line"] for point in hidden["evidence"])
        if premise["what"] in ("deed", "sort"):
            continue  # no button is called like the first, and a list may have the column of the second
        pages = "\n".join(tree(made, point) for point in hidden["evidence"])
        elements = re.findall(r"(?:textbox|combobox|spinbutton|button|columnheader|radiogroup|link) '([^']*)'", pages)
        assert premise["name"] not in elements, row["question"]
    assert set(seen) == {"item", "group", "field", "column", "sort", "button", "deed"}


def test_guessing_does_not_pay_and_letters_are_balanced(bundles: dict[str, list[Bundle]]) -> None:
    for made in bundles.values():
        rows = [pair for each in made for pair in zip(each.questions, each.evidence, strict=True)]
        report = check(rows)
        assert report.questions > 400
        assert report.worst < CEILING, report.strategies
        letters = Counter(row["answer"] for row, _ in rows if row["eval_function"].startswith("mc_"))
        assert set(letters) == set("ABCDEFGH")
        assert max(letters.values()) < 2 * sum(letters.values()) / 8


def test_the_guesser_would_notice(asked: list[Pair]) -> None:
    """The check is not blind: were golds the same everywhere, or known from the thing asked about, it would fail."""
    rows = [(row, hidden) for _, row, hidden in asked]
    same = [(row | {"answer": "A"}, hidden | {"gold_text": "Cedar Desk"}) for row, hidden in rows]
    assert check(same).worst > 0.9
    about = [(row, hidden | {"gold_text": f"gold of {hidden['about']}"}) for row, hidden in rows]
    report = check(about)
    assert report.strategies["majority for the same thing"] > 1.5 * report.strategies["majority of the template"]


def test_questions_show_neither_gold_nor_type_nor_evidence(asked: list[Pair]) -> None:
    keys = {"id", "domain", "environment", "question_type", "question", "image", "answer", "eval_function"}
    for _, row, hidden in asked:
        assert set(row) == keys
        text = row["question"]
        assert "{" not in text.replace("\\boxed{}", "").replace("\\boxed{A}", "")
        shown = [row["question_type"], hidden["template"], row["id"]]
        shown += [point["trajectory_id"] for point in hidden["evidence"]]
        assert not any(secret in text for secret in shown if secret != "procedure"), text
        if not needs_judge(row["eval_function"]) and not row["eval_function"].startswith("mc_"):
            assert f" {normalised(row['answer'])} " not in f" {normalised(text)} ", (text, row["answer"])


def test_the_extractive_reader_needs_the_right_page(bundles: dict[str, list[Bundle]]) -> None:
    """With the evidence's page it answers nearly all of the easy questions, with a page of another run hardly any."""
    right = wrong = total = 0
    for made in bundles["easy"]:
        for row, hidden in zip(made.questions, made.evidence, strict=True):
            if needs_judge(row["eval_function"]):
                continue
            pages = {tree(made, point) for point in hidden["evidence"]}
            record = made.trajectories[total % len(made.trajectories)]
            other = record["states"][-1]["accessibility_tree"]
            total += 1
            for texts, good in ((sorted(pages), True), ([other], False)):
                response = answer(row["question"], texts)
                verdict = grade(row["eval_function"], response, row["answer"], question=row["question"], strict=True)
                right += good and verdict.correct
                wrong += (not good) and verdict.correct
    assert total > 500
    assert right / total > 0.97
    assert wrong / total < 0.3


def test_splits_do_not_share_worlds_and_traps_come_from_the_same_split() -> None:
    spans = list(SPLITS.values())
    assert all(one.stop <= two.start for one, two in pairwise(spans))
    for seeds in spans:
        for seed in (seeds.start, seeds.start + 7, seeds.stop - 1):
            others = foils(seed, "easy")
            assert all(other.seed in seeds and other.seed != seed for other in others)
            assert {other.kind for other in others} == {KINDS[seed % len(KINDS)]}


@pytest.mark.parametrize("most", [False, True])
def test_the_word_banks_last_for_the_largest_and_the_smallest_worlds(most: bool) -> None:
    over = {name: [bounds[most]] * 2 for name, bounds in BOUNDS.items()}
    for seed in range(4):
        made = bundle(seed, config_from("standard", over))
        assert len(made.questions) == sum(count for _, count in PRESETS["standard"].quotas)
        assert len(made.trajectories) == PRESETS["standard"].trajectories


def test_bad_input_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="did you mean 'standard'"):
        config_from("standart")
    assert set(PRESETS) == {"easy", "standard", "hard", "judge_free"}
    for args in (["--config", '{"trajectoris": 9}'], ["--seed", "1500000"], ["--config", '{"options": [3, 8]}']):
        assert main(["write", str(tmp_path / "x"), *args]) == 2
        error = capsys.readouterr().err
        assert error.startswith("webworld: ")
        assert error.count("\n") == 1
    assert not (tmp_path / "x").exists()
