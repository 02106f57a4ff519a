"""Manners that every command shares: an example and the exit statuses in --help, one line for a slip, `| head`.

A command is a module and the words before its options. In process where an entry point takes arguments; the start-up
times and the pipe need real processes.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from eval.__main__ import COMMANDS
from eval.__main__ import main as evaluation
from rewards.commands import INTERRUPTED, answered

ROOT = Path(__file__).resolve().parents[1]

Main = Callable[[list[str]], int | None]


def entry(module: str, *words: str) -> Main:
    return lambda args: import_module(module).main([*words, *args])


def evaluate(*words: str) -> Main:
    return lambda args: evaluation([*words, *args])


ENTRIES: dict[str, tuple[Main, str, str]] = {
    **{f"eval {name}": (evaluate(name), "--ouT", "--out") for name in COMMANDS if name != "submission"},
    "eval submission build": (evaluate("submission", "build"), "--forse", "--force"),
    "eval submission check": (evaluate("submission", "check"), "--halp", "--help"),
    "eval.lme_scale": (entry("eval.lme_scale"), "--phaze", "--phase"),
    "eval.shortcuts": (entry("eval.shortcuts"), "--preset", "--presets"),
    "eval.timelines_report": (entry("eval.timelines_report"), "--episode", "--episodes"),
    "train.cli": (entry("train.cli", "train", "--env", "supersede"), "--engin", "--engine"),
    "train.proof": (entry("train.proof", "status"), "--seed", "--seeds"),
    "train.hub build": (entry("train.hub", "build"), "--no-rollout", "--no-rollouts"),
    "train.hub check": (entry("train.hub", "check"), "--quik", "--quick"),
    "train.hub tables": (entry("train.hub", "tables"), "--chek", "--check"),
    "train.export": (entry("train.export"), "--merg", "--merge"),
    "train.sft_data": (entry("train.sft_data"), "--budge", "--budget"),
    "generators timelines": (entry("generators.__main__", "timelines"), "--sed", "--seed"),
    "generators webworld write": (entry("generators.__main__", "webworld", "write"), "--world", "--worlds"),
    "generators webworld show": (entry("generators.__main__", "webworld", "show"), "--sead", "--seed"),
    "generators webworld check": (entry("generators.__main__", "webworld", "check"), "--world", "--worlds"),
    "lme_v2_env.download": (entry("lme_v2_env.download"), "--screenshot", "--screenshots"),
    "train.validate": (entry("train.validate"), "--step", "--steps"),
    "benchmarks": (entry("benchmarks.__main__"), "--repeat", "--repeats"),
    "benchmarks.report_page": (entry("benchmarks.report_page"), "--repeat", "--repeats"),
    "benchmarks.hard_endpoint": (entry("benchmarks.hard_endpoint"), "--scal", "--scale"),
    "benchmarks.crash": (entry("benchmarks.crash"), "--kill", "--kills"),
    "benchmarks.lme_policies": (entry("benchmarks.lme_policies"), "--question", "--questions"),
    "benchmarks.lme_rollouts": (entry("benchmarks.lme_rollouts"), "--rollout", "--rollouts"),
    "benchmarks.train_beside_trl": (entry("benchmarks.train_beside_trl"), "--repeat", "--repeats"),
    "tests.scripted_endpoint": (entry("tests.scripted_endpoint"), "--polici", "--policy"),
    "tests.lme_endpoint": (entry("tests.lme_endpoint"), "--polici", "--policy"),
}
"""Command: its entry point, a misspelt option, and the option that is meant. `eval` commands get theirs below."""

SLIPS = {
    "supersede": ("--modle", "--model"),
    "compare": ("--resample", "--resamples"),
    "table": ("--metric", "--metrics"),
    "scale": ("--factor", "--factors"),
    "proof": ("--uot", "--out"),
    "lme-v2": ("--systme", "--system"),
    "agent-tools": ("--plto", "--plot"),
    "lafs": ("--tear", "--tier"),
    "grader-report": ("--case", "--cases"),
    "judge-audit": ("--row", "--rows"),
    "report": ("--uot", "--out"),
}


def answer(main: Main, args: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    try:
        status = main(args)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    said = capsys.readouterr()
    return status or 0, said.out, said.err


@pytest.mark.parametrize("name", ENTRIES)
def test_help_has_an_example_and_the_exit_statuses(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = answer(ENTRIES[name][0], ["--help"], capsys)
    assert status == 0
    assert "Exit status: 0" in out
    _, found, example = out.partition("\nexample")
    assert found, out
    assert name.split()[-1].rpartition(".")[2].replace("cli", "prime-rl") in example  # and not another command


@pytest.mark.parametrize("name", ENTRIES)
def test_a_slip_in_an_option_is_answered_with_the_nearest_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main, *slip = ENTRIES[name]
    if name.startswith("eval ") and "submission" not in name:
        slip = list(SLIPS[name.partition(" ")[2]])
    status, out, err = answer(main, [slip[0], "x"], capsys)
    assert (status, out) == (2, "")
    assert re.search(rf"did you mean '?{re.escape(slip[1])}'?\?", err), err
    assert err.count("\n") == 1, "one line"


@pytest.mark.parametrize(
    ("main", "word", "meant"),
    [(evaluation, "supersed", "supersede"), (entry("generators.__main__"), "timeline", "timelines")],
)
def test_a_slip_in_a_command_is_answered_with_the_nearest_name(
    main: Main, word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = answer(main, [word], capsys)
    assert status == 2
    assert f"did you mean '{meant}'?" in err


@pytest.mark.parametrize("main", [evaluation, entry("generators.__main__"), entry("train.cli")])
def test_the_overviews_have_statuses_too(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = answer(main, ["--help"], capsys)
    assert status == 0
    assert "Exit status: 0" in out


REFUSED = [
    (entry("train.sft_data"), ["--n", "1", "--preset", "quick", "--out", "{file}/sub"], "Not a directory"),
    (entry("generators.__main__"), ["webworld", "write", "{file}/sub", "--worlds", "1"], "Not a directory"),
    (entry("train.proof"), ["run", "--out", "{file}"], "File exists"),
    (evaluate("judge-audit"), ["--base-url", "http://x/v1", "--model", "m", "--rows", "{file}.no"], "No such file"),
    (
        evaluate("judge-audit"),
        ["--base-url", "http://x/v1", "--model", "m", "--rows", "{file}"],
        "line 1: Expecting",
    ),
    (evaluate("grader-report"), ["--cases", "{file}.no"], "no cases at"),
    (evaluate("scale"), ["--data", "quikc", "--out", "{file}.out", "--", "--model", "m"], "did you mean 'quick"),
    (entry("eval.shortcuts"), ["--presets", "hrad"], "did you mean 'hard'"),
]
"""What cannot be written or read is one line and status 2, whatever the command."""


@pytest.mark.parametrize(("main", "args", "message"), REFUSED)
def test_what_cannot_be_read_or_written_is_one_line(
    main: Main, args: Sequence[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("no JSON\n")
    status, _, err = answer(main, [word.replace("{file}", str(file)) for word in args], capsys)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1


def process(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_a_reader_that_has_seen_enough_ends_a_command_quietly() -> None:
    line = f"{sys.executable} -m generators.timelines --set validation | head -n 1 | cut -c 1-20"
    done = process("bash", "-o", "pipefail", "-c", line)
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "lme-v2", "--help"],
        ["eval", "supersede", "--help"],
        ["train.cli", "train", "--help"],
        ["train.export", "--help"],
        ["generators", "webworld", "--help"],
    ],
)
def test_help_starts_at_once(words: Sequence[str]) -> None:
    """Under a second on a machine that does nothing else (0.1 to 0.8). Here CPU time, twice that: loading torch or
    verifiers takes more, and two jobs on one core do not."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process(sys.executable, "-m", *words).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2.0


def test_ctrl_c_says_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert answered("eval", interrupted) == INTERRUPTED
    assert capsys.readouterr().err == "eval: interrupted; the same command resumes\n"
