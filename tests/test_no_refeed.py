"""No re-feed, proven on bytes: whichever API plays an episode, the endpoint receives the protocol's prompts only.

The evaluators of the installed verifiers run as programs against a recording endpoint; under one scripted policy their
prompts must equal those of the bare protocol, as lists of (role, content). Run under verifiers 0.3.1 this covers v1 and
MultiTurnEnv; under 0.4.0 it covers v1. (tests/test_train_local.py does the same for the local engine.)
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from supersede_env.data import DataConfig, load_episodes
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig, render_turns, wordings
from tests.scripted_endpoint import ScriptedEndpoint, digest

N = 50
BUDGET = 120
OLD_API = version("verifiers").startswith("0.3.")
BIN = Path(sys.executable).parent

Prompt = tuple[tuple[str, str], ...]


@pytest.fixture(scope="module")
def episodes() -> tuple[Episode, ...]:
    return load_episodes(DataConfig(data="train", preset="quick", num_episodes=N)).episodes


def expected(episodes: tuple[Episode, ...]) -> list[Prompt]:
    prompts = []
    for episode in episodes:
        rollout = NotesRollout(episode.view, ProtocolConfig(budget=BUDGET))
        while not rollout.done:
            messages = rollout.prompt()
            prompts.append(tuple((m["role"], m["content"]) for m in messages))
            rollout.step(digest(messages))
    return prompts


def evaluate(command: list[str], log: Path) -> None:
    environment = os.environ | {"SCRIPTED_KEY": "none"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    log.write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_v1_sends_exactly_the_protocols_prompts(episodes: tuple[Episode, ...], tmp_path: Path) -> None:
    program = [str(BIN / "eval"), "--no-serve"] if OLD_API else [str(BIN / "vf-eval")]
    with ScriptedEndpoint(digest) as endpoint:
        options = {
            "--model": "scripted",
            "--client.base-url": endpoint.url,
            "--client.api-key-var": "SCRIPTED_KEY",
            "--output-dir": str(tmp_path),
            "--run.dir": "run",
            "--env.taskset.preset": "quick",
            "--env.taskset.num-episodes": str(N),
            "--env.taskset.budget": str(BUDGET),
        }
        flags = [part for pair in options.items() for part in pair]
        evaluate([program[0], "supersede-env", *program[1:], *flags, "--no-rich", "--no-push"], tmp_path / "log")
        assert sorted(endpoint.requests) == sorted(expected(episodes))
    traces = [json.loads(line)["traces"][0] for line in (tmp_path / "run" / "traces.jsonl").read_text().splitlines()]
    assert len(traces) == N
    for trace in traces:
        turns = len(trace["task"]["data"]["episode"]["sessions"]) + 1
        assert sum(bool(node["sampled"]) for node in trace["nodes"]) == turns
        assert trace["metrics"]["turns"] == turns
        assert trace["metrics"]["overflows"] == turns - 1
    replay = [str(BIN / ("replay" if OLD_API else "vf-replay")), str(tmp_path / "run"), "--no-rich"]
    evaluate([*replay, "-o", str(tmp_path / "again")], tmp_path / "log")
    again = [json.loads(line)["traces"][0] for line in (tmp_path / "again" / "traces.jsonl").read_text().splitlines()]
    assert {t["id"]: t["rewards"] for t in again} == {t["id"]: t["rewards"] for t in traces}


@pytest.mark.skipif(not OLD_API, reason="MultiTurnEnv lives in verifiers 0.3.x")
def test_multiturn_sends_exactly_the_protocols_prompts(episodes: tuple[Episode, ...], tmp_path: Path) -> None:
    with ScriptedEndpoint(digest) as endpoint:
        arguments = json.dumps({"preset": "quick", "num_episodes": N, "budget": BUDGET})
        command = [str(BIN / "vf-eval"), "supersede-env", "-m", "scripted", "-b", endpoint.url, "-k", "SCRIPTED_KEY"]
        command += ["-n", str(N), "-r", "1", "-s", "-o", str(tmp_path), "--disable-tui", "-a", arguments]
        evaluate(command, tmp_path / "log")
        assert sorted(endpoint.requests) == sorted(expected(episodes))
    (results,) = tmp_path.glob("evals/*/*/results.jsonl")
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert len(rows) == N
    assert all(row["error"] is None and row["stop_condition"] == "answered" for row in rows)
    by_example = {row["example_id"]: row["metrics"] for row in rows}
    assert [by_example[i]["turns"] for i in range(N)] == [len(episode.sessions) + 1 for episode in episodes]
    assert all(
        metrics["r_cur"] == metrics["is_correct"] and metrics["notes_chars"] > 0 for metrics in by_example.values()
    )


def test_a_prompt_holds_nothing_but_one_session_the_notes_and_the_wording(episodes: tuple[Episode, ...]) -> None:
    """No gold, stale value, id, label or other session is there beyond what session, notes and question say."""
    for episode in episodes:
        rollout = NotesRollout(episode.view, ProtocolConfig(budget=BUDGET))
        labels = {str(value) for value in episode.tags.values() if isinstance(value, str)}
        labels -= {label for label in labels if label in str(wordings()["standard"])}  # plain words of the wording
        secrets = {episode.gold, *episode.stale, episode.id, episode.source, "evidence", "abstain", *labels}
        while not rollout.done:
            prompt = "\n".join(message["content"] for message in rollout.prompt())
            turn = len(rollout.history)
            texts = [render_turns(session) for session in episode.sessions]
            shown = [i for i, text in enumerate(texts) if text in prompt]
            assert shown == ([turn] if turn < len(texts) else [])
            rest = prompt
            for part in ([texts[turn]] if turn < len(texts) else []) + [rollout.notes, episode.question]:
                rest = rest.replace(part, "") if part else rest
            for date in [session.date for session in episode.sessions] + [episode.question_date]:
                rest = rest.replace(date, "")
            leaked = [s for s in secrets if re.search(rf"(?<!\w){re.escape(s)}(?!\w)", rest, re.IGNORECASE)]
            assert leaked == []
            rollout.step(digest(rollout.prompt()))
