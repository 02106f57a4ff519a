"""The training proof: its plan, and tables that are recomputed from rows."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from eval import __main__ as evaluation
from eval.proof import clustered, load, numbers, paired
from eval.proof_page import curve, drawn
from eval.rows import RunFolder, RunInfo, scored_row
from rewards.errors import UserError
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig
from supersede_env.scoring import Outcome
from tests.episodes import record
from train import proof

RIGHT, WRONG = "Oslo", "Rome"


def evaluated(
    folder: Path, right: list[int], *, n: int = 12, condition: str = "bounded", temperature: float = 0.0
) -> None:
    """A finished run in which the episodes numbered in `right` are answered right."""
    protocol = ProtocolConfig(budget=40)
    episodes = [
        Episode.from_record(record(i, 2, gold="Oslo", stale=["Rome"], tags={"update_style": f"s{i % 2}"}))
        for i in range(n)
    ]
    sampling = {"temperature": temperature}
    info = RunInfo(
        "m", None, None, condition, "local", {}, asdict(protocol), sampling, 1, n, "tasks", "p", "g", "c", 0.5, [], []
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
    assert "ampled" not in page
    assert "| lambda0.5-seed0 trained | 4 | 0% | 0% | - | - |" in page, "the notes say Rome, a superseded value"
    assert "| lambda 0.5 over lambda 0: stale | 2 | +0.0 " in page
    evaluated(folder / "lambda1-seed0/eval/trained", list(range(10)))
    assert evaluation.main(["proof", str(folder), "--out", str(tmp_path / "page/result.v2")]) == 0
    page = capsys.readouterr().out
    assert "| lambda 1 over lambda 0: correct | 1 | +8.3 " in page
    assert "| lambda 0.5 over lambda 0: correct | 2 | +0.0 " in page
    assert "| lambda 1 trained (seed 0) | 12 | " in page, "a mean over some seeds is no mean over all"
    assert "| warm | trained, lambda 1 (seed 0) | trained, lambda 0.5 | trained, lambda 0 |" in page
    three = json.loads((tmp_path / "page/result.v2.json").read_text("utf-8"))
    assert three["lambda 1 over lambda 0: correct"]["seeds"] == 1
    assert (tmp_path / "page/result.png").stat().st_size > 10_000


def test_sampled_evaluations_have_a_table_and_tests_of_their_own(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated(folder / "base/sampled", [], temperature=1.0)
    for seed, right in ((0, 7), (1, 4)):
        evaluated(folder / f"lambda0.5-seed{seed}/sampled/warm", [0], temperature=1.0)
        evaluated(folder / f"lambda0.5-seed{seed}/sampled/trained", list(range(right)), temperature=1.0)
    evaluated(folder / "lambda0-seed1/sampled/trained", [0, 1], temperature=1.0)
    assert evaluation.main(["proof", str(folder), "--out", str(tmp_path / "result")]) == 0
    page = capsys.readouterr().out
    assert "| lambda0.5-seed0 | sampled: trained over base | 12 | +58.3 " in page
    assert "| lambda0-seed1 | sampled: trained over warm | 12 | +8.3 " in page, "the other lambda's warm start"
    assert "| sampled: trained over warm, lambda 0.5 | 2 | +37.5 " in page
    assert "| lambda0.5-seed1 trained | 12 | 33.3% " in page
    assert "| trained over warm, lambda 0.5 | 2 | +50.0 " in page, "the greedy ones are as they were"
    written = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert written["runs"]["lambda0.5-seed1"]["sampled"]["trained"]["accuracy"] == pytest.approx(4 / 12)
    evaluated(folder / "lambda0-seed0/sampled/trained", [0])  # greedy
    with pytest.raises(UserError, match=r"temperature is 0\.0 .* and 1\.0"):
        load(folder)


def test_points_of_the_curves_are_over_the_same_episodes(folder: Path) -> None:
    found = load(folder)
    common = drawn(found)
    assert len(common) == 6, "those of the checkpoint"
    points = {one.name: curve(one, common) for one in found.runs}
    assert points["lambda0.5-seed0"] == [(0.0, 0.5), (1.0, 1.0), (10.0, pytest.approx(4 / 6))]
    assert points["lambda0-seed0"] == [(0.0, 0.5), (1.0, 1.0)], "the same warm start is the same point"


def test_unfinished_and_missing_parts(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = folder / "lambda0.5-seed1/eval/trained/bounded/rows.jsonl"
    rows.write_text("".join(rows.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
    assert [run.seed for run in load(folder).arm(0.5, "trained")] == [0]
    assert evaluation.main(["proof", str(tmp_path / "nothing")]) == 2
    assert "holds no part of the proof" in capsys.readouterr().err


def change(file: Path, edit: Any) -> None:
    info = json.loads(file.read_text("utf-8"))
    edit(info)
    file.write_text(json.dumps(info), "utf-8")


MIXED = [
    ("run.json", lambda info: info.update(grader_version="h"), "grader_version is 'h' in "),
    ("run.json", lambda info: info.update(model="other"), "model is 'other' in "),
    ("run.json", lambda info: info.update(task_set="others"), "hold different task sets"),
    ("run.json", lambda info: info["protocol"].update(budget=300), "budget is 300 in "),
    ("run.json", lambda info: info["sampling"].update(temperature=1.0), "temperature is 1.0 in "),
    ("run.json", lambda info: info.pop("n"), "run.json is damaged: KeyError 'n'"),
]


@pytest.mark.parametrize(("name", "edit", "message"), MIXED)
def test_what_does_not_compare_is_not_put_on_one_page(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, edit: Any, message: str
) -> None:
    change(folder / "lambda0-seed1/eval/trained/bounded" / name, edit)
    assert evaluation.main(["proof", str(folder)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_other_tasks_of_the_same_names_and_other_adapters_are_refused(folder: Path) -> None:
    rows = folder / "lambda0.5-seed1/eval/step_0010/bounded/rows.jsonl"
    whole = rows.read_text("utf-8")
    rows.write_text(whole.replace('"gold": "Oslo"', '"gold": "Lima"'), "utf-8")
    with pytest.raises(UserError, match="hold different tasks named 'secret-id-0'"):
        load(folder)
    rows.write_text(whole, "utf-8")
    adapter = folder / "lambda0.5-seed1/step_0010"
    adapter.mkdir()
    (adapter / "adapter_model.safetensors").write_bytes(b"trained further since")
    with pytest.raises(UserError, match=r"step_0010/bounded evaluated another adapter than .*step_0010: delete it"):
        load(folder)
    shutil.rmtree(adapter)
    assert all("warm" in run.evaluations for run in load(folder).runs), "evaluated once a seed"
    warm = folder / "lambda0-seed1/warm"
    warm.mkdir()
    (warm / "adapter_model.safetensors").write_bytes(b"another warm start")
    lacking = [run.name for run in load(folder).runs if "warm" not in run.evaluations]
    assert lacking == ["lambda0-seed1"]


def test_runs_that_were_trained_otherwise_and_copies_of_runs_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (0, 1):
        for weight in ("0.5", "0"):
            text = f'seed = {seed}\noutput = "{seed}"\nstale_weight = {weight}\nturn_weight = 0.5\nsteps = 40\n'
            (folder / f"lambda{weight}-seed{seed}/config.toml").write_text(text + "[warm_start]\nsteps = 80\n", "utf-8")
    assert len(load(folder).runs) == 4
    config = folder / "lambda0.5-seed1/config.toml"
    whole = config.read_text("utf-8")
    for before, after, message in (
        ("turn_weight = 0.5", "turn_weight = 0.0", "turn_weight is 0.0 in "),
        ("steps = 40", "steps = 20", "steps is 20 in "),
        ("steps = 80", "steps = 40", "warm_start.steps is 40 in "),
    ):
        config.write_text(whole.replace(before, after), "utf-8")
        assert evaluation.main(["proof", str(folder)]) == 2
        assert message in capsys.readouterr().err
    config.write_text(whole, "utf-8")
    for name in ("lambda0.5-seed0.bak", "lambda0.50-seed0"):
        shutil.copytree(folder / "lambda0.5-seed0", folder / name)
        assert evaluation.main(["proof", str(folder)]) == 2
        assert f"{name} has not the name of a run, such as lambda0.5-seed0" in capsys.readouterr().err
        shutil.rmtree(folder / name)
    assert evaluation.main(["proof", str(folder)]) == 0


@pytest.mark.parametrize(("option", "value"), [("--n", "0"), ("--steps", "0"), ("--real", "-1")])
def test_numbers_that_prove_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    assert proof.main(["status", "--out", str(tmp_path), option, value]) == 2
    assert f"{option} is {value}: give" in capsys.readouterr().err


def test_a_terminated_proof_ends_its_step_too() -> None:
    """The step terminates its parent; if that died of it, the step would be left alone."""
    step = "import os, signal, time; time.sleep(1); os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)"
    parent = f"import sys; from train.proof import _call; sys.exit(-_call([sys.executable, '-c', {step!r}]))"
    done = subprocess.run([sys.executable, "-c", parent], timeout=60)
    assert done.returncode == signal.SIGTERM, "the status that the step ended with"


def test_fewer_real_rows_than_asked_for_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of twelve fit: the evaluation ends well and is not the twelve that were asked for."""
    monkeypatch.setattr(proof, "_call", lambda command: evaluated(tmp_path / "base/real", [0], n=2) or 0)
    steps = [step for step in proof.plan(proof.Settings(tmp_path, real=12)) if step.name == "real"]
    monkeypatch.setattr(proof, "plan", lambda settings: steps)
    with pytest.raises(UserError, match="only 2 real rows fit smollm2-135m: give --real 2"):
        proof.run_all(proof.Settings(tmp_path, real=12), [])


