"""Policies as memory systems of `python -m eval lme-v2`: scripted, behind an endpoint, and a local model."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from eval import lme
from eval.baselines.policy import PolicyOptions, local_actor
from lme_v2_env.data import DataConfig, explorer_of_world, load_tasks
from lme_v2_env.policies import oracle
from lme_v2_env.protocol import ProtocolConfig, RetrievalRollout
from lme_v2_env.trajectory import QuestionView
from rewards.errors import UserError
from tests import lme_world
from tests.scripted_endpoint import ScriptedEndpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return lme_world.write(tmp_path / "shop", [lme_world.trajectory(number) for number in range(6)])


def evaluate(folder: Path, out: Path, *more: str) -> int:
    base = ["--data", str(folder), "--retrieval", "bm25", "--reader", "extractive", "--cache", str(out / "cache")]
    return lme.run([*base, "--out", str(out), *more])


def rows(out: Path, system: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / system / "rows.jsonl").read_text("utf-8").splitlines()]


def test_a_policy_runs_as_a_system_like_any_other(folder: Path, tmp_path: Path) -> None:
    tasks = load_tasks(DataConfig(str(folder)), pictures=False, judged=False, premises=False)
    with ScriptedEndpoint(oracle(tasks)) as endpoint:
        args = ("--system", "search,policy", "--policy-base-url", endpoint.url, "--policy-model", "m")
        assert evaluate(folder, tmp_path / "run", *args) == 0
        sent = json.dumps(endpoint.requests)
    assert [row["strict_correct"] for row in rows(tmp_path / "run", "search")] == [True] * 6
    found = rows(tmp_path / "run", "policy")
    assert [row["strict_correct"] for row in found] == [True] * 6
    assert all(row["evidence"]["state"] == 1.0 and row["query_seconds"] > 0 for row in found)
    assert not any(row["id"] in sent or row["gold"] in sent for row in found)
    info = json.loads((tmp_path / "run" / "policy" / "run.json").read_text())
    assert info["settings"]["prompt_hash"] == ProtocolConfig().hash
    context = json.loads(
        gzip.decompress((tmp_path / "run" / "policy" / "contexts" / f"{found[0]['id']}.json.gz").read_bytes())
    )
    assert len(context) == 1


def test_a_policy_without_a_reply_leaves_the_question_unscored(folder: Path, tmp_path: Path) -> None:
    with ScriptedEndpoint(lambda messages: "submit()", lambda messages, count: "null") as endpoint:
        args = ("--system", "policy", "--policy-base-url", endpoint.url, "--protocol", "max_actions=3,wording=plain")
        assert evaluate(folder, tmp_path / "run", *args) == 3
    assert all("without content" in row["unscored_reason"] for row in rows(tmp_path / "run", "policy"))


def test_a_local_model_acts_by_the_same_protocol(folder: Path) -> None:
    """Its replies are taken as they are: a model that says one word makes malformed actions, not errors."""
    tiny = pytest.importorskip("tests.tiny")
    policy = tiny.tiny_policy(["submit()", "keep(t1:0)"], window=2048)
    task = load_tasks(DataConfig(str(folder)), pictures=False, judged=False, premises=False)[0]
    rollout = RetrievalRollout(
        QuestionView(task.question.text), explorer_of_world(task.world), ProtocolConfig(max_actions=3)
    )
    options = PolicyOptions(max_tokens=1, temperature=1.0)
    actor = local_actor(policy, options)
    while not rollout.done:
        rollout.step(actor(rollout))
    assert 1 <= len(rollout.history) <= 3
    narrow = local_actor(tiny.tiny_policy(["x"], window=16), options)
    with pytest.raises(UserError, match="over window"):
        narrow(RetrievalRollout(QuestionView(task.question.text), explorer_of_world(task.world), ProtocolConfig()))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--protocol", "max_action=3"], "did you mean 'max_actions'"),
        (["--protocol", "max_actions=none"], "option 'max_actions'"),
        (["--adapter", "x", "--policy-base-url", "http://127.0.0.1:9/v1"], "--adapter is for a local model"),
        (["--adapter", "nowhere"], "no adapter_model.safetensors"),
    ],
)
def test_bad_options_get_one_line(
    folder: Path, tmp_path: Path, args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(folder, tmp_path / "run", "--system", "policy", *args) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
