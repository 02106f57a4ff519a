"""The proof's tables and curves, recomputed from its rows: `python -m eval proof runs/proof --out docs/results`.

Reads the folder that `python -m train.proof run` fills. What is not there yet is named as missing, never guessed.
Every accuracy is over all scored rows with Wilson's interval; tests are paired by episode.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.compare import load_run
from eval.local_model import adapter_sha256
from eval.rows import ROWS_FILE, RUN_FILE, summarise
from eval.stats import UNSCORED_LIMIT, Interval, mcnemar_exact, paired_bootstrap, permutation_test, wilson
from rewards import strict_json
from rewards.commands import Parser, answered
from rewards.errors import UserError
from train.folders import ADAPTER_FILES
from train.local_config import MAY_CHANGE
from train.overrides import flattened, load_toml
from train.proof import ENDS, run_name

EXAMPLE = """example:
  python -m eval proof runs/proof --out docs/results/supersede_proof"""

PLAYED_ALIKE = ("budget", "wording", "show_dates")
"""Of run.json's `protocol`; the condition is what some comparisons are about."""

Rows = dict[str, dict[str, Any]]
"""Scored rows by task id (the proof samples each task once)."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluated model on one task set."""

    label: str
    rows: Rows
    info: Mapping[str, Any]
    unscored: int

    @property
    def invalid(self) -> bool:
        """More unscored rows than a run may have."""
        return self.unscored > UNSCORED_LIMIT * (len(self.rows) + self.unscored)

    @property
    def accuracy(self) -> float:
        return self.rate("r_cur")

    def rate(self, key: str) -> float:
        """Mean of `r_cur`, or of a metric."""
        values = [row["r_cur"] if key == "r_cur" else row["metrics"][key] for row in self.rows.values()]
        return sum(values) / len(values)

    def interval(self, key: str = "r_cur") -> Interval:
        return wilson(self.rate(key) * len(self.rows), len(self.rows))


@dataclass(slots=True)
class Run:
    """One seed and lambda: greedy `evaluations` by stage (warm, step 10, trained), the same tasks `sampled`, `real`
    rows, training metrics."""

    name: str
    weight: float
    seed: int
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    sampled: dict[str, Evaluation] = field(default_factory=dict)
    real: dict[str, Evaluation] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    minutes: float = 0.0

    def played(self, sampled: bool) -> dict[str, Evaluation]:
        """The generated episodes by stage, greedy or sampled."""
        return self.sampled if sampled else self.evaluations


@dataclass(slots=True)
class Proof:
    """Everything found in the folder."""

    base: dict[str, Evaluation]
    sampled_base: Evaluation | None
    real_base: Evaluation | None
    runs: list[Run]

    @property
    def weights(self) -> list[float]:
        """The lambdas, the highest first."""
        return sorted({one.weight for one in self.runs}, reverse=True)

    def arm(self, weight: float, *stages: str, sampled: bool = False) -> list[Run]:
        """The runs of one lambda that have all of these stages."""
        return [run for run in self.runs if run.weight == weight and set(stages) <= set(run.played(sampled))]


def run(args: list[str]) -> int:
    """Entry of `python -m eval proof`. 0: done; 2: refused."""
    parser = Parser("python -m eval proof", "Tables and curves of the training proof.", EXAMPLE)
    parser.add_argument("folder", type=Path, help="the folder of python -m train.proof")
    parser.add_argument("--out", type=Path, help="write OUT.md, OUT.json and OUT.png besides printing")
    options = parser.read(args)
    return answered("proof", lambda: _print(options))


def _print(options: argparse.Namespace) -> int:
    from eval import proof_page  # it reads this module's classes

    proof = load(options.folder)
    lines = proof_page.render(proof)
    print("\n".join(lines))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        page, data, picture = (options.out.with_name(options.out.name + end) for end in (".md", ".json", ".png"))
        page.write_text("\n".join(lines) + "\n", "utf-8")
        data.write_text(json.dumps(numbers(proof), indent=1) + "\n", "utf-8")
        proof_page.plot(proof, picture)
    return 0


