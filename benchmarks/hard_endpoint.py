"""2,000 rollouts against an endpoint of which one reply in N is faulty, by seed; prints the table of docs/results.

    python -m benchmarks.hard_endpoint [--scale 1.0] [--every 20]

Each part is a command as users run it, against `tests.hostile_endpoint`. What is checked: it ends, every row is valid
JSON in UTF-8 and scored or unscored with a reason, more than 2 % unscored is INVALID (exit 3), no key is in any byte of
the run or of what the command says, and no attempt comes sooner than Retry-After asked for. A second start against an
honest endpoint must score what is left.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rewards.commands import Parser
from tests import lme_world
from tests.episodes import record
from tests.hostile_endpoint import FAULTS, HostileEndpoint, one_in
from tests.test_hostile_endpoint import CANARY, harbour

BIN = Path(sys.executable).parent
CLASSIC = tuple(name for name in FAULTS if name not in ("hang", "drip", "401-echo"))
"""Faults for MultiTurnEnv on 0.3: its client's time limit is not ours to set, and it ends a run at the first 401."""


@dataclass(frozen=True)
class Part:
    """A command, how many rollouts it plays, where its rows appear and what faults it meets."""

    name: str
    command: list[str]
    rollouts: int
    rows: str
    faults: tuple[str, ...] = FAULTS


def parts(folder: Path, scale: float) -> list[Part]:
    """`URL` in a command stands for the endpoint's address."""
    sizes = {name: max(8, int(n * scale)) for name, n in (("v", 1000), ("d", 300), ("l", 300), ("a", 200), ("m", 200))}
    for name in "vdam":
        rows = [json.dumps(record(number)) + "\n" for number in range(sizes[name])]
        (folder / f"{name}.jsonl").write_text("".join(rows), encoding="utf-8")
    questions = [lme_world.question(number) for number in range(sizes["l"])]
    for number, row in enumerate(questions):  # no two prompts alike: waits are told apart by the prompt
        row["question"] = f"Case {number}. {row['question']}"
    lme_world.write(folder / "world", [lme_world.trajectory(number) for number in range(6)], questions)
    base = [sys.executable, "-m", "eval", "supersede", "--model", "m", "--base-url", "URL", "--timeout", "3"]
    base += ["--max-concurrent", "32", "--data"]
    lme = [sys.executable, "-m", "eval", "lme-v2", "--data", str(folder / "world"), "--cache", str(folder / "cache")]
    lme += [
        "--retrieval",
        "bm25",
        "--system",
        "rag_slice",
        "--base-url",
        "URL",
        "--timeout",
        "3",
        "--concurrency",
        "32",
    ]
    lme += ["--reader-tokenizer", "estimate", "--out", str(folder / "lme")]
    old = version("verifiers").startswith("0.3.")
    v1 = [str(BIN / ("eval" if old else "vf-eval")), "supersede-env", *(["--no-serve"] if old else []), "--no-rich"]
    v1 += ["--no-push", "--model", "m", "--client.base-url", "URL", "--client.api-key-var", "OPENAI_API_KEY"]
    v1 += ["--env.agent.harness.id", "supersede-env", "--env.agent.harness.request-timeout", "20"]
    v1 += ["--max-concurrent", "16", "--env.taskset.data", str(folder / "a.jsonl"), "-o", str(folder / "v1")]
    found = [
        Part(
            "eval supersede", [*base, f"{folder}/v.jsonl", "--out", f"{folder}/v"], sizes["v"], "v/bounded/rows.jsonl"
        ),
        Part(
            "eval supersede --system facts",
            [*base, f"{folder}/d.jsonl", "--out", f"{folder}/d", "--system", "facts"],
            sizes["d"],
            "d/facts/rows.jsonl",
        ),
        Part("eval lme-v2 (reader)", lme, sizes["l"], "lme/rag_slice/rows.jsonl"),
        Part("v1 adapter alone", v1, sizes["a"], "v1/**/traces.jsonl"),
    ]
    if old:
        multi = [str(BIN / "vf-eval"), "supersede-env", "-m", "m", "-b", "URL", "-k", "OPENAI_API_KEY", "-r", "1", "-s"]
        multi += ["-n", str(sizes["m"]), "-o", str(folder / "multi"), "--disable-tui", "-c", "64"]
        multi += ["-a", json.dumps({"data": str(folder / "m.jsonl")})]
        found.append(Part("MultiTurnEnv adapter", multi, sizes["m"], "multi/**/results.jsonl", CLASSIC))
    return found


