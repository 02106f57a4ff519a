"""A disk that is full, a folder that cannot be written, a second process, a clock that goes backwards: one clear line
or no difference at all, nothing damaged, and the same command goes on afterwards to the same end."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from benchmarks.crash import State, difference, state_of_insert, state_of_rows, state_of_training, tiny_model
from eval.locks import only_writer
from tests import lme_world

ROOT = Path(__file__).parents[1]

BACKWARDS = """import time, itertools
print("backwards")
for name, unit in (("time", 1), ("time_ns", 10**9)):
    steps, now = itertools.count(), getattr(time, name)()
    setattr(time, name, lambda steps=steps, now=now, unit=unit: now - 3_600 * unit * next(steps))
"""
"""Python runs a file of this name on the path before anything else: each look at the clock is an hour earlier."""


def evaluation(folder: Path, out: Path) -> list[str]:
    words = ["eval", "supersede", "--model", "none", "--system", "copy_last", "--data", "train", "--preset", "quick"]
    return [*words, "--n", "40", "--condition", "bounded", "--out", str(out)]


def insert(folder: Path, out: Path) -> list[str]:
    world = folder / "world"
    if not world.exists():
        lme_world.write(world, [lme_world.trajectory(number) for number in range(6)])
    words = ["eval", "lme-v2", "--system", "rag_slice", "--data", str(world), "--reader", "extractive"]
    return [*words, "--embedder", "hashing", "--cache", str(out / "cache"), "--out", str(out / "run")]


def training(folder: Path, out: Path) -> list[str]:
    model = folder / "model"
    if not model.exists():
        tiny_model(model)
    words = ["train.cli", "train", "--env", "supersede", "--engine", "local", "--model", str(model), "--resume"]
    words += ["--steps", "1", "--groups", "1", "--group_size", "2", "--warm_start.steps", "1", "--dtype", "fp32"]
    return [*words, "--max_notes_tokens", "4", "--max_minutes", "None", "--output", str(out)]


def start(words: list[str], most_bytes: int | None = None, site: Path = ROOT) -> subprocess.Popen[str]:
    """The command, with files that cannot grow over `most_bytes`, which is what a full disk looks like to a program."""

    def limit() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes or hard, hard))

    return subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limit,
    )


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    out, error = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def run(words: list[str], most_bytes: int | None = None, site: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return ended(start(words, most_bytes, site))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands' inputs lie, and what each leaves undisturbed, which is made once."""
    return tmp_path_factory.mktemp("faults")


class Command(Protocol):
    """A command for (the folder of its inputs, the folder of its outputs)."""

    __name__: str

    def __call__(self, folder: Path, out: Path) -> list[str]: ...


def undisturbed(base: Path, command: Command) -> Path:
    whole = base / command.__name__
    if not whole.exists():
        assert run(command(base, whole)).returncode == 0
    return whole


COMMANDS = pytest.mark.parametrize(
    ("command", "state"),
    [(evaluation, state_of_rows), (insert, state_of_insert), (training, state_of_training)],
    ids=["evaluation", "insert", "training"],
)


@COMMANDS
def test_a_second_process_is_refused_and_does_nothing(
    base: Path, tmp_path: Path, command: Command, state: Callable[[Path], State]
) -> None:
    """The first is this process, which holds the locks that an undisturbed run leaves behind."""
    whole, shared = undisturbed(base, command), tmp_path / "shared"
    locks = [lock.relative_to(whole).parent for lock in whole.rglob(".lock")]
    assert locks
    with ExitStack() as held:
        for place in locks:
            held.enter_context(only_writer(shared / place))
        refused = run(command(base, shared))
        assert refused.returncode == 2
        assert "another process" in refused.stderr.splitlines()[-1]
        assert "Traceback" not in refused.stderr
        assert not state_of_rows(shared), "rows were written"
    assert run(command(base, shared)).returncode == 0
    assert difference(state(whole), state(shared)) is None


@COMMANDS
def test_a_clock_that_goes_backwards_changes_nothing(
    base: Path, tmp_path: Path, command: Command, state: Callable[[Path], State]
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(BACKWARDS)
    whole, backwards = undisturbed(base, command), tmp_path / "backwards"
    done = run(command(base, backwards), site=tmp_path / "site")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("backwards"), "the clock was not replaced"
    assert difference(state(whole), state(backwards)) is None


@pytest.mark.parametrize(
    ("command", "state", "limits"),
    [(insert, state_of_insert, (1_000, 9_000)), (training, state_of_training, (20_000,))],
    ids=["insert", "training"],
)
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    base: Path, tmp_path: Path, command: Command, state: Callable[[Path], State], limits: tuple[int, ...]
) -> None:
    whole, parts = undisturbed(base, command), tmp_path / "parts"
    for most_bytes in limits:
        full = run(command(base, parts), most_bytes)
        assert full.returncode == 2
        assert "Traceback" not in full.stderr
        (line,) = [line for line in full.stderr.splitlines() if "cannot be written" in line]
        assert str(parts) in line
        assert "mend that, and" in line
    assert run(command(base, parts)).returncode == 0
    assert difference(state(whole), state(parts)) is None


@pytest.mark.parametrize(
    "words", [["eval", "supersede", "--model", "none"], ["eval", "lme-v2"], ["train.cli", "train"]]
)
def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, words: list[str]) -> None:
    lme_world.write(tmp_path / "world", [lme_world.trajectory(0)])
    more = {
        "supersede": [
            "--data",
            "train",
            "--preset",
            "quick",
            "--n",
            "1",
            "--condition",
            "bounded",
            "--system",
            "copy_last",
        ],
        "lme-v2": ["--system", "no_retrieval", "--data", str(tmp_path / "world"), "--reader", "extractive"],
        "train": ["--env", "supersede", "--engine", "local"],
    }[words[1]]
    (tmp_path / "file").write_text("not a folder")
    done = run([*words, *more, "--output" if "train" in words else "--out", str(tmp_path / "file" / "run")])
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert str(tmp_path / "file") in done.stderr.splitlines()[-1]
