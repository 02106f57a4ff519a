"""What the LME-V2 environment itself costs: rollouts a second with an endpoint that answers at once.

    python -m benchmarks.lme_rollouts [--rollouts 256] [--concurrency 64] [--api v1|multiturn]

Every rollout makes five actions on a generated world (two searches, a page, keep, submit); the extractive reader
answers. The evaluator runs twice, with few and with many rollouts: the difference leaves out its start. CPU time is the
evaluator's own; wall time also holds the endpoint's, which shares the machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from lme_v2_env.policies import question_of, rag
from rewards.commands import Parser
from tests.scripted_endpoint import Messages, ScriptedEndpoint

FEW = 16


def five_actions(messages: Messages) -> str:
    """Searches twice, opens what ranks first, keeps it, submits."""
    turn = sum(message["role"] == "assistant" for message in messages)
    first = re.search(r"t\d+:\d+", messages[3]["content"]) if turn else None
    ref = first[0] if first else "t1:0"
    replies = ("", f"search_states({json.dumps(question_of(messages)[:60])})", f"open({ref})", f"keep({ref})")
    return rag(messages) if turn == 0 else (*replies, "submit()")[turn]


def command(api: str, url: str, rollouts: int, concurrency: int, out: Path) -> list[str]:
    programs = Path(sys.executable).parent
    count = ["-n", str(rollouts), "-r", "1", "-c", str(concurrency)]
    if api == "multiturn":
        options = json.dumps({"data": "heldout", "num_questions": rollouts})
        words = ["lme-v2-env", "-m", "m", "-b", url, "-k", "SCRIPTED_KEY", *count]
        return [str(programs / "vf-eval"), *words, "-s", "-o", str(out), "--disable-tui", "-a", options]
    old = version("verifiers").startswith("0.3.")
    words = ["lme-v2-env", *(["--no-serve"] if old else []), "--no-rich", "--no-push", *count]
    words += ["--model", "m", "--client.base-url", url, "--client.api-key-var", "SCRIPTED_KEY"]
    words += ["--output-dir", str(out), "--run.dir", "run"]
    words += ["--env.taskset.data", "heldout", "--env.taskset.num-questions", str(rollouts)]
    return [str(programs / ("eval" if old else "vf-eval")), *words]


def measure(args: list[str]) -> tuple[float, float]:
    """(wall seconds, CPU seconds of the program and its children)."""
    environment = os.environ | {"SCRIPTED_KEY": "none"}
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(args, env=environment, capture_output=True, text=True)
    wall, after = time.perf_counter() - started, os.times()
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


EXAMPLE = """example:
  python -m benchmarks.lme_rollouts --rollouts 256 --api multiturn"""


def main(argv: list[str] | None = None) -> None:
    parser = Parser("python -m benchmarks.lme_rollouts", __doc__ or "", EXAMPLE)
    parser.add_argument("--rollouts", type=int, default=256)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--api", choices=("v1", "multiturn"), default="v1")
    args = parser.read(argv)
    with ScriptedEndpoint(five_actions) as endpoint, tempfile.TemporaryDirectory() as folder:
        walls, cpus, calls = [], [], []
        for count in (FEW, args.rollouts):
            endpoint.count = 0
            out = Path(folder) / str(count)
            wall, cpu = measure(command(args.api, endpoint.url, count, args.concurrency, out))
            walls.append(wall)
            cpus.append(cpu)
            calls.append(endpoint.count)
    more = args.rollouts - FEW
    wall, cpu = walls[1] - walls[0], cpus[1] - cpus[0]
    print(f"{args.api}, verifiers {version('verifiers')}: {calls[1] / args.rollouts:.1f} calls a rollout")
    clock = f"{more / wall:.1f} rollouts/s" if wall > 0.2 * cpu else "no figure (other jobs slowed the short run more)"
    print(f"{clock} of wall time, {more / cpu:.1f} a second of CPU ({1000 * cpu / more:.0f} ms each)")


if __name__ == "__main__":
    main()