def scored(row: dict[str, Any]) -> tuple[bool, str]:
    """Whether a row of any of the three kinds is scored, and the reason when it is not."""
    if "scored" in row:
        return row["scored"], row["unscored_reason"] or ""
    if "ok" in row:  # a trace
        errors = [error for trace in row["traces"] for error in trace.get("errors") or ()] + (row.get("errors") or [])
        stops = [str(trace.get("stop_condition")) for trace in row["traces"]]
        return row["ok"], errors[-1]["message"] if errors else " ".join(stops)
    return row["error"] is None, str(row["error"] or "")


def kind(reason: str) -> str:
    """A reason without what differs from row to row."""
    return re.sub(r"[\d.]+", "#", reason)[:60]


def play(part: Part, folder: Path, every: int, seed: int) -> dict[str, Any]:
    """Run the part and look at all that it left."""
    policy = (lambda messages: "\\boxed{100}") if "lme" in part.name else harbour
    with HostileEndpoint(policy, one_in(every, seed, part.faults) if every else None, patience=30.0) as endpoint:
        command = [endpoint.url if word == "URL" else word for word in part.command]
        environment = os.environ | {"OPENAI_API_KEY": CANARY}
        began = time.monotonic()
        done = subprocess.run(command, env=environment, capture_output=True, timeout=3600, cwd=folder)
        seconds = time.monotonic() - began
        early = [pair for pair in endpoint.gaps if pair[1] < pair[0]]
        asked, faults = endpoint.count, endpoint.faults.total()
    (file,) = folder.glob(part.rows)
    rows = [json.loads(line) for line in file.read_bytes().decode("utf-8").split("\n") if line]
    results = [scored(row) for row in rows]
    reasons = Counter(kind(reason) for good, reason in results if not good)
    leaks = [str(path.name) for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
    return {
        "name": part.name,
        "rows": len(rows),
        "expected": part.rollouts,
        "scored": sum(good for good, _ in results),
        "nameless": sum(not good and not reason.strip() for good, reason in results),
        "reasons": reasons,
        "asked": asked,
        "faults": faults,
        "early": len(early),
        "waited": len(endpoint.gaps),
        "exit": done.returncode,
        "seconds": seconds,
        "leaks": leaks,
        "said_key": CANARY.encode() in done.stdout + done.stderr,
        "output": (done.stdout + done.stderr)[-1500:].decode("utf-8", errors="replace"),
    }


EXAMPLE = """example:
  python -m benchmarks.hard_endpoint --scale 0.1 --part lme-v2

Exit status: 0 every row has its score or its reason, 1 one has not, 2 refused."""


def main(args: list[str] | None = None) -> int:
    parser = Parser("python -m benchmarks.hard_endpoint", __doc__ or "", EXAMPLE)
    parser.add_argument("--scale", type=float, default=1.0, help="1: 2,000 rollouts")
    parser.add_argument("--every", type=int, default=20, help="one reply in this many is faulty")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="", help="only parts whose name holds this")
    options = parser.read(args)
    print(f"one reply in {options.every} faulty, seed {options.seed}, {len(FAULTS)} kinds of fault\n")
    print("| part | rollouts | scored | unscored | exit | requests | faults | too early | wall s | key found |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        every: Counter[str] = Counter()
        for part in parts(folder, options.scale):
            if options.part not in part.name:
                continue
            starts = [play(part, folder, options.every, options.seed)]
            if part.name.startswith("eval"):
                starts.append(play(part, folder, 0, 0))
            for number, run in enumerate(starts):
                lost = run["rows"] - run["scored"]
                name = run["name"] if not number else "... again, honest endpoint"
                key = "yes" if run["leaks"] or run["said_key"] else "no"
                print(
                    f"| {name} | {run['rows']} | {run['scored']} | {lost} ({lost / max(1, run['rows']):.1%}) | "
                    f"{run['exit']} | {run['asked']} | {run['faults']} | {run['early']} of {run['waited']} | "
                    f"{run['seconds']:.0f} | {key} |",
                    flush=True,
                )
                ours = part.name.startswith("eval")
                want = (3 if lost > 0.02 * run["rows"] else 0) if ours else 0
                broken = run["nameless"] or run["rows"] != run["expected"] or run["exit"] != want
                broken = broken or (ours and (run["early"] or key == "yes")) or (number and lost)
                bad += bool(broken)
                if broken:
                    print(json.dumps({k: v for k, v in run.items() if k != "reasons"}), file=sys.stderr)
                every.update(run["reasons"])
        print("\nreasons of unscored rows:")
        for reason, count in every.most_common():
            print(f"- {count} × {reason}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
