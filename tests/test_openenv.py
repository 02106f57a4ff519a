"""The OpenEnv servers: the same prompts, rewards and metrics as verifiers v1; a whitelist; errors that end nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
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
BIN = Path(sys.executable).parent
N = 4
SUPERSEDE = {"data": "validation", "preset": "quick", "num_episodes": str(N)}
LME = {"data": "validation", "preset": "easy", "num_questions": str(N)}


@contextmanager
def serving(package: str, options: dict[str, str]) -> Generator[str]:
    """The server as a user starts it; gives its address."""
    flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    command = [sys.executable, "-m", f"{package}.openenv", "--port", "0", *flags]
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


def through_v1(package: str, options: dict[str, str], policy: Policy, folder: Path) -> tuple[Any, list[Any]]:
    """(requests, [(reward, metrics)] in task order) of verifiers' own evaluator."""
    program = [str(BIN / "eval"), package, "--no-serve"] if version("verifiers").startswith("0.3.") else []
    program = program or [str(BIN / "vf-eval"), package]
    with ScriptedEndpoint(policy) as model:
        settings = {
            "model": "m",
            "client.base-url": model.url,
            "client.api-key-var": "SCRIPTED_KEY",
            "output-dir": str(folder),
            "run.dir": "run",
            **{f"env.taskset.{name.replace('_', '-')}": value for name, value in options.items()},
        }
        flags = [word for name, value in settings.items() for word in (f"--{name}", value)]
        done = subprocess.run(
            [*program, *flags, "--no-rich", "--no-push"],
            env=os.environ | {"SCRIPTED_KEY": "none"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        requests = sorted(model.requests)
    rows = [json.loads(line)["traces"][0] for line in (folder / "run" / "traces.jsonl").read_text().splitlines()]
    rows.sort(key=lambda trace: trace["task"]["data"]["idx"])
    return requests, [(sum(map(_number, trace["rewards"].values())), trace["metrics"]) for trace in rows]


def _number(reward: Any) -> float:
    """verifiers writes a number or {score, weight}."""
    return reward["score"] * reward["weight"] if isinstance(reward, dict) else reward


@needs_openenv
@pytest.mark.parametrize("package", ["supersede-env", "lme-v2-env"])
def test_the_example_client_plays_the_same_rollouts_as_verifiers_v1(package: str, tmp_path: Path) -> None:
    module, options = package.replace("-", "_"), SUPERSEDE if package == "supersede-env" else LME
    tasks = load_tasks(DataConfig("validation", "easy", num_questions=N), pictures=False, judged=False, premises=False)
    policy = echo if package == "supersede-env" else oracle(tasks)
    prompts, expected = through_v1(package, options, policy, tmp_path)
    with serving(module, options) as url, ScriptedEndpoint(policy) as model:
        client = [sys.executable, str(ROOT / "examples" / "openenv_client.py"), url]
        command = [*client, "--base-url", model.url, "--model", "m", "--episodes", str(N)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert sorted(model.requests) == prompts
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(expected) == N
    for row, (reward, metrics) in zip(rows, expected, strict=True):
        row["metrics"].pop("reader_seconds", None)  # a clock's
        assert row["reward"] == reward
        assert row["metrics"] == {name: metrics[name] for name in row["metrics"]}
    assert len({row["reward"] for row in rows}) > 1 or package == "lme-v2-env"  # else the comparison would say little
