"""The scale study: bounded accuracy against the number of sessions, `python -m eval scale`.

At factor f an episode has f times as many sessions, and the notes hold B characters (`fixed`) or f times B
(`proportional`). Generated episodes are drawn with that many sessions; what is told, changed and asked stays of the
preset's kind, the rest is talk. Real ones are LongMemEval's: the sessions with the evidence, and with each factor more
of the row's own other sessions, nested (24x is the whole `s` haystack). Every point is a run of `python -m eval
supersede` of its own, with all its options, and resumes like one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval import heldout
from eval.pictures import load_pyplot
from eval.rows import ROWS_FILE, Summary, summarise, write_atomic
from eval.stats import INVALID_EXIT
from rewards.commands import Parser, answered
from rewards.errors import UserError, refuse_unknown
from supersede_env.episode import Episode
from supersede_env.longmemeval import load_longmemeval

EXAMPLE = """examples:
  python -m eval scale --data quick --factors 1 2 4 8 --n 40 --budget 200 --out runs/scale \\
      -- --model smollm2-135m --wording plain --no-dates --max-tokens 48
  python -m eval scale --data s --factors 1 4 24 --n 20 --out runs/scale_s \\
      -- --model Qwen/Qwen2.5-3B-Instruct --base-url http://localhost:8000/v1

What follows -- goes to `python -m eval supersede`. OUT/scale.png and OUT/scale.json hold the curve.
Exit status: 0 done, 2 refused, 3 INVALID, 130 interrupted (the same command resumes)."""

LARGEST_FACTOR = 24
"""LongMemEval's s haystacks have about 48 sessions, 24 times the two of its oracle rows."""

OWN = ("--data", "--preset", "--n", "--budget", "--out", "--condition", "--path", "--first-seed", "--system")
"""Options of `eval supersede` that the study sets itself; what it studies are the model's own notes."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of the study."""

    factor: int
    mode: str
    budget: int
    sessions: float
    summary: Summary


def run(args: list[str]) -> int:
    """Entry of `python -m eval scale`."""
    own, _, rest = _split(args)
    parser = Parser("python -m eval scale", "Bounded accuracy against the number of sessions.", EXAMPLE)
    add = parser.add_argument
    add("--data", required=True, help="a generator preset (validation side), or s (LongMemEval)")
    add("--factors", type=int, nargs="+", default=[1, 2, 4, 8], help="times as many sessions (default 1 2 4 8)")
    add("--n", type=int, default=40, help="episodes at each point (default 40)")
    add("--budget", type=int, default=300, help="B at factor 1, characters (default 300)")
    add("--fixed-only", action="store_true", help="leave out the points with B in proportion")
    add("--path", help="where LongMemEval lies; otherwise LONGMEMEVAL_DIR or a download")
    add("--out", required=True, type=Path, help="folder of the study; started again, it resumes")
    options = parser.read(own)
    return answered("scale", lambda: _run(options, rest))


def _run(options: Any, rest: Sequence[str]) -> int:
    _check(options, rest)
    points: list[Point] = []
    for factor in sorted(set(options.factors)):
        file = options.out / f"x{factor}.jsonl"
        episodes = list(_episodes(options, factor))
        _write(file, episodes)
        sessions = sum(len(episode["sessions"]) for episode in episodes) / len(episodes)
        for mode, budget in _budgets(options, factor):
            out = options.out / f"x{factor}-{mode}"
            words = ["--data", str(file), "--budget", str(budget), "--out", str(out), *rest]
            print(f"== {factor}x sessions, B = {budget} ({mode})", flush=True)
            code = heldout.run(words)
            if code not in (0, INVALID_EXIT):  # an invalid point is named in the table; the others stand
                return code
            points.append(Point(factor, mode, budget, sessions, _summary(out)))
    print("\n".join(table(points)))
    _save(points, options.out)
    return INVALID_EXIT if any(point.summary.invalid for point in points) else 0


def _split(args: list[str]) -> tuple[list[str], str, list[str]]:
    place = args.index("--") if "--" in args else len(args)
    return args[:place], "--", args[place + 1 :]


def _check(options: Any, rest: Sequence[str]) -> None:
    from generators.timelines import PRESETS

    refuse_unknown([options.data], [*PRESETS, "s"], "--data")
    wrong = [factor for factor in options.factors if not 1 <= factor <= LARGEST_FACTOR]
    if wrong:
        raise UserError(f"--factors: {wrong[0]} is not between 1 and {LARGEST_FACTOR}")
    if options.n < 1 or options.budget < 1:
        raise UserError("--n and --budget take positive numbers")
    taken = [word for word in rest if word.partition("=")[0] in OWN]
    if taken:
        raise UserError(f"{taken[0]} belongs before --: the study sets it for each point")
    if not any(word.partition("=")[0] == "--model" for word in rest):
        raise UserError("name the model after --, as in: -- --model smollm2-135m")


def _budgets(options: Any, factor: int) -> Iterator[tuple[str, int]]:
    yield "fixed", options.budget
    if factor > 1 and not options.fixed_only:
        yield "proportional", options.budget * factor


def _episodes(options: Any, factor: int) -> Iterator[dict[str, Any]]:
    if options.data == "s":
        yield from real(options.path, options.n, factor)
    else:
        yield from generated(options.data, options.n, factor)


