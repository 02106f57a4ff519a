"""Probe an LLM judge before it may score: `python -m eval judge-audit`.

Wrong, superseded and hedged answers of known rows are put to the judge (rewards/judge.py); one that accepts too many of
them, or leaves too many unanswered, may not grade.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from eval.progress import Progress
from eval.stats import INVALID_EXIT
from rewards import strict_json
from rewards.address import refuse_secrets
from rewards.commands import Parser, answered
from rewards.errors import UserError
from rewards.judge import FALSE_ACCEPT_LIMIT, Judge, audit, build_probes, openai_completer

EXAMPLE = """example:
  python -m eval judge-audit --base-url http://localhost:8000/v1 --model M --rows rows.jsonl --limit 60

Exit status: 0 the judge may grade, 2 bad arguments, 3 refused (false accepts, or too many unscored), 130 interrupted
(nothing is kept: start it again)."""


def run(args: list[str]) -> int:
    """Entry of `python -m eval judge-audit`."""
    parser = Parser("python -m eval judge-audit", "Probe an LLM judge before it may score.", EXAMPLE)
    add = parser.add_argument
    add("--base-url", required=True, help="the endpoint, such as http://127.0.0.1:8000/v1")
    add("--model", required=True, help="its name at the endpoint")
    add("--rows", type=Path, required=True, help="JSON lines with question, gold and stale")
    add("--api-key-var", default="OPENAI_API_KEY", help="environment variable that holds the key")
    add("--limit", type=int, default=60, help="about how many probes to send (default 60)")
    options = parser.read(args)
    return answered("judge-audit", lambda: _run(options), "start it again")


def _run(options: argparse.Namespace) -> int:
    refuse_secrets(options.base_url, "--base-url")
    probes = build_probes(_rows(options.rows), limit=options.limit)
    complete = openai_completer(options.base_url, options.model, api_key=os.environ.get(options.api_key_var, ""))
    with Progress("probes", len(probes)) as progress:
        asked = 0

        def counted(*request: Any) -> Any:
            nonlocal asked
            progress.show(asked)
            asked += 1
            return complete(*request)

        result = audit(Judge(counted, options.model), probes)
    for kind, (accepted, scored) in sorted(result.by_kind.items()):
        print(f"{kind:<12} accepted {accepted} of {scored}")
    print(f"false accepts {result.rate:.1%} of {result.asked - result.unscored}; unscored {result.unscored}")
    if not result.passed:
        print(f"judge-audit: refused (limit {FALSE_ACCEPT_LIMIT:.0%} false accepts, 2 % unscored)", file=sys.stderr)
        return INVALID_EXIT
    return 0


def _rows(file: Path) -> list[dict[str, Any]]:
    """Rows with ``question``, ``gold`` and ``stale``. Raises `UserError` naming the line and the field."""
    rows = []
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{file.name}, line {number}"
        try:
            row = strict_json.loads(line)
            json.dumps(row, ensure_ascii=False).encode()
        except ValueError as error:  # UnicodeEncodeError, too: half of a character
            raise UserError(f"{where}: {error}") from None
        if not isinstance(row, dict):
            raise UserError(f"{where}: expected an object")
        for name, kind in (("question", str), ("gold", str | int | float | None), ("stale", list | None)):
            if not isinstance(row.get(name), kind):
                raise UserError(f"{where}: '{name}' is {row.get(name)!r:.60}")
        rows.append(row)
    if not any(row.get("gold") for row in rows):
        raise UserError(f"{file}: no row with a question and a gold answer")
    return rows
