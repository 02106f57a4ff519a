"""Killed (SIGKILL) at random moments and started again: is anything lost, doubled or changed?

    python -m benchmarks.crash [--kills 50] [--only evaluation insert training report] [--seed 0]

Each victim is a command that resumes when it is started again. It runs once undisturbed; then again and again, each
time with its whole process group killed at a moment drawn evenly from the undisturbed run's duration. When it gets
through, what it left must equal what the undisturbed run left, apart from times and folder names; then the next folder
begins, until `--kills` kills have hit. A start that gets through before its moment comes is no kill, is not counted.

`evaluation`: Supersede against a scripted endpoint. `insert`: LongMemEval-V2, two systems; the store of what was
computed for each trajectory is compared byte by byte. `training`: warm start and GRPO of a tiny model: metrics,
rollouts and adapter. `report`: the page is the whole one or absent, never half of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewards.commands import Parser
from tests import lme_world
from tests.scripted_endpoint import ScriptedEndpoint, echo

State = Mapping[str, Any]
"""What a run left behind: name -> comparable content."""

TIMES = ("second", "time", "usage", "started", "latency", "when", "created")
"""Parts of the keys that hold times: these may differ between two runs."""


@dataclass(frozen=True)
class Victim:
    """A resumable command for a folder, and what it leaves there."""

    command: Callable[[Path], list[str]]
    state: Callable[[Path], State]
    check_midway: Callable[[Path, State], str | None] = lambda folder, whole: None
    """Called after every kill with the undisturbed run's state: what is wrong already, or None."""


@dataclass
class Tally:
    """What happened to one victim."""

    kills: int = 0
    finished: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


EXAMPLE = """example:
  python -m benchmarks.crash --kills 50 --only evaluation training

Exit status: 0 no fault, 1 a fault was found, 2 bad arguments."""


def main(args: list[str] | None = None) -> int:
    parser = Parser("python -m benchmarks.crash", __doc__ or "", EXAMPLE)
    parser.add_argument("--kills", type=int, default=50, help="of each victim (default 50)")
    parser.add_argument("--only", nargs="+", choices=("evaluation", "insert", "training", "report"))
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default 0)")
    options = parser.read(args)
    with tempfile.TemporaryDirectory() as temporary, ScriptedEndpoint(_slowly) as endpoint:
        victims = _victims(Path(temporary), endpoint.url)
        tallies = {
            name: hunt(
                name, victims[name], Path(temporary) / name, options.kills, random.Random(f"{options.seed}{name}")
            )
            for name in options.only or victims
        }
    print("| victim | undisturbed, s | kills | runs that got through | faults |\n|---|---|---|---|---|")
    for name, tally in tallies.items():
        print(f"| {name} | {tally.seconds:.1f} | {tally.kills} | {tally.finished} | {len(tally.faults)} |")
    for name, tally in tallies.items():
        for fault in tally.faults:
            print(f"{name}: {fault}")
    return 1 if any(tally.faults for tally in tallies.values()) else 0


def hunt(name: str, victim: Victim, folder: Path, kills: int, draw: random.Random) -> Tally:
    """Kill, start again, compare, until `kills` kills have hit."""
    tally = Tally()
    folder.mkdir(parents=True)
    began = time.monotonic()
    _run(victim.command(folder / "whole"))
    tally.seconds = time.monotonic() - began
    whole = victim.state(folder / "whole")
    number = 0
    while tally.kills < kills and len(tally.faults) < 5:
        parts = folder / f"parts{number}"
        while tally.kills < kills and _killed(victim.command(parts), draw.uniform(0, tally.seconds)):
            tally.kills += 1
            if fault := victim.check_midway(parts, whole):
                tally.faults.append(f"after kill {tally.kills}: {fault}")
            if sys.stderr.isatty() or tally.kills % 10 == 0:
                print(f"crash: {name}: {tally.kills} of {kills} kills", file=sys.stderr)
        _run(victim.command(parts))
        if fault := difference(whole, victim.state(parts)):
            tally.faults.append(f"after kill {tally.kills}: {fault}")
        tally.finished += 1
        number += 1
        shutil.rmtree(parts, ignore_errors=True)
    return tally


def difference(whole: State, parts: State) -> str | None:
    """The first difference of two states, or None."""
    for key in sorted({*whole, *parts}):
        if key not in parts:
            return f"{key} is lost"
        if key not in whole:
            return f"{key} should not be there"
        if whole[key] != parts[key]:
            return f"{key} is changed: {_short(whole[key])} became {_short(parts[key])}"
    return None


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) < 200 else f"{text[:200]}..."


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
    if done.returncode:
        raise SystemExit(f"crash: {' '.join(command)}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")


