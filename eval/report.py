"""One page about finished runs: `python -m eval report RUN... --out report.html`.

The page stands alone: no network, no other file. Every figure is recomputed from the runs' rows, and the same rows make
the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from eval.report_figures import figures
from eval.report_page import render
from eval.report_rollouts import rollouts
from eval.report_runs import load
from eval.rows import write_atomic
from rewards.commands import Parser, answered
from rewards.errors import UserError

EXAMPLE = """examples:
  python -m eval report runs/m --out report.html
  python -m eval report runs/quick/base runs/quick/trained runs/quick --out report.html
  python -m eval report runs/real/bounded --path data/longmemeval --out report.html
  python -m eval report runs/lme --out lme.html

A RUN is a folder of `eval supersede` or `eval lme-v2`, or of a training run (its learning curve). Sessions are shown
where they can be made again or are found on this machine; nothing is downloaded. Exit status: 0 done, 2 refused."""

MEGABYTE = 1_000_000


def run(args: list[str]) -> int:
    """Entry of `python -m eval report`. 0: done; 2: refused."""
    parser = Parser("python -m eval report", "One self-contained HTML page about finished runs.", EXAMPLE)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folder, or a folder of run folders")
    parser.add_argument("--out", type=Path, required=True, help="the page to write (.html)")
    parser.add_argument("--path", help="where LongMemEval lies; otherwise LONGMEMEVAL_DIR")
    parser.add_argument(
        "--text",
        type=float,
        default=16.0,
        metavar="MB",
        help="most text of sessions or contexts in the page, evidence first (default 16; 0: none)",
    )
    options = parser.read(args)
    return answered("report", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    if not 0 <= options.text < 1000:
        raise UserError(f"--text is {options.text}: give megabytes, 0 to 1000")
    if options.out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--out {options.out} should end in .html")
    if not options.out.parent.is_dir():
        raise UserError(f"--out: {options.out.parent} is no folder")
    loaded = load(options.runs)
    found = rollouts(loaded.evaluated, path=options.path, text_limit=int(options.text * MEGABYTE))
    page = render(figures(loaded), found)
    write_atomic(options.out, page)
    for note in found.notes:
        print(f"report: {note}", file=sys.stderr)
    rows = sum(len(one.rows) for one in loaded.evaluated)
    size = options.out.stat().st_size / MEGABYTE
    runs = f"{len(loaded.evaluated)} runs, {len(loaded.trained)} training runs, {rows:,} rows"
    print(f"{options.out}: {runs}, {size:.1f} MB")
    return 0
