"""The scale study: nested episodes, one run a point, the curve from their rows."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from eval import __main__ as evaluation
from eval.scale import generated, thinned
from supersede_env.episode import Episode
from tests.episodes import record
from tests.tiny import tiny_policy

WORDS = ["Oslo", "Rome", "Lima"]


def test_generated_episodes_keep_seeds_and_scale_sessions() -> None:
    once, four = list(generated("quick", 5, 1)), list(generated("quick", 5, 4))
    assert [len(e["sessions"]) >= 12 for e in four] == [True] * 5
    assert all(3 <= len(e["sessions"]) <= 4 for e in once)
    assert [e["id"].rsplit("-", 1)[1] for e in once] == [e["id"].rsplit("-", 1)[1] for e in four]
    assert all("history" not in e for e in once)


def test_real_haystacks_are_nested_and_keep_their_evidence() -> None:
    whole = Episode.from_record(record(0, 9, evidence=[[4, 0]], tags={"sessions_after_update": 1}))
    evidence = {whole.sessions[4].turns, whole.sessions[7].turns}
    kept = [thinned(whole, evidence, factor) for factor in (1, 2, 3, 24)]
    assert [len(e.sessions) for e in kept] == [2, 4, 6, 9]
    for smaller, larger in pairwise(kept):
        assert set(smaller.sessions) <= set(larger.sessions)
    assert [e.tags["sessions_after_update"] for e in kept] == [
        len(e.sessions) - 1 - e.sessions.index(whole.sessions[7]) for e in kept
    ]
    for episode in kept:
        (session, _), *_ = episode.evidence
        assert episode.sessions[session] == whole.sessions[4]
        assert list(episode.sessions) == [s for s in whole.sessions if s in episode.sessions]


def test_a_study_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tiny_policy(WORDS)
    policy.model.save_pretrained(tmp_path / "model")
    policy.tokenizer.save_pretrained(tmp_path / "model")
    command = ["scale", "--data", "quick", "--factors", "2", "1", "--n", "3", "--budget", "20"]
    command += ["--out", str(tmp_path / "out"), "--", "--model", str(tmp_path / "model"), "--max-tokens", "3"]
    assert evaluation.main(command) == 0
    points = json.loads((tmp_path / "out/scale.json").read_text("utf-8"))
    assert [(p["factor"], p["mode"], p["budget"], p["n"]) for p in points] == [
        (1, "fixed", 20, 3),
        (2, "fixed", 20, 3),
        (2, "proportional", 40, 3),
    ]
    assert (tmp_path / "out/scale.png").is_file()
    rows = (tmp_path / "out/x2-fixed/bounded/rows.jsonl").read_text("utf-8")
    assert evaluation.main(command) == 0, "it resumes"
    assert (tmp_path / "out/x2-fixed/bounded/rows.jsonl").read_text("utf-8") == rows
    capsys.readouterr()


def test_a_sampled_run_that_was_cut_inside_a_batch_ends_as_an_uninterrupted_one(tmp_path: Path) -> None:
    policy = tiny_policy(WORDS, spread=0.1)
    policy.model.save_pretrained(tmp_path / "model")
    policy.tokenizer.save_pretrained(tmp_path / "model")
    words = ["supersede", "--model", str(tmp_path / "model"), "--data", "train", "--preset", "quick", "--n", "5"]
    words += [
        "--samples",
        "2",
        "--temperature",
        "1",
        "--max-tokens",
        "4",
        "--batch-size",
        "4",
        "--out",
        str(tmp_path / "out"),
    ]
    assert evaluation.main(words) == 0
    file = tmp_path / "out/bounded/rows.jsonl"
    whole = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join(whole[:5]) + whole[5][:40], "utf-8")
    assert evaluation.main(words) == 0

    def lasting(lines: list[str]) -> list[tuple[str, int, str, list[str]]]:
        return sorted((r["id"], r["sample"], r["answer"], r["notes"]) for r in map(json.loads, lines))

    assert lasting(file.read_text("utf-8").splitlines()) == lasting(whole)
    assert len({row[2] for row in lasting(whole)}) > 1, "sampled"


def test_an_invalid_point_is_named_and_the_study_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tiny_policy(WORDS, window=200)
    policy.model.save_pretrained(tmp_path / "model")
    policy.tokenizer.save_pretrained(tmp_path / "model")
    command = ["scale", "--data", "quick", "--factors", "1", "2", "--n", "2", "--budget", "20", "--fixed-only"]
    command += ["--out", str(tmp_path / "out"), "--", "--model", str(tmp_path / "model"), "--max-tokens", "60"]
    assert evaluation.main(command) == 3
    points = json.loads((tmp_path / "out/scale.json").read_text("utf-8"))
    assert [(p["factor"], p["n"], p["unscored"]) for p in points] == [(1, 0, 2), (2, 0, 2)]
    assert "INVALID: too many unscored" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--data", "quik", "--", "--model", "m"], "did you mean 'quick'"),
        (["--data", "quick", "--factors", "25", "--", "--model", "m"], "25 is not between 1 and 24"),
        (["--data", "quick", "--", "--model", "m", "--budget", "9"], "--budget belongs before --"),
        (["--data", "quick", "--", "--model", "m", "--system", "copy_last"], "--system belongs before --"),
        (["--data", "quick"], "name the model after --"),
    ],
)
def test_refusals(args: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluation.main(["scale", "--out", str(tmp_path), *args]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
