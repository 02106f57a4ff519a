"""Held-out evaluation: `python -m eval COMMAND ...`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from rewards.commands import leave, usage
from rewards.errors import UserError, refuse_unknown
from train.hub_spec import refuse_beside

COMMANDS = {
    "supersede": ("eval.heldout", "evaluate a model or endpoint on Supersede episodes"),
    "compare": ("eval.compare", "paired comparison of two runs"),
    "table": ("eval.table", "finished runs side by side, with a plot"),
    "report": ("eval.report", "one self-contained page: figures, and a viewer of rollouts"),
    "scale": ("eval.scale", "bounded accuracy against the number of sessions"),
    "proof": ("eval.proof", "tables and curves of the training proof"),
    "lme-v2": ("eval.lme", "LongMemEval-V2: memory systems on its data"),
    "agent-tools": ("eval.agent_tools", "what coding agents' commands were for"),
    "lafs": ("eval.lafs", "latency-accuracy score against the published frontier"),
    "submission": ("eval.submission", "build or check a leaderboard package"),
    "grader-report": ("eval.grader_report", "the grader on given cases, judged answers, golds and stale forms"),
    "judge-audit": ("eval.judge_audit", "probe an LLM judge before it may score"),
}

USAGE = """usage: python -m eval COMMAND [options]

commands:
{commands}

`python -m eval COMMAND --help` shows the options and an example.
Exit status: 0 done, 2 refused (one line says why), 3 INVALID (too many rows are unscored), 130 interrupted."""


def main(args: list[str]) -> int:
    """Exit status: 0 done, 2 refused (one clear line), 3 INVALID (too many unscored rows), 130 interrupted."""
    text = USAGE.format(commands="\n".join(f"  {name:<14} {what}" for name, (_, what) in COMMANDS.items()))
    if not args or args[0] in ("-h", "--help"):
        return usage(text, args)
    try:
        refuse_unknown(args[:1], COMMANDS, "command")
        refuse_beside()
    except UserError as error:
        print(f"eval: {error}", file=sys.stderr)
        return 2
    run: Callable[[list[str]], int] = import_module(COMMANDS[args[0]][0]).run
    return run(args[1:])


if __name__ == "__main__":
    leave(lambda: main(sys.argv[1:]))