def test_unscored_rows_are_named_and_versions_of_the_code_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = folder / "lambda0.5-seed0/eval/trained/bounded/rows.jsonl"
    first, *others = rows.read_text("utf-8").splitlines(keepends=True)
    unscored = json.loads(first) | {"scored": False, "r_cur": None, "unscored_reason": "over window"}
    rows.write_text(json.dumps(unscored) + "\n" + "".join(others), "utf-8")
    change(rows.with_name("run.json"), lambda info: info.update(code_version="d"))
    with (folder / "lambda0.5-seed0/metrics.jsonl").open("a") as log:
        log.write('{"step": 2, "rew')
    assert evaluation.main(["proof", str(folder)]) == 0
    page = capsys.readouterr().out
    assert "| lambda0.5-seed0 trained | 11 (1 unscored, INVALID) | 72.7% " in page
    assert "| lambda0.5-seed0 | trained over base | 11 | " in page
    assert "environment's code c, d; it changed between the evaluations" in page
    assert "| s0 | 6 |" in page


def test_the_plan_and_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = proof.Settings(tmp_path, seeds=(0, 1), n=12, real=3)
    steps = proof.plan(settings)
    assert [s.name for s in steps if s.run == "base"] == [
        "validation bounded",
        "validation full",
        "sampled",
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
    rows = tmp_path / "base/eval/bounded/rows.jsonl"
    whole = rows.read_text("utf-8")
    rows.write_text(whole[:-9].replace("Rome", "Ro\u2028me"), "utf-8")
    assert not any(step.done for step in proof.plan(settings)), "half a line, and U+2028 ends none"
    trained_folder = tmp_path / "lambda0.5-seed0"
    (trained_folder / "adapter").mkdir(parents=True)
    (trained_folder / "adapter/adapter_config.json").touch()
    (trained_folder / "metrics.jsonl").write_text("{}\n" * 30, "utf-8")
    done = [[step.name for step in proof.plan(replace(settings, steps=n)) if step.done] for n in (30, 31)]
    assert done == [["train"], []], "more steps than were made are left to make"
    arguments: list[Any] = ["run", "--out", str(tmp_path), "--only", "lambda9-seed0"]
    assert proof.main(arguments) == 2
    assert "no such run; the runs are base, lambda0.5-seed0" in capsys.readouterr().err
