"""How long a report's page takes to open in Chromium, and to make.

    python -m benchmarks.report_page [--rows 10000] [--repeats 5]

The rows are of generated episodes and a scripted policy that keeps the last session, then answers with the gold, a
superseded value or a made-up one in turn. Opening is counted by the page itself: from the start of the navigation until
its list and its first rollout stand. The median of the repeats is printed with all of them.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import statistics
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from eval import __main__ as evaluation
from eval.rows import RunFolder, RunInfo, scored_row
from rewards.commands import Parser
from supersede_env.data import DataConfig, generated_records, task_set_hash
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig, render_turns
from supersede_env.scoring import Outcome
from tests import browser


def write_run(folder: Path, count: int) -> None:
    """A finished run of `count` rows."""
    data = DataConfig("validation", preset="quick", num_episodes=count)
    episodes = [Episode.from_record(record) for record in generated_records(data)]
    protocol = ProtocolConfig()
    tasks, samples = task_set_hash(episodes), 1
    settings = {key: value for key, value in asdict(data).items() if key != "path"}
    info = RunInfo(
        "scripted",
        None,
        None,
        "bounded",
        "local",
        settings,
        asdict(protocol),
        {},
        samples,
        count,
        tasks,
        protocol.hash,
        "g",
        "c",
        0.5,
        [],
        [],
    )
    rows = []
    for number, episode in enumerate(episodes):
        rollout = NotesRollout(episode.view, protocol)
        for session in episode.sessions:
            rollout.step(render_turns(session))
        rollout.step((episode.gold, (*episode.stale, "none")[0], "Atlantis")[number % 3])
        rows.append(scored_row(episode, 0, Outcome.of(rollout), 0.5, {"seconds": 1.0, "calls": len(episode.sessions)}))
    RunFolder.open(folder, info).append(rows)


EXAMPLE = """example:
  python -m benchmarks.report_page"""


def main(argv: list[str] | None = None) -> None:
    parser = Parser("python -m benchmarks.report_page", __doc__ or "", EXAMPLE)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.read(argv)
    if browser.program() is None:
        raise SystemExit("no Chromium is installed: apt-get install chromium")
    with tempfile.TemporaryDirectory() as name:
        folder, page = Path(name) / "run", Path(name) / "report.html"
        write_run(folder, options.rows)
        wall, cpu = time.perf_counter(), time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            assert evaluation.main(["report", str(folder), "--out", str(page)]) == 0
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        opened = []
        for _ in range(options.repeats):
            found = re.search(r'data-ready-ms="(\d+)"', browser.document(page)[:2000])
            assert found, "the page did not open"
            opened.append(int(found[1]))
        size = page.stat().st_size
    result = {"rows": options.rows, "megabytes": size / 1e6, "made_wall_s": wall, "made_cpu_s": cpu}
    print(json.dumps(result | {"open_ms_median": statistics.median(opened), "open_ms": opened}, indent=1))


if __name__ == "__main__":
    main()