def _killed(command: list[str], moment: float) -> bool:
    """Start the command and kill its process group after `moment` seconds; False when it was done before."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, text=True
    )
    try:
        _, error = process.communicate(timeout=moment)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return True
    if process.returncode:
        raise SystemExit(f"crash: {' '.join(command)} ended with {process.returncode}\n{error[-1500:]}")
    return False


def _slowly(messages: list[dict[str, str]]) -> str:
    time.sleep(0.02)
    return echo(messages)


def _victims(folder: Path, url: str) -> dict[str, Victim]:
    world = lme_world.write(folder / "world", [lme_world.trajectory(number) for number in range(40)])
    model = folder / "model"
    python = [sys.executable, "-m"]
    done = folder / "done"

    def evaluation(out: Path) -> list[str]:
        words = ["eval", "supersede", "--model", "scripted", "--base-url", url, "--data", "train", "--preset", "quick"]
        return [*python, *words, "--n", "120", "--condition", "bounded", "--max-concurrent", "4", "--out", str(out)]

    def insert(out: Path) -> list[str]:
        words = ["eval", "lme-v2", "--system", "rag_slice,search", "--data", str(world), "--reader", "extractive"]
        return [*python, *words, "--embedder", "hashing", "--cache", str(out / "cache"), "--out", str(out / "run")]

    def training(out: Path) -> list[str]:
        if not model.exists():
            tiny_model(model)
        words = ["train.cli", "train", "--env", "supersede", "--engine", "local", "--model", str(model), "--resume"]
        words += ["--steps", "8", "--checkpoint_every", "2", "--groups", "2", "--group_size", "4", "--dtype", "fp32"]
        words += ["--warm_start.steps", "5", "--max_notes_tokens", "4", "--turn_weight", "1.0", "--max_minutes", "None"]
        return [*python, *words, "--output", str(out)]

    def report(out: Path) -> list[str]:
        if not done.exists():
            _run(evaluation(done))
        out.mkdir(exist_ok=True)
        return [*python, "eval", "report", str(done), "--out", str(out / "report.html")]

    return {
        "evaluation": Victim(evaluation, state_of_rows),
        "insert": Victim(insert, state_of_insert),
        "training": Victim(training, state_of_training),
        "report": Victim(report, lambda out: _bytes(out, "*"), _whole_page_or_none),
    }


def state_of_insert(folder: Path) -> State:
    """Rows, and every record of the store."""
    return state_of_rows(folder / "run") | _bytes(folder / "cache", "*")


def state_of_training(folder: Path) -> State:
    """Metrics, rollouts, and the last adapter."""
    return state_of_rows(folder) | _bytes(folder, "adapter/*.safetensors")


def _whole_page_or_none(folder: Path, whole: State) -> str | None:
    page = _bytes(folder, "report.html")
    return "half a page" if page and page["report.html"] != whole["report.html"] else None


def state_of_rows(folder: Path) -> dict[str, Any]:
    """Every line of every .jsonl file, without times; a line that occurs twice gets a number, so it shows as doubled.

    The evaluator's own traces, whose ids are drawn anew in every run, are left out: the rows are made from them.
    """
    found: dict[str, Any] = {}
    for file in sorted(folder.rglob("*.jsonl")):
        if "traces" in file.relative_to(folder).parts:
            continue
        for line in file.read_text(encoding="utf-8").split("\n")[:-1]:
            row = json.loads(line)
            identity = [str(row[key]) for key in ("id", "question_id", "step", "group", "sample") if key in row]
            name = f"{file.relative_to(folder)} {' '.join(identity)}"
            key, number = name, 1
            while key in found:
                key, number = f"{name} #{number}", number + 1
            found[key] = _timeless(row)
    return found


def _timeless(node: Any) -> Any:
    if isinstance(node, dict):
        return {k: _timeless(v) for k, v in node.items() if not any(part in k for part in TIMES)}
    return [_timeless(item) for item in node] if isinstance(node, list) else node


def _bytes(folder: Path, pattern: str) -> dict[str, str]:
    """Digests of files; hidden ones are what a killed writer had begun and nobody reads."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob(pattern))
        if file.is_file() and not file.name.startswith(".")
    }


def tiny_model(folder: Path) -> Path:
    from tests.test_train_local import even_policy

    policy = even_policy()
    policy.model.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    sys.exit(main())
