"""Leaderboard packages of LongMemEval-V2: `python -m eval submission build|check`.

`build` makes what the two published scripts make (an operating-point folder for each pair of runs, the overview with
its LAFS gain, a tar.gz) and refuses what they let through: runs over a part of the questions, rows without a score,
metrics that are not those of the rows. `check` does the same to a finished package or archive and names all it finds.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval.lafs import TIERS, Operating, summary
from eval.lme_metrics import join, overview
from eval.rows import write_atomic
from eval.stats import INVALID_EXIT
from eval.submission_runs import DOMAINS, RUN_FILES, Run, load_run, read_json
from rewards.commands import Parser, answered, usage
from rewards.errors import UserError, refuse_unknown

SAFE_NAME = re.compile(r"[A-Za-z0-9._-]+")
RESERVED = ("SYSTEM_DESCRIPTION.md", "submission_overview.json", "operating_points")
OVERVIEW, METADATA = "metric_overview.json", "operating_point_metadata.json"

EXAMPLE = """examples:
  python -m eval submission build my-memory --tier small --method my_memory --out submissions \\
      --point fast=runs/fast_web_small,runs/fast_enterprise_small \\
      --point accurate=runs/slow_web_small,runs/slow_enterprise_small \\
      --description SYSTEM_DESCRIPTION.md --code my_memory.py
  python -m eval submission check submissions/my-memory.tar.gz

Exit status: 0 done, 2 refused, 3 INVALID (the package may not be submitted)."""


USAGE = f"""usage: python -m eval submission build|check [options]

{EXAMPLE}

