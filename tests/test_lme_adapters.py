"""LME-V2 in the evaluators of the installed verifiers: the protocol's prompts and nothing else reach the endpoint, the
reader's answer is kept, a failing reader leaves a rollout unscored, and a saved run is graded again without a reader.

Under verifiers 0.3.1 this covers v1 and MultiTurnEnv; under 0.4.0 it covers v1.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lme_v2_env.data import DataConfig, Task, explorer_of_world, load_tasks
from lme_v2_env.messages import reply_of
from lme_v2_env.policies import oracle
from lme_v2_env.protocol import ProtocolConfig, RetrievalRollout
from lme_v2_env.trajectory import QuestionView
from rewards.errors import UserError
from tests.lme_endpoint import evidence_reader
from tests.scripted_endpoint import Messages, ScriptedEndpoint

OLD_API = version("verifiers").startswith("0.3.")
BIN = Path(sys.executable).parent
N = 6
OPTIONS: dict[str, Any] = {"data": "validation", "preset": "easy", "num_questions": N}

Prompts = list[tuple[tuple[str, str], ...]]


@pytest.fixture(scope="module")
def tasks() -> tuple[Task, ...]:
    return load_tasks(DataConfig(**OPTIONS), pictures=False, judged=False, premises=False)


def as_calls(tasks: tuple[Task, ...]) -> Any:
    """The oracle, speaking in native tool calls."""
    knows = oracle(tasks)

    def policy(messages: Messages) -> dict[str, object]:
        text = knows(messages)
        name, _, rest = text.partition("(")
        arguments = {"span": rest.rstrip(")")} if name == "keep" else {"markdown": ""}
        call = {"id": f"c{len(messages)}", "type": "function"}
        return {
            "content": None,
            "tool_calls": [call | {"function": {"name": name, "arguments": json.dumps(arguments)}}],
        }

    return policy


def expected(tasks: tuple[Task, ...], policy: Any, config: ProtocolConfig) -> Prompts:
    prompts: Prompts = []
    for task in tasks:
        rollout = RetrievalRollout(QuestionView(task.question.text), explorer_of_world(task.world), config)
        while not rollout.done:
            messages = rollout.prompt()
            prompts.append(tuple((m["role"], m["content"] or "") for m in messages))
            said = policy(messages)
            rollout.step(reply_of(said if isinstance(said, dict) else {"content": said}))
    return prompts


@contextmanager
def endpoints(tasks: tuple[Task, ...], policy: Any) -> Generator[tuple[ScriptedEndpoint, ScriptedEndpoint]]:
    """A policy and a reader that fails on the first question."""
    first = tasks[0].question.text

    def fault(messages: Messages, count: int) -> str | None:
        return "window" if messages[-1]["content"].endswith(first) else None

    with ScriptedEndpoint(policy) as model, ScriptedEndpoint(evidence_reader(tasks), fault) as reader:
        yield model, reader


def call(command: list[str]) -> str:
    environment = os.environ | {"SCRIPTED_KEY": "none"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def test_v1_plays_the_protocol_keeps_the_reading_and_replays_without_a_reader(
    tasks: tuple[Task, ...], tmp_path: Path
) -> None:
    program = [str(BIN / "eval"), "--no-serve"] if OLD_API else [str(BIN / "vf-eval")]
    policy = oracle(tasks)
    with endpoints(tasks, policy) as (model, reader):
        options = {
            "--model": "scripted",
            "--client.base-url": model.url,
            "--client.api-key-var": "SCRIPTED_KEY",
            "--output-dir": str(tmp_path),
            "--run.dir": "run",
            "--env.taskset.task.reader": "scripted",
            "--env.taskset.task.base-url": reader.url,
            **{f"--env.taskset.{name.replace('_', '-')}": str(value) for name, value in OPTIONS.items()},
        }
        flags = [part for pair in options.items() for part in pair]
        call([program[0], "lme-v2-env", *program[1:], *flags, "--no-rich", "--no-push"])
        assert sorted(model.requests) == sorted(expected(tasks, policy, ProtocolConfig()))
        sent = json.dumps([model.requests, reader.requests])
        types = {task.question.question_type for task in tasks} - {"procedure"}  # a word of the wording, too
        secrets = [*(task.question.id for task in tasks), *(task.question.eval_function for task in tasks), *types]
        assert [secret for secret in secrets if secret in sent] == []
    rows = [json.loads(line) for line in (tmp_path / "run" / "traces.jsonl").read_text().splitlines()]
    by_question = {row["traces"][0]["task"]["data"]["name"]: row for row in rows}
    failed = by_question.pop(tasks[0].question.id)
    assert not failed["ok"]
    assert "the reader failed: status 400" in str(failed["traces"][0]["errors"])
    for row in by_question.values():
        (trace,) = row["traces"]
        assert row["ok"]
        assert sum(node.get("parent") is None for node in trace["nodes"]) == 1  # one chat, one branch
        assert trace["metrics"]["evidence_recall"] == 1.0
        assert trace["metrics"]["stop_submitted"] == 1.0
        assert score(trace) == {"correct": 1.0}
        assert "boxed" in trace["info"]["reading"]["text"]
        assert trace["info"]["reading"]["usage"]["total_tokens"] == 20
        assert trace["info"]["reading"]["seconds"] > 0
    replay = [str(BIN / ("replay" if OLD_API else "vf-replay")), str(tmp_path / "run"), "--no-rich"]
    call([*replay, "-o", str(tmp_path / "again")])  # the reader's endpoint is gone
    again = [json.loads(line)["traces"][0] for line in (tmp_path / "again" / "traces.jsonl").read_text().splitlines()]
    scores = {trace["id"]: score(trace) for trace in again if trace["rewards"] and None not in score(trace).values()}
    assert scores == {row["traces"][0]["id"]: {"correct": 1.0} for row in by_question.values()}


def score(trace: dict[str, Any]) -> dict[str, float]:
    """Rewards by name; verifiers writes a number or {score, weight}."""
    return {name: value["score"] if isinstance(value, dict) else value for name, value in trace["rewards"].items()}


@pytest.mark.skipif(not OLD_API, reason="MultiTurnEnv lives in verifiers 0.3.x")
def test_multiturn_plays_the_same_protocol_with_tool_calls(tasks: tuple[Task, ...], tmp_path: Path) -> None:
    policy = as_calls(tasks)
    with endpoints(tasks, policy) as (model, reader):
        options = OPTIONS | {"actions": "tools", "reader": "scripted", "base_url": reader.url}
        command = [str(BIN / "vf-eval"), "lme-v2-env", "-m", "scripted", "-b", model.url, "-k", "SCRIPTED_KEY"]
        command += ["-n", str(N), "-r", "1", "-s", "-o", str(tmp_path), "--disable-tui", "-a", json.dumps(options)]
        call(command)
        assert sorted(model.requests) == sorted(expected(tasks, policy, ProtocolConfig(actions="tools")))
        assert len(json.loads(model.bodies[0])["tools"]) == 8
    (results,) = tmp_path.glob("evals/*/*/results.jsonl")
    rows = {row["example_id"]: row for row in map(json.loads, results.read_text().splitlines())}
    assert "the reader failed: status 400" in str(rows.pop(0)["error"])
    assert len(rows) == N - 1
    assert all(row["error"] is None and row["reward"] == 1.0 for row in rows.values())
    assert all(row["stop_condition"] == "submitted" for row in rows.values())
    assert all(row["metrics"]["stop_submitted"] == row["metrics"]["evidence_recall"] == 1.0 for row in rows.values())


def test_max_turns_below_the_actions_is_refused_before_any_call() -> None:
    from lme_v2_env import LmeV2Env

    class Short:
        config = SimpleNamespace(agent=SimpleNamespace(max_turns=3))
        taskset = SimpleNamespace(config=SimpleNamespace(max_actions=12))

    with pytest.raises(UserError, match="max_turns is 3, but a rollout takes up to 12 turns"):
        asyncio.run(LmeV2Env.start(Short()))  # ty: ignore[invalid-argument-type]


@pytest.mark.skipif(not OLD_API, reason="MultiTurnEnv lives in verifiers 0.3.x")
def test_multiturn_options_are_checked() -> None:
    from lme_v2_env import load_environment

    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"presett": "easy"}, "did you mean 'preset'"),
        ({"data": "hedlout"}, "did you mean 'heldout'"),
        ({"preset": "esy", "num_worlds": 1}, "did you mean 'easy'"),
        ({"data": "validation", "max_actions": 5, "max_turns": 3}, "max_turns is 3"),
        ({"reader": "m"}, "needs base_url"),
        ({"action_cost": -1.0}, "action_cost is -1"),
        ({"num_worlds": 0}, "num_worlds is 0"),
    )
    for options, message in cases:
        with pytest.raises(UserError, match=message):
            load_environment(**options)


@pytest.mark.skipif(OLD_API, reason="verifiers 0.3.x has MultiTurnEnv")
def test_multiturn_says_in_one_line_that_it_needs_the_old_api() -> None:
    import lme_v2_env

    with pytest.raises(ImportError, match=r"load_environment needs verifiers 0\.3\.x") as caught:
        lme_v2_env.load_environment()
    assert "\n" not in str(caught.value)


def test_importing_the_package_is_light() -> None:
    program = "import lme_v2_env, lme_v2_env.protocol, lme_v2_env.data, sys; print(sorted(sys.modules))"
    loaded = call([sys.executable, "-c", program])
    assert not any(f"'{name}'" in loaded for name in ("verifiers", "torch", "datasets", "httpx"))