def load(folder: Path) -> Proof:
    """What is done so far. Raises `UserError` when there is nothing or a file is damaged."""
    base = {c: e for c in ("bounded", "full") if (e := _evaluation(folder / "base" / "eval" / c, f"base {c}"))}
    for extra in sorted((folder / "base").glob("baselines/*")):
        found = _evaluation(extra, f"base with {extra.name.replace('_', ' ')}")
        base |= {extra.name: found} if found else {}
    runs = [_run(place) for place in sorted(folder.glob("lambda*-seed*"))]
    refuse_trained_otherwise([folder / one.name / "config.toml" for one in runs])
    if not base and not runs:
        raise UserError(f"{folder} holds no part of the proof: python -m train.proof run --out {folder}")
    # the warm start does not depend on lambda: it is evaluated once a seed, where the bytes are the same
    for one in runs:
        own = folder / one.name / "warm"
        weights = adapter_sha256(str(own)) if (own / ADAPTER_FILES[0]).is_file() else None
        for other in runs:
            for sampled in (False, True):
                warm = other.played(sampled).get("warm")
                if other.seed == one.seed and warm and weights in (None, warm.info["adapter_sha256"]):
                    one.played(sampled).setdefault("warm", warm)
    sampled_base, real_base = (_evaluation(folder / "base" / w / "bounded", "base") for w in ("sampled", "real"))
    for of_base, of_runs in (
        (base.values(), [one.evaluations for one in runs]),
        ([sampled_base], [one.sampled for one in runs]),
        ([real_base], [one.real for one in runs]),
    ):
        refuse_mixed([e for e in (*of_base, *(e for stages in of_runs for e in stages.values())) if e])
    return Proof(base, sampled_base, real_base, runs)


def _run(place: Path) -> Run:
    one = _named(place)
    for evaluated in sorted((place / "eval").glob("*")):
        adapter = place / ("adapter" if evaluated.name == "trained" else evaluated.name)
        stage = re.sub(r"step_0*(\d+)", r"step \1", evaluated.name)
        found = _evaluation(evaluated / "bounded", stage, adapter)
        one.evaluations |= {stage: found} if found else {}
    for kind, stages in (("sampled", one.sampled), ("real", one.real)):
        for stage, adapter in ENDS.items():
            found = _evaluation(place / kind / stage / "bounded", stage, place / adapter)
            stages |= {stage: found} if found else {}
    one.metrics = _lines(place / "metrics.jsonl")
    one.minutes = sum(row["seconds"] for row in (*_lines(place / "warm.jsonl"), *one.metrics)) / 60
    return one


def _named(place: Path) -> Run:
    """The run that the folder's name tells. A copy beside it would count its seed twice."""
    weight, _, seed = place.name.removeprefix("lambda").partition("-seed")
    try:
        one = Run(place.name, float(weight), int(seed))
        if run_name(one.weight, one.seed) == place.name:
            return one
    except ValueError:
        pass
    raise UserError(f"{place} has not the name of a run, such as {run_name(0.5, 0)}: move it elsewhere")


