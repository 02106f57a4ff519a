"""A disk that is full, a folder that cannot be written, a second process: one clear line, nothing damaged, and the same
command goes on afterwards to the same end."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.crash import State, difference, state_of_insert, state_of_training, tiny_model
from tests import lme_world

ROOT = Path(__file__).parents[1]


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


def run(words: list[str], most_bytes: int | None = None) -> subprocess.CompletedProcess[str]:
    """The command, with files that cannot grow over `most_bytes`, which is what a full disk looks like to a program."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes or resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, preexec_fn=limit)


@pytest.mark.parametrize(
    ("command", "state", "limits"),
    [(insert, state_of_insert, (1_000, 9_000)), (training, state_of_training, (20_000,))],
    ids=["insert", "training"],
)
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    tmp_path: Path, command: Callable[[Path, Path], list[str]], state: Callable[[Path], State], limits: tuple[int, ...]
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run(command(tmp_path, whole)).returncode == 0
    for most_bytes in limits:
        full = run(command(tmp_path, parts), most_bytes)
        assert full.returncode == 2
        assert "Traceback" not in full.stderr
        (line,) = [line for line in full.stderr.splitlines() if "cannot be written" in line]
        assert str(parts) in line
        assert "mend that, and" in line
    assert run(command(tmp_path, parts)).returncode == 0
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
