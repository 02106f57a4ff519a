"""The OpenEnv servers: the same prompts, rewards and metrics as verifiers v1; a whitelist; errors that end nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

from lme_v2_env.data import DataConfig, load_tasks
from lme_v2_env.policies import oracle
from tests.conftest import ROOT
from tests.episodes import record
from tests.scripted_endpoint import Policy, ScriptedEndpoint, echo

needs_openenv = pytest.mark.skipif(
    find_spec("openenv") is None, reason="OpenEnv is not installed: pip install 'openenv-core>=0.2.1'"
)
N = 4
SUPERSEDE = {"data": "validation", "preset": "quick", "num_episodes": N}
LME = {"data": "validation", "preset": "easy", "num_questions": N}


def page(beginning: str) -> list[str]:
    """The command of docs/openenv.md that begins like this, as this interpreter runs it."""
    lines = (ROOT / "docs" / "openenv.md").read_text("utf-8").splitlines()
    (line,) = [line.strip() for line in lines if line.startswith(f"    {beginning}")]
    return [sys.executable, *line.split()[1:]]


@contextmanager
def serving(package: str, options: dict[str, Any], start: list[str] | None = None) -> Generator[str]:
    """The server as a user starts it, on a free port; gives its address."""
    flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    start = start or [sys.executable, "-m", f"{package}.openenv"]
    command = [*start, "--port", "0", *flags]  # of a flag given twice the last counts
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        assert " at http://" in line, process.stderr.read()
        yield line.split()[2]
    finally:
        process.terminate()
        errors = process.communicate(timeout=30)[1]
    assert "Traceback" not in errors  # whatever a client did, the server's log is clean


def session(url: str) -> Any:
    from openenv.core import GenericEnvClient

    client: Any = GenericEnvClient(base_url=url)
    return client.sync() if hasattr(client, "sync") else client


def through_v1(package: str, options: dict[str, Any], policy: Policy) -> tuple[Any, list[Any]]:
    """(requests, [(reward, metrics)]) of the v1 harness and scoring; `test_adapters` has the evaluators."""
    v1, name = import_module(f"{package}.taskset"), "Supersede" if package == "supersede_env" else "LmeV2"
    taskset = getattr(v1, f"{name}Taskset")(getattr(v1, f"{name}Config")(**options))
    harness = getattr(v1, f"{name}Harness")(getattr(v1, f"{name}HarnessConfig")())

    async def play(task: Any, url: str) -> tuple[float, dict[str, float]]:
        trace = SimpleNamespace(task=task, info={}, nodes=[], stop_condition=None, errors=[])
        await harness.launch(SimpleNamespace(model="m"), trace, None, url, "secret", {}, task.data)
        await task.finalize(trace, None)
        parts = await (task.supersession if name == "Supersede" else task.retrieval)(trace)
        return sum(parts.values()), await task.outcome(trace)

    async def play_all(url: str) -> list[tuple[float, dict[str, float]]]:
        return [await play(task, url) for task in taskset.load()]

    with ScriptedEndpoint(policy) as model:
        return model.requests, asyncio.run(play_all(model.url))


@needs_openenv
@pytest.mark.parametrize("package", ["supersede_env", "lme_v2_env"])
def test_the_example_client_plays_the_same_rollouts_as_verifiers_v1(package: str) -> None:
    options = SUPERSEDE if package == "supersede_env" else LME
    tasks = load_tasks(DataConfig("validation", "easy", num_questions=N), pictures=False, judged=False, premises=False)
    policy = echo if package == "supersede_env" else hasty(oracle(tasks))
    prompts, expected = through_v1(package, options, policy)
    server = serving(package, options, page(f"python -m {package}.openenv"))
    with server as url, ScriptedEndpoint(policy) as model:
        places = {"http://127.0.0.1:8000": url, "http://127.0.0.1:8901/v1": model.url, "3": str(N)}
        command = [places.get(word, word) for word in page("python examples/openenv_client.py")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert model.requests == prompts
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(expected) == N
    for row, (reward, metrics) in zip(rows, expected, strict=True):
        row["metrics"].pop("reader_seconds", None)  # a clock's
        assert row["reward"] == reward
        metrics.pop("reader_seconds", None)
        assert row["metrics"] == metrics
    assert len({row["reward"] for row in rows}) > 1  # else the comparison would say little


def hasty(policy: Policy) -> Policy:
    """Submits nothing where the question has an odd number of characters."""
    return lambda messages: "submit()" if len(messages[1]["content"]) % 2 else policy(messages)


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Supersede on three hand-made episodes with words that no agent may see."""
    file = tmp_path_factory.mktemp("openenv") / "own.jsonl"
    file.write_text("".join(json.dumps(record(number, 2)) + "\n" for number in range(3)), encoding="utf-8")
    with serving("supersede_env", {"data": str(file), "max_sessions": "2"}) as url:
        yield url


