"""`python -m train.proof`: the proof that Supersede trains the small model, as separate resumable steps.

A run is a seed and a lambda: warm start, GRPO (configs/supersede_proof.toml), then evaluations of its warm start, of
some checkpoints and of its last adapter on generated validation episodes (greedy; both ends of a run also sampled, as
training does) and on real conversations. The base model is evaluated once. Every step is a command that anybody can run
alone; what is done is told by the files it leaves.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from rewards.commands import INTERRUPTED, Parser, answered
from rewards.errors import UserError
from train.local_config import LocalConfig, load_config

EXAMPLE = """examples:
  python -m train.proof status                      # what is done and what is left
  python -m train.proof run                         # everything that is left, one step after the other; resumes
  python -m train.proof run --only lambda0.5-seed1  # one run, for instance on another machine
Exit status: 0 done, 1 a step failed (the same command resumes), 2 refused, 130 interrupted."""

CONFIG = "supersede_proof.toml"
SEEDS, LAMBDAS = (0, 1, 2), (0.5, 0.0)
EPISODES_APART = 10_000
"""Seed s trains on generated episodes from s times this number: no two seeds share one."""
RULES = ("no_memory", "copy_last", "oracle_notes")
"""Note-takers that are no model: the base model answers from their notes."""
VALIDATION_FROM = 1_000
"""First validation seed: episodes before it were played with earlier configurations (docs/results/README.md)."""
ENDS = {"warm": "warm", "trained": "adapter"}
"""The stages at the two ends of a run's GRPO, and the folders of their adapters."""
CHECKPOINT_N = 100
"""Validation episodes at each checkpoint; the ends of a run get all `n`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to prove and on how much."""

    out: Path
    seeds: tuple[int, ...] = SEEDS
    lambdas: tuple[float, ...] = LAMBDAS
    n: int = 300
    real: int = 24
    steps: int | None = None
    model: str = "smollm2-135m"


@dataclass(frozen=True, slots=True)
class Step:
    """One command. It is done when `file` has `rows` whole lines and `product`, where one is named, exists."""

    run: str
    name: str
    command: tuple[str, ...]
    file: Path
    rows: int
    product: Path | None = None

    @property
    def done(self) -> bool:
        if not self.file.is_file() or (self.product is not None and not self.product.is_file()):
            return False
        return self.lines >= self.rows

    @property
    def lines(self) -> int:
        """Whole lines of `file`."""
        # bytes: texts may hold U+2028, which splitlines cuts at, and a killed writer may leave half a line
        return self.file.read_bytes().count(b"\n")


def run_name(weight: float, seed: int) -> str:
    """The run's folder."""
    return f"lambda{weight:g}-seed{seed}"


def plan(settings: Settings) -> list[Step]:
    """All steps in order: the base model, then run after run, seeds first."""
    config = load_config(Path(str(files("configs") / CONFIG)))
    steps = list(_base_steps(settings, config))
    for seed in settings.seeds:
        for weight in settings.lambdas:
            steps += _run_steps(settings, config, weight, seed)
    return steps


def _base_steps(settings: Settings, config: LocalConfig) -> Iterator[Step]:
    folder = settings.out / "base"
    for condition in ("bounded", "full"):
        yield _evaluation(settings, config, "base", f"validation {condition}", folder / "eval", None, condition)
    yield _evaluation(settings, config, "base", "sampled", folder / "sampled", None, sampled=True)
    for system in RULES:
        yield _evaluation(settings, config, "base", f"validation {system}", folder / "baselines", None, system=system)
    if settings.real:
        yield _evaluation(settings, config, "base", "real", folder / "real", None, real=True)


def _run_steps(settings: Settings, config: LocalConfig, weight: float, seed: int) -> Iterator[Step]:
    name = run_name(weight, seed)
    folder, total = settings.out / name, config.steps if settings.steps is None else settings.steps
    words = ["train.cli", "train", "--env", "supersede", "--engine", "local"]
    words += ["--config", str(files("configs") / CONFIG), "--output", str(folder), "--resume"]
    words += ["--seed", str(seed), "--data.first_seed", str(seed * EPISODES_APART), "--stale_weight", f"{weight:g}"]
    words += ["--steps", str(total), "--model", settings.model]
    product = folder / "adapter" / "adapter_config.json"
    yield Step(name, "train", tuple(words), folder / "metrics.jsonl", total, product)
    warm = weight == settings.lambdas[0]  # the warm start does not depend on lambda: the first one's is evaluated
    ends = {stage: folder / adapter for stage, adapter in ENDS.items() if warm or stage != "warm"}
    for stage, adapter in ends.items():
        yield _evaluation(settings, config, name, f"validation {stage}", folder / "eval" / stage, adapter)
    for step in range(10, total, 10) if warm else ():
        adapter = folder / f"step_{step:04d}"
        out = folder / "eval" / adapter.name
        yield _evaluation(settings, config, name, f"validation step {step}", out, adapter, n=CHECKPOINT_N)
    for stage, adapter in ends.items():
        out = folder / "sampled" / stage
        yield _evaluation(settings, config, name, f"sampled {stage}", out, adapter, sampled=True)
    for stage, adapter in ends.items() if settings.real else ():
        yield _evaluation(settings, config, name, f"real {stage}", folder / "real" / stage, adapter, real=True)