def _evaluation(folder: Path, label: str, adapter: Path | None = None) -> Evaluation | None:
    """A finished evaluation; None while it is missing or running. Raises `UserError` when it is damaged, or when
    `adapter` is not what it evaluated."""
    if not (folder / RUN_FILE).is_file() or not (folder / ROWS_FILE).is_file():
        return None
    try:
        info = strict_json.loads((folder / RUN_FILE).read_bytes())
        total = int(info["n"]) * int(info["samples"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder / RUN_FILE} is damaged: {type(error).__name__} {error}") from error
    rows = _lines(folder / ROWS_FILE)
    if len(rows) < total:
        return None  # still running
    load_run(folder)  # missing, cut, doubled or malformed rows
    if info["samples"] != 1:
        raise UserError(f"{folder}: {info['samples']} samples a task; the proof's tests take one")
    there = adapter is not None and (adapter / "adapter_model.safetensors").is_file()
    if there and adapter_sha256(str(adapter)) != info.get("adapter_sha256"):
        raise UserError(f"{folder} evaluated another adapter than {adapter}: delete it, train.proof makes it anew")
    scored = {row["id"]: row for row in rows if row["scored"]}
    if not scored:
        raise UserError(f"{folder}: no row was scored")
    return Evaluation(label, scored, info | {"folder": str(folder)}, len(rows) - len(scored))


def _lines(file: Path) -> list[dict[str, Any]]:
    """The whole lines of a file; the last one may be torn while its writer runs, or was killed."""
    if not file.is_file():
        return []
    rows = []
    for number, line in enumerate(file.read_bytes().split(b"\n")[:-1], 1):
        try:
            rows += [strict_json.loads(line)] if line else []
        except ValueError:
            raise UserError(f"{file}, line {number} is damaged: no valid JSON") from None
    return rows


def refuse_mixed(evaluations: Sequence[Evaluation]) -> None:
    """Raise `UserError` when models, graders, task sets or ways of playing are mixed: such numbers do not compare.

    The version of the code may differ (the page names it): sources that change no verdict are part of it, too.
    """
    tasks: dict[str, tuple[Any, str]] = {}
    sets: dict[int, tuple[str, str]] = {}
    for one in evaluations:
        first, where = evaluations[0], one.info["folder"]
        now, before = _made_with(one.info), _made_with(first.info)
        differing = [key for key in now if now[key] != before[key]]
        if differing:
            key, other = differing[0], first.info["folder"]
            raise UserError(f"{key} is {now[key]!r} in {where} and {before[key]!r} in {other}: not one page")
        task_set, elsewhere = sets.setdefault(one.info["n"], (one.info["task_set"], where))
        if task_set != one.info["task_set"]:
            raise UserError(f"{where} and {elsewhere} hold different task sets: not one page")
        for row in one.rows.values():  # also where one evaluation takes fewer of the tasks
            task = [row.get(key) for key in ("question", "gold", "stale")]
            known, elsewhere = tasks.setdefault(row["id"], (task, where))
            if known != task:
                raise UserError(f"{where} and {elsewhere} hold different tasks named '{row['id']}': not one page")


OWN_SETTINGS = ("seed", "data.first_seed", "stale_weight")
"""In which a proof's runs differ."""


def refuse_trained_otherwise(files: Sequence[Path]) -> None:
    """Raise `UserError` when runs were trained with different settings: their seeds and lambdas do not compare. `steps`
    may be raised when a run is resumed, and yet makes another run; a copy without config.toml is not looked at."""
    configs = [(file, flattened(load_toml(file))) for file in files if file.is_file()]
    for file, config in configs[1:]:
        first, before = configs[0]
        for key in sorted({*config, *before} - {*OWN_SETTINGS, *MAY_CHANGE} | {"steps"}):
            if config.get(key) != before.get(key):
                what = f"{key} is {config.get(key)!r} in {file} and {before.get(key)!r} in {first}"
                raise UserError(f"{what}: not one page")


def _made_with(info: Mapping[str, Any]) -> dict[str, Any]:
    played = {key: info["protocol"].get(key) for key in PLAYED_ALIKE}
    sampled = {key: info["sampling"].get(key) for key in ("temperature", "max_tokens")}
    return {"model": info["model"], "grader_version": info["grader_version"]} | played | sampled


def paired(a: Evaluation, b: Evaluation) -> dict[str, Any]:
    """B beside A on the tasks that both scored: difference with its interval, exact McNemar p."""
    ids = _shared([a, b])
    left, right = ([float(e.rows[i]["r_cur"]) for i in ids] for e in (a, b))
    only_a = sum(x > y for x, y in zip(left, right, strict=True))
    only_b = sum(x < y for x, y in zip(left, right, strict=True))
    interval = paired_bootstrap(left, right)
    return {
        "n": len(ids),
        "difference": (only_b - only_a) / len(ids),
        "low": interval.low,
        "high": interval.high,
        "only_a": only_a,
        "only_b": only_b,
        "p": mcnemar_exact(only_a, only_b),
    }


def clustered(a: Sequence[Evaluation], b: Sequence[Evaluation], key: str = "r_cur") -> dict[str, float]:
    """Mean over seeds of B beside A: bootstrap interval over episodes and permutation p clustered by episode."""
    ids = _shared([*a, *b])
    left, right = ([[_value(e.rows[i], key) for i in ids] for e in side] for side in (a, b))
    means = [[sum(column) / len(side) for column in zip(*side, strict=True)] for side in (left, right)]
    interval = paired_bootstrap(means[0], means[1])
    difference = (sum(means[1]) - sum(means[0])) / len(ids)
    return {
        "n": len(ids),
        "difference": difference,
        "low": interval.low,
        "high": interval.high,
        "p": permutation_test(left, right),
    }


def _shared(evaluations: Sequence[Evaluation]) -> list[str]:
    """Episodes that all of them scored. Raises `UserError` when there is none."""
    first, *others = evaluations
    ids = [i for i in first.rows if all(i in e.rows for e in others)]
    if not ids:
        raise UserError(f"no episode is scored in all of {', '.join(e.info['folder'] for e in evaluations)}")
    return ids


def _value(row: Mapping[str, Any], key: str) -> float:
    return float(row["r_cur"] if key == "r_cur" else row["metrics"][key])


def numbers(proof: Proof) -> dict[str, Any]:
    """The same facts as the page, for programs."""
    found: dict[str, Any] = {"base": {name: _plain(e) for name, e in proof.base.items()}, "runs": {}}
    found |= {"base sampled": _plain(proof.sampled_base)} if proof.sampled_base else {}
    for one in proof.runs:
        found["runs"][one.name] = {
            "seed": one.seed,
            "lambda": one.weight,
            "training_minutes": one.minutes,
            "grpo_steps": len(one.metrics),
            "validation": {stage: _plain(e) for stage, e in one.evaluations.items()},
            **({"sampled": {stage: _plain(e) for stage, e in one.sampled.items()}} if one.sampled else {}),
            "real": {stage: _plain(e) for stage, e in one.real.items()},
            "tests": tests(proof, one),
        }
    return found | over_seeds(proof)


PLAYED = {False: "", True: "sampled: "}
"""Whether the generated episodes were sampled, and how the tests over them are named."""

SHARES = {"r_cur": "correct", "is_stale": "stale", "is_hedged": "hedged"}


def over_seeds(proof: Proof) -> dict[str, dict[str, float]]:
    """Comparisons over the seeds that have both sides: trained beside warm, and every lambda beside the smallest."""
    found: dict[str, dict[str, float]] = {}
    weights = proof.weights
    for weight in weights:
        for sampled, prefix in PLAYED.items():
            arm = proof.arm(weight, *ENDS, sampled=sampled)
            if arm:
                warm, trained = ([run.played(sampled)[stage] for run in arm] for stage in ENDS)
                label = f"{prefix}trained over warm, lambda {weight:g}"
                found[label] = {"seeds": len(arm)} | clustered(warm, trained)
    least = {run.seed: run.evaluations["trained"] for run in proof.arm(weights[-1], "trained")} if weights else {}
    for weight in weights[:-1]:
        own = {run.seed: run.evaluations["trained"] for run in proof.arm(weight, "trained") if run.seed in least}
        for key, name in SHARES.items() if own else ():
            test = clustered([least[seed] for seed in own], list(own.values()), key)
            found[f"lambda {weight:g} over lambda {weights[-1]:g}: {name}"] = {"seeds": len(own)} | test
    return found


def _plain(evaluation: Evaluation) -> dict[str, Any]:
    interval = evaluation.interval()
    summary = summarise(list(evaluation.rows.values()))
    return {
        "n": len(evaluation.rows),
        "unscored": evaluation.unscored,
        "accuracy": evaluation.accuracy,
        "low": interval.low,
        "high": interval.high,
        "stale": summary.rates["is_stale"],
        "hedged": summary.rates["is_hedged"],
        "lost": summary.lost,
        "grader_version": evaluation.info["grader_version"],
        "code_version": evaluation.info["code_version"],
    }


def tests(proof: Proof, one: Run) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for sampled, prefix in PLAYED.items():
        warm, trained = (one.played(sampled).get(stage) for stage in ENDS)
        base = proof.sampled_base if sampled else proof.base.get("bounded")
        if trained and base:
            found[f"{prefix}trained over base"] = paired(base, trained)
        if trained and warm:
            found[f"{prefix}trained over warm"] = paired(warm, trained)
    for stage, real in one.real.items():
        if proof.real_base:
            found[f"real: {stage} over base"] = paired(proof.real_base, real)
    if len(one.real) == 2:
        found["real: trained over warm"] = paired(one.real["warm"], one.real["trained"])
    return found