def generated(preset: str, n: int, factor: int) -> Iterator[dict[str, Any]]:
    """Validation episodes of the preset with `factor` times its sessions, the same seeds at every factor."""
    from generators.timelines import PRESETS, generate
    from supersede_env.data import FIRST_VALIDATION_SEED

    config = PRESETS[preset]
    low, high = config.sessions
    scaled = replace(config, sessions=(low * factor, high * factor))
    for seed in range(FIRST_VALIDATION_SEED, FIRST_VALIDATION_SEED + n):
        yield Episode.from_record(generate(seed, scaled, split="validation")).to_record()


def real(path: str | None, n: int, factor: int) -> Iterator[dict[str, Any]]:
    """LongMemEval rows with the oracle's sessions and, up to `factor` times as many, others of the `s` haystack."""
    oracle = {episode.id: episode for episode in load_longmemeval("oracle", path=path).episodes}
    for episode in load_longmemeval("s", path=path).episodes[:n]:
        if episode.id not in oracle:
            raise UserError(f"row {episode.id} of s has no oracle row: which sessions hold its evidence is unknown")
        yield thinned(episode, {s.turns for s in oracle[episode.id].sessions}, factor).to_record()


def thinned(episode: Episode, evidence: set[Any], factor: int) -> Episode:
    """The episode with its evidence sessions and the first of the others in a fixed random order."""
    keep = {i for i, session in enumerate(episode.sessions) if session.turns in evidence}
    others = [i for i in range(len(episode.sessions)) if i not in keep]
    others.sort(key=lambda i: hashlib.sha256(f"{episode.id}:{i}".encode()).digest())
    room = len(others) if factor == LARGEST_FACTOR else max(0, len(keep) * factor - len(keep))
    chosen = sorted(keep | set(others[:room]))
    places = {old: new for new, old in enumerate(chosen)}
    tags = dict(episode.tags) | {"factor": factor}
    if "sessions_after_update" in tags:  # of the whole haystack: those that are left after the same session
        update = len(episode.sessions) - 1 - tags["sessions_after_update"]
        tags["sessions_after_update"] = sum(i > update for i in chosen)
    return replace(
        episode,
        sessions=tuple(episode.sessions[i] for i in chosen),
        evidence=tuple((places[s], t) for s, t in episode.evidence if s in places),
        tags=tags,
    )


def _write(file: Path, episodes: Sequence[dict[str, Any]]) -> None:
    if not episodes:
        raise UserError("no episode to play")
    text = "".join(json.dumps(episode, ensure_ascii=False) + "\n" for episode in episodes)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.is_file() and file.read_text("utf-8") != text:
        raise UserError(f"{file} holds other episodes: give another --out")
    write_atomic(file, text)


def _summary(out: Path) -> Summary:
    lines = (out / "bounded" / ROWS_FILE).read_text("utf-8").split("\n")
    return summarise([json.loads(line) for line in lines if line])


def table(points: Sequence[Point]) -> list[str]:
    """A line a point."""
    lines = [f"{'sessions':>9} {'B':>6}  {'mode':<13} {'n':>4}  {'correct (95 % Wilson)':<24} {'stale':>6}  lost"]
    for point in points:
        s = point.summary
        correct = f"{s.accuracy:6.1%} [{s.low:.1%}, {s.high:.1%}]"
        lost = ", ".join(f"{word.replace('_', ' ')} {count}" for word, count in s.lost.items())
        stale = s.rates.get("is_stale", 0.0)
        if s.invalid:
            lost = "; ".join([*([lost] if lost else []), "INVALID: too many unscored"])
        head = f"{point.sessions:>9.1f} {point.budget:>6}  {point.mode:<13} {s.scored:>4}"
        lines.append(f"{head}  {correct:<24} {stale:>6.1%}  {lost}")
    return lines


def _save(points: Sequence[Point], out: Path) -> None:
    rows = [
        {
            "factor": p.factor,
            "mode": p.mode,
            "budget": p.budget,
            "sessions": p.sessions,
            "n": p.summary.scored,
            "unscored": sum(p.summary.unscored.values()),
            "accuracy": p.summary.accuracy,
            "low": p.summary.low,
            "high": p.summary.high,
            "lost": p.summary.lost,
        }
        for p in points
    ]
    write_atomic(out / "scale.json", json.dumps(rows, indent=1) + "\n")
    if not any(p.summary.scored for p in points):
        print("no plot: no row was scored")
        return
    try:
        pyplot = load_pyplot("scale.png")
    except UserError as error:  # the study is done and saved; only its picture is not
        print(f"no plot: {error}")
        return
    figure, axis = pyplot.subplots(figsize=(6, 4))
    for mode, colour in (("fixed", "#4878a8"), ("proportional", "#c0504d")):
        chosen = [p for p in points if (p.mode == mode or p.factor == 1) and p.summary.scored]
        x, y = [p.sessions for p in chosen], [p.summary.accuracy for p in chosen]
        if len(chosen) > 1 or mode == "fixed":
            axis.plot(x, y, marker="o", color=colour, label=f"B {mode}")
            axis.fill_between(
                x, [p.summary.low for p in chosen], [p.summary.high for p in chosen], color=colour, alpha=0.2
            )
    axis.set(xlabel="sessions (mean)", ylabel="correct, with 95 % interval", ylim=(0, 1), xscale="log")
    axis.legend()
    figure.tight_layout()
    figure.savefig(out / "scale.png", dpi=120)
    pyplot.close(figure)
    print(f"plot: {out / 'scale.png'}")