@needs_openenv
def test_an_agent_sees_a_whitelist_and_sessions_do_not_mix(own_server: str) -> None:
    from websockets.exceptions import ConnectionClosed

    with session(own_server) as one, session(own_server) as two:
        seen = [one.reset(seed=1, episode_id="mine"), two.reset(seed=5)]  # 5: the episodes come round again
        assert one.state() == {"episode_id": "mine", "step_count": 0, "num_turns": 3, "done": False}
        for turn in range(3):
            texts = ["Harbour1x1" if turn == 2 else f"notes one {turn}", f"notes two {turn}"]
            seen += [one.step({"reply": texts[0]}), two.step({"reply": texts[1]})]
            for client, number, name in ((one, 1, "one"), (two, 2, "two")):
                state = client.state()
                assert set(state) == {"episode_id", "step_count", "num_turns", "done"}
                assert (state["step_count"], state["done"]) == (turn + 1, turn == 2)
                shown = json.dumps(seen[number - 3].observation)
                assert (f"notes {name} {turn}" in shown) == (turn < 2)
                assert f"Harbour{3 - number}x" not in shown  # the other session's
        one.reset(seed=1)
        with pytest.raises((RuntimeError, ConnectionClosed)), session(own_server) as three:
            three.reset()  # two sessions at once were allowed
    assert [result.done for result in seen] == [False] * 6 + [True] * 2
    assert [result.reward for result in seen] == [None] * 6 + [1.0, 0.0]
    assert {key for result in seen for key in result.observation} == {"messages", "metrics"}
    assert all(not result.observation["metrics"] for result in seen[:6])
    everything = json.dumps([result.observation for result in seen])
    secrets = ("secret-id", "hidden", "hand-made", "evidence", 'gold"', "abstain")
    assert [secret for secret in secrets if secret in everything] == []


@needs_openenv
def test_bad_input_gets_one_clear_line_and_the_session_lives_on(own_server: str) -> None:
    def refused(action: Any) -> str:
        with pytest.raises(RuntimeError) as caught:
            action()
        return str(caught.value)

    with session(own_server) as env:
        assert "step before reset" in refused(lambda: env.step({"reply": "x"}))
        cases: tuple[tuple[dict[str, Any], str], ...] = (
            ({"sed": 1}, "unknown option 'sed'; did you mean 'seed'?"),
            ({"seed": "one"}, "seed is 'one': give a whole number from 0"),
            ({"seed": -1}, "seed is -1"),
            ({"seed": True}, "seed is True"),
            ({"episode_id": 7}, "episode_id is 7: give a text"),
        )
        for options, message in cases:
            assert message in refused(lambda options=options: env.reset(**options))
        first = env.reset(seed=0).observation
        actions: tuple[tuple[dict[str, Any], str], ...] = (
            ({"reply": 5}, "action 'reply': Input should be a valid string (got 5)"),
            ({"reply": None}, "action 'reply'"),
            ({}, "action 'reply': Field required"),
            ({"replly": "x"}, "unknown field of the action 'replly'; did you mean 'reply'?"),
            ({"reply": "\ud800"}, "half of a character"),
        )
        for action, message in actions:
            assert message in refused(lambda action=action: env.step(action))
        assert env.state()["step_count"] == 0
        assert env.reset(seed=0).observation == first
        for _ in range(3):
            env.step({"reply": ""})
        assert "the episode is over: call reset" in refused(lambda: env.step({"reply": "x"}))
        assert env.reset(seed=0).observation == first


@needs_openenv
def test_a_plain_post_is_told_what_is_wrong(own_server: str) -> None:
    import httpx

    with httpx.Client(base_url=own_server, trust_env=False) as http:
        assert "Harbour0x0" in http.post("/reset", json={"seed": 0}).text
        answers = [
            http.post("/reset", json={"sed": 0}),
            http.post("/step", json={"action": {"reply": "x"}}),
            http.post("/step", json={"action": {"reply": 5}}),
        ]
        schema = http.get("/schema").json()
    assert [answer.status_code for answer in answers] == [422] * 3
    told = [answer.json()["detail"] for answer in answers]
    assert "did you mean 'seed'" in told[0]
    assert "step before reset" in told[1]
    assert "Input should be a valid string" in told[2]
    assert set(schema["action"]["properties"]) == {"metadata", "reply"}


@needs_openenv
def test_a_reader_that_fails_is_an_error_and_no_reward() -> None:
    with (
        ScriptedEndpoint(echo, lambda messages, count: "window") as reader,
        serving("lme_v2_env", LME | {"reader": "m", "base_url": reader.url, "actions": "tools"}) as url,
        session(url) as env,
    ):
        result = env.reset(seed=0)
        assert set(result.observation) == {"messages", "tools", "metrics"}
        assert len(result.observation["tools"]) == 8
        call = {"id": "c1", "type": "function", "function": {"name": "search_notes", "arguments": '{"query": "cart"}'}}
        result = env.step({"tool_calls": [call]})
        assert [m["role"] for m in result.observation["messages"]] == ["system", "user", "assistant", "tool"]
        with pytest.raises(RuntimeError, match="answered without content"):
            env.step({"reply": None})
        with pytest.raises(RuntimeError, match="the episode is unscored: the reader failed"):
            env.step({"reply": "submit()"})
        assert env.state()["done"]
        assert not env.reset(seed=1).done


@needs_openenv
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--bugdet", "5"], "unknown option '--bugdet'; did you mean '--budget'?"),
        (["--budget", "0"], "budget is 0"),
        (["--budget"], "--budget has no value"),
        (["--port", "x"], "option 'port': Input should be a valid integer"),
        (["--data", "validatoin"], "did you mean 'validation'"),
        (["5"], "'5' belongs to no option"),
        (["--host", "256.0.0.1", "--data", "validation", "--num-episodes", "1"], "256.0.0.1:8000"),
    ],
)
def test_a_server_that_cannot_start_says_why_in_one_line(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from supersede_env.openenv import main

    assert main(flags) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("package", ["supersede_env", "lme_v2_env"])
def test_without_openenv_one_line_says_what_to_install(package: str) -> None:
    program = f"""
import runpy, sys
sys.modules["openenv"] = None
runpy.run_module("{package}.openenv", run_name="__main__", alter_sys=True)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert done.stderr.startswith("openenv: the OpenEnv server needs ")
    assert done.stderr.endswith(": pip install 'openenv-core>=0.2.1'\n")
    assert done.stderr.count("\n") == 1