`build --help` and `check --help` show the options."""


@dataclass(frozen=True, slots=True)
class Point:
    """One operating point: a pair of runs and their joined numbers."""

    name: str
    web: Run
    enterprise: Run
    row: dict[str, Any]

    @property
    def operating(self) -> Operating:
        return Operating(self.name, 100.0 * self.row["overall_full_set"], float(self.row["memory_query_avg_seconds"]))

    @property
    def problems(self) -> list[str]:
        return [
            f"{self.name}/{run.domain}: {problem}" for run in (self.web, self.enterprise) for problem in run.problems
        ]


def run(args: list[str]) -> int:
    """Entry of `python -m eval submission`. 0: done; 2: refused; 3: INVALID (the package may not be submitted)."""
    commands = {"build": (_building, build), "check": (_checking, _checked)}
    if not args or args[0] in ("-h", "--help"):
        return usage(USAGE, args)

    def command() -> int:
        refuse_unknown(args[:1], commands, "submission command")
        parser, action = commands[args[0]]
        return action(parser().read(args[1:]))

    return answered("submission", command)


def _building() -> Parser:
    parser = Parser("python -m eval submission build", "Make a LongMemEval-V2 leaderboard package.", EXAMPLE)
    add = parser.add_argument
    add("name", help="name of the submission (letters, digits, '.', '_', '-')")
    add("--tier", choices=TIERS, required=True)
    add("--method", help="name of the method; otherwise the folders' <method>_<domain>_<tier>")
    add(
        "--point",
        action="append",
        required=True,
        metavar="NAME=WEB,ENTERPRISE",
        help="an operating point: two run folders (repeatable)",
    )
    add("--description", type=Path, required=True, help="SYSTEM_DESCRIPTION.md")
    add("--code", type=Path, required=True, help="one code file")
    add("--out", type=Path, default=Path("submissions"), help="folder of packages (default submissions)")
    add("--force", action="store_true", help="replace a package of the same name")
    return parser


def _checking() -> Parser:
    parser = Parser("python -m eval submission check", "Check a LongMemEval-V2 leaderboard package.", EXAMPLE)
    parser.add_argument("package", type=Path, help="folder or .tar.gz of a package")
    return parser


def _checked(options: argparse.Namespace) -> int:
    problems = check(options.package)
    for problem in problems:
        print(f"INVALID: {problem}")
    if not problems:
        print(f"{options.package.name}: valid, all questions of both domains are there")
    return INVALID_EXIT if problems else 0


def build(options: argparse.Namespace) -> int:
    """Make the package. Nothing is written unless everything is in order."""
    _refuse_name("submission", options.name)
    for file, what in ((options.description, "--description"), (options.code, "--code")):
        if not file.is_file():
            raise UserError(f"{what} {file}: no such file")
    if options.code.name in RESERVED:
        raise UserError(f"--code {options.code.name}: the name is reserved")
    target = options.out / options.name
    archive = options.out / f"{options.name}.tar.gz"
    taken = next((path for path in (target, archive) if path.exists()), None)
    if taken and not options.force:
        raise UserError(f"{taken} exists; --force replaces it")
    points = [load_point(text, options.tier, options.method) for text in options.point]
    problems = [problem for point in points for problem in point.problems] + disagreements(points)
    if problems:
        for problem in problems:
            print(f"INVALID: {problem}", file=sys.stderr)
        return INVALID_EXIT
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.out, prefix=".building-") as scratch:
        folder = Path(scratch) / options.name
        write_package(folder, options.name, options.tier, points, options.description, options.code, archive.name)
        problems = check(folder)
        if problems:
            raise UserError(f"the package would be invalid: {problems[0]}")
        with tarfile.open(Path(scratch) / archive.name, "w:gz") as tar:
            tar.add(folder, arcname=options.name)
        if target.exists():
            shutil.rmtree(target)
        (Path(scratch) / archive.name).replace(archive)
        folder.replace(target)
    score = summary([point.operating for point in points], options.tier)
    for point in points:
        print(f"{point.name}: {point.operating.accuracy:.2f} % at {point.operating.seconds:.3f} s")
    print(f"LAFS gain ({options.tier}): {score['lafs_gain']:+.4f}")
    print(f"package: {target}\narchive: {archive} (holds the gold answers of runtime_inputs, as published)")
    return 0


def load_point(text: str, tier: str, method: str | None) -> Point:
    """`name=web,enterprise` -> the point. Raises `UserError` when a run cannot be read at all."""
    name, equals, folders = text.partition("=")
    pair = folders.split(",")
    if not equals or len(pair) != len(DOMAINS):
        raise UserError(f"--point {text}: expected NAME=WEB,ENTERPRISE")
    _refuse_name("operating point", name)
    web, enterprise = (
        load_run(Path(folder), domain, tier, method) for folder, domain in zip(pair, DOMAINS, strict=True)
    )
    return _point(name, web, enterprise)


def _point(name: str, web: Run, enterprise: Run) -> Point:
    row = overview(join([web.metrics, enterprise.metrics]))
    for key in ("overall_full_set", "memory_query_avg_seconds"):
        if not isinstance(row[key], (int, float)):
            raise UserError(f"{name}: {key} is {row[key]!r}, not a number")
    if row["memory_query_avg_seconds"] <= 0:
        raise UserError(f"{name}: the mean latency is not positive; a system without queries cannot be submitted")
    return Point(name, web, enterprise, row)


def _refuse_name(what: str, name: str) -> None:
    if not SAFE_NAME.fullmatch(name) or name in (".", ".."):
        raise UserError(f"{what} name '{name}' may hold only letters, digits, '.', '_' and '-'")


def disagreements(points: Sequence[Point]) -> list[str]:
    """What must be the same over all runs of a package and is not."""
    problems: list[str] = []
    names = [point.name for point in points]
    problems += [
        f"operating point '{name}' is given twice" for name in sorted({n for n in names if names.count(n) > 1})
    ]
    first = points[0]
    for point in points:
        for run, model in ((point.web, first.web), (point.enterprise, first.enterprise)):
            where = f"{point.name}/{run.domain}"
            if run.method != first.web.method:
                problems.append(f"{where}: method '{run.method}', elsewhere '{first.web.method}'")
            if run.ids != model.ids:
                problems.append(f"{where}: other questions than {first.name}/{run.domain}")
            if run.haystack != model.haystack:
                problems.append(f"{where}: another haystack than {first.name}/{run.domain}")
    return problems


def write_package(
    folder: Path, name: str, tier: str, points: Sequence[Point], description: Path, code: Path, archive: str
) -> None:
    """All files of a package, in the published layout."""
    for point in points:
        place = folder / "operating_points" / point.name
        for run in (point.web, point.enterprise):
            (place / run.domain).mkdir(parents=True)
            for file in RUN_FILES:
                shutil.copy2(run.folder / file, place / run.domain / file)
            shutil.copytree(run.folder / "runtime_inputs", place / run.domain / "runtime_inputs")
        _write_json(place / OVERVIEW, point.row)
        _write_json(place / METADATA, _metadata(name, tier, point))
    shutil.copy2(description, folder / "SYSTEM_DESCRIPTION.md")
    shutil.copy2(code, folder / code.name)
    operating = [point.operating for point in points]
    _write_json(
        folder / "submission_overview.json",
        {
            "submission_name": name,
            "method": points[0].web.method,
            "tier": tier,
            "generated_at_utc": _now(),
            "archive_name": archive,
            "system_description_file": "SYSTEM_DESCRIPTION.md",
            "code_file": code.name,
            "lafs": summary(operating, tier),
            "operating_points": [_entry(point) for point in points],
        },
    )


def _entry(point: Point) -> dict[str, Any]:
    """What the overview says of an operating point."""
    return {
        "name": point.name,
        "metric_overview_file": f"operating_points/{point.name}/{OVERVIEW}",
        "overall_full_set": point.row["overall_full_set"],
        "memory_query_avg_seconds": point.row["memory_query_avg_seconds"],
        "lafs_accuracy_percentage_points": point.operating.accuracy,
        "lafs_latency_seconds": point.operating.seconds,
    }


def _metadata(name: str, tier: str, point: Point) -> dict[str, Any]:
    runs = {
        run.domain: {
            "source_run_dir": run.folder.name,
            "domain": run.domain,
            "question_count": len(run.ids),
            "question_type_counts": run.type_counts,
            "model": run.args.get("model"),
            "evaluator_model": run.args.get("evaluator_model"),
        }
        for run in (point.web, point.enterprise)
    }
    return {
        "submission_name": name,
        "operating_point_name": point.name,
        "method": point.web.method,
        "tier": tier,
        "generated_at_utc": _now(),
        "runs": runs,
        "included_run_files": [*RUN_FILES, "runtime_inputs/"],
    }


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _write_json(file: Path, payload: dict[str, Any]) -> None:
    write_atomic(file, json.dumps(payload, indent=2, ensure_ascii=True) + "\n")


def check(package: Path) -> list[str]:
    """Everything that is wrong with a package. Raises `UserError` when it is no package."""
    if package.is_dir():
        return _check_folder(package)
    if not package.is_file():
        raise UserError(f"{package}: no such folder or archive")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            with tarfile.open(package, "r:gz") as tar:
                odd = [member.name for member in tar if not (member.isfile() or member.isdir())]
                if odd:
                    return [f"{odd[0]} is neither a file nor a folder"]
                tar.extractall(scratch, filter="data")
        except (OSError, tarfile.TarError, EOFError) as error:
            raise UserError(f"{package}: no readable tar.gz: {error}") from error
        roots = list(Path(scratch).iterdir())
        if len(roots) != 1 or not roots[0].is_dir():
            return ["the archive must hold exactly one folder"]
        return _check_folder(roots[0])


def _check_folder(folder: Path) -> list[str]:
    problems = [f"{path.relative_to(folder)} is a link" for path in sorted(folder.rglob("*")) if path.is_symlink()]
    stated = read_json(folder / "submission_overview.json")
    tier, method, code = (stated.get(key) for key in ("tier", "method", "code_file"))
    if tier not in TIERS:
        return [*problems, f"submission_overview.json: tier {tier!r} is none of {', '.join(TIERS)}"]
    for file in ("SYSTEM_DESCRIPTION.md", str(code)):
        if not (folder / file).is_file():
            problems.append(f"{file} is missing")
    entries = stated.get("operating_points")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return [*problems, "submission_overview.json: 'operating_points' is no list of objects"]
    if not isinstance(method, str):
        return [*problems, "submission_overview.json: 'method' is no name"]
    listed = [entry.get("name") for entry in entries]
    points: list[Point] = []
    for place in sorted((folder / "operating_points").glob("*/")):
        runs = [load_run(place / domain, domain, tier, method) for domain in DOMAINS]
        point = _point(place.name, *runs)
        problems += point.problems
        if not _same(read_json(place / OVERVIEW), point.row):
            problems.append(f"{place.name}: {OVERVIEW} is not what the runs give")
        expected = _metadata(str(stated.get("submission_name")), tier, point)
        if not _same(_undated(read_json(place / METADATA)), _undated(expected)):
            problems.append(f"{place.name}: {METADATA} is not what the runs give, or belongs to another submission")
        if _entry(point) not in entries:
            problems.append(f"submission_overview.json: its entry of '{place.name}' is not what the runs give")
        points.append(point)
    if not points:
        return [*problems, "there is no operating point"]
    if sorted(map(str, listed)) != [point.name for point in points]:
        problems.append(f"submission_overview.json lists {listed}, the folders are {[p.name for p in points]}")
    problems += disagreements(points)
    ordered = sorted(points, key=lambda point: listed.index(point.name) if point.name in listed else len(listed))
    if not _same(stated.get("lafs"), summary([point.operating for point in ordered], tier)):
        problems.append("submission_overview.json: the LAFS summary is not what the runs give")
    return problems


def _undated(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata without what a package cannot tell: when it was made, and what the runs' folders were called."""
    kept = {key: value for key, value in metadata.items() if key != "generated_at_utc"}
    runs = kept.get("runs")
    if isinstance(runs, dict) and all(isinstance(run, dict) for run in runs.values()):
        kept["runs"] = {domain: run | {"source_run_dir": ""} for domain, run in runs.items()}
    return kept


def _same(left: Any, right: Any) -> bool:
    """Equality of JSON values, numbers up to rounding."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return left == right