def _evaluation(
    settings: Settings,
    config: LocalConfig,
    run: str,
    name: str,
    out: Path,
    adapter: Path | None,
    condition: str = "bounded",
    *,
    n: int | None = None,
    real: bool = False,
    system: str = "notes",
    sampled: bool = False,
) -> Step:
    protocol = config.protocol
    count = settings.real if real else min(settings.n, n or settings.n)
    words = ["eval", "supersede", "--model", settings.model, "--wording", protocol.wording]
    words += ["--budget", str(protocol.budget), "--max-tokens", str(config.max_notes_tokens)]
    words += [] if protocol.show_dates else ["--no-dates"]
    generated = ["--data", "validation", "--preset", str(config.data.preset), "--first-seed", str(VALIDATION_FROM)]
    words += [*(["--data", "oracle", "--fitting"] if real else generated), "--n", str(count), "--condition", condition]
    words += ["--batch-size", "8" if real else "50", "--out", str(out)]
    words += ["--adapter", str(adapter)] if adapter else []
    words += ["--system", system] if system != "notes" else []
    # as training samples: GRPO improves the policy that samples, not its best guess
    words += ["--temperature", f"{config.temperature:g}"] if sampled else []
    return Step(run, name, tuple(words), out / (condition if system == "notes" else system) / "rows.jsonl", count)


def run_all(settings: Settings, only: Sequence[str]) -> int:
    """Make what is left. 0, or 1 when a step failed."""
    steps = [step for step in plan(settings) if not only or step.run in only]
    if not steps:
        raise UserError(f"--only {' '.join(only)}: no such run; the runs are {', '.join(_runs(plan(settings)))}")
    for number, step in enumerate(steps, 1):
        if step.done:
            continue
        print(f"[{number}/{len(steps)}] {step.run}: {step.name}\n  {_shown(step)}", flush=True)
        began = time.monotonic()
        code = _call([sys.executable, "-m", *step.command])
        if not code and "--fitting" in step.command and 0 < step.lines < step.rows:
            raise UserError(f"only {step.lines} real rows fit {settings.model}: give --real {step.lines}")
        if code or not step.done:
            print(f"proof: {step.run}, {step.name} ended with status {code}; the same command resumes", file=sys.stderr)
            return INTERRUPTED if code == INTERRUPTED else 1
        with (settings.out / "times.jsonl").open("a", encoding="utf-8") as log:
            row = {"run": step.run, "step": step.name, "seconds": round(time.monotonic() - began)}
            log.write(json.dumps(row) + "\n")
    print("\n".join(status(settings)))
    return 0


def _call(command: Sequence[str]) -> int:
    """The command's exit status. Ctrl-C reaches it as well as us, SIGTERM is passed on: it gets the time to save what
    it has, and does not go on alone."""
    with subprocess.Popen(command) as child:
        before = signal.signal(signal.SIGTERM, lambda number, frame: child.terminate())
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.wait()
            raise
        finally:
            signal.signal(signal.SIGTERM, before)


def status(settings: Settings) -> list[str]:
    """A line a run: which steps are done, which are left, and what the finished ones took."""
    log = settings.out / "times.jsonl"
    whole = log.read_text("utf-8").split("\n")[:-1] if log.is_file() else []
    times = [json.loads(line) for line in whole]
    steps = plan(settings)
    lines = [f"{'run':<16} {'done':>6}  {'minutes':>7}  left"]
    for name in _runs(steps):
        own = [step for step in steps if step.run == name]
        left = [step.name for step in own if not step.done]
        minutes = sum(row["seconds"] for row in times if row["run"] == name) / 60
        lines.append(f"{name:<16} {len(own) - len(left):>2}/{len(own):<3}  {minutes:>7.1f}  {', '.join(left) or '-'}")
    return lines


def _runs(steps: Sequence[Step]) -> list[str]:
    return list(dict.fromkeys(step.run for step in steps))


def _shown(step: Step) -> str:
    return "python -m " + " ".join(step.command)


def main(args: Sequence[str] | None = None) -> int:
    """Entry of `python -m train.proof`."""
    top = Parser(
        "python -m train.proof",
        "Prove that Supersede trains: seeds x lambdas, base, warm and trained, on held-out episodes.",
        EXAMPLE,
    )
    add = top.add_argument
    add("command", choices=("run", "status"))
    add("--out", type=Path, default=Path("runs/proof"), help="default runs/proof")
    add("--only", nargs="+", default=[], metavar="RUN", help="these runs only, such as base or lambda0.5-seed1")
    add("--seeds", type=int, nargs="+", default=list(SEEDS), help="default 0 1 2")
    add("--lambdas", type=float, nargs="+", default=list(LAMBDAS), help="default 0.5 0")
    add("--n", type=int, default=300, help="validation episodes (default 300)")
    add("--real", type=int, default=24, help="real conversations that fit the model (default 24; 0: none)")
    add("--steps", type=int, help="GRPO steps instead of the configuration's")
    add("--model", default="smollm2-135m", help="another model, for instance on a GPU (give another --out)")
    options = top.read(args)
    return answered("proof", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    for name, least in (("n", 1), ("steps", 1), ("real", 0)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise UserError(f"--{name} is {value}: give {least} or more")
    seeds, lambdas = tuple(options.seeds), tuple(options.lambdas)
    settings = Settings(options.out, seeds, lambdas, options.n, options.real, options.steps, options.model)
    if options.command == "status":
        print("\n".join(status(settings)))
        return 0
    settings.out.mkdir(parents=True, exist_ok=True)
    return run_all(settings, options.only)


if __name__ == "__main__":
    sys.exit(main())
