"""The training proof: its plan, and tables that are recomputed from rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from eval import __main__ as evaluation
from eval.proof import clustered, load, numbers, paired
from eval.rows import RunFolder, RunInfo, scored_row
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig
from supersede_env.scoring import Outcome
from tests.episodes import record
from train import proof

RIGHT, WRONG = "Oslo", "Rome"


def evaluated(folder: Path, right: list[int], *, n: int = 12, condition: str = "bounded") -> None:
    """A finished run in which the episodes numbered in `right` are answered right."""
    protocol = ProtocolConfig(budget=40)
    episodes = [
        Episode.from_record(record(i, 2, gold="Oslo", stale=["Rome"], tags={"update_style": f"s{i % 2}"}))
        for i in range(n)
    ]
    info = RunInfo(
        "m", None, None, condition, "local", {}, asdict(protocol), {}, 1, n, "tasks", "p", "g", "c", 0.5, [], []
    )
    rows = []
    for i, episode in enumerate(episodes):
        rollout = NotesRollout(episode.view, protocol)
        for reply in ("Rome", "Rome", RIGHT if i in right else WRONG):
            rollout.step(reply)
        rows.append(scored_row(episode, 0, Outcome.of(rollout), 0.5, {}))
    RunFolder.open(folder / condition, info).append(rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    evaluated(tmp_path / "base/eval", [0])
    evaluated(tmp_path / "base/eval", list(range(8)), condition="full")
    evaluated(tmp_path / "base/baselines", [0, 1], condition="copy_last")
    for seed in (0, 1):
        for weight in ("0.5", "0"):
            place = tmp_path / f"lambda{weight}-seed{seed}"
            evaluated(place / "eval/trained", list(range(9)))
            row = {"step": 1, "reward": 0.5, "groups": 4, "varied_groups": 2, "seconds": 60}
            (place / "metrics.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
        evaluated(tmp_path / f"lambda0.5-seed{seed}/eval/warm", [0, 1, 2])
        evaluated(tmp_path / f"lambda0.5-seed{seed}/eval/step_0010", [0, 1, 2, 3], n=6)
    return tmp_path


def test_tests_are_paired_by_episode(folder: Path) -> None:
    found = load(folder)
    (one, _) = found.arm(0.5, "warm", "trained")
    test = paired(found.base["bounded"], one.evaluations["trained"])
    assert (test["n"], test["only_a"], test["only_b"]) == (12, 0, 8)
    assert test["p"] == pytest.approx(2 / 2**8)
    assert test["difference"] == pytest.approx(8 / 12)
    arm = found.arm(0.5, "warm", "trained")
    over = clustered([run.evaluations["warm"] for run in arm], [run.evaluations["trained"] for run in arm])
    assert over["p"] == pytest.approx(2 / 2**6), "two seeds of an episode are one cluster"
    assert over["difference"] == pytest.approx(0.5)


def test_the_page_and_its_numbers(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluation.main(["proof", str(folder), "--out", str(tmp_path / "page/result")]) == 0
    page = capsys.readouterr().out
    assert "| base bounded | 12 | 8.3% " in page
    assert "| base with copy last | 12 | 16.7% " in page
    assert "| lambda0-seed1 warm | 12 | 25.0% " in page, "the warm start is the same for both lambdas"
    assert "lambda0.5-seed0 75%" not in page
    assert "training closed: lambda0-seed0 114%" in page
    assert "| lambda 0.5 step 10 | 12 | " in page
    written = json.loads((tmp_path / "page/result.json").read_text("utf-8"))
    assert written == json.loads(json.dumps(numbers(load(folder))))
    assert (tmp_path / "page/result.png").stat().st_size > 10_000


def test_unfinished_and_missing_parts(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = folder / "lambda0.5-seed1/eval/trained/bounded/rows.jsonl"
    rows.write_text("".join(rows.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
    assert [run.seed for run in load(folder).arm(0.5, "trained")] == [0]
    assert evaluation.main(["proof", str(tmp_path / "nothing")]) == 2
    assert "holds no part of the proof" in capsys.readouterr().err


def test_the_plan_and_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = proof.Settings(tmp_path, seeds=(0, 1), n=12, real=3)
    steps = proof.plan(settings)
    assert [s.name for s in steps if s.run == "base"] == [
        "validation bounded",
        "validation full",
        "validation no_memory",
        "validation copy_last",
        "validation oracle_notes",
        "real",
    ]
    assert [s.run for s in steps if s.name == "validation warm"] == ["lambda0.5-seed0", "lambda0.5-seed1"]
    trained = {s.run: s.command for s in steps if s.name == "train"}
    assert len({c[c.index("--data.first_seed") + 1] for c in trained.values()}) == 2
    assert not any(step.done for step in steps)
    evaluated(tmp_path / "base/eval", [0])
    assert [step.name for step in proof.plan(settings) if step.done] == ["validation bounded"]
    arguments: list[Any] = ["run", "--out", str(tmp_path), "--only", "lambda9-seed0"]
    assert proof.main(arguments) == 2
    assert "no such run; the runs are base, lambda0.5-seed0" in capsys.readouterr().err
