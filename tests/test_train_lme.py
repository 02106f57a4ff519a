"""LME-V2 in the local trainer: a tiny model learns to keep the right page, the teacher's turns are its protocol's."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from lme_v2_env.data import DataConfig
from lme_v2_env.protocol import ProtocolConfig, RetrievalRollout
from lme_v2_env.reading import ReaderConfig
from lme_v2_env.scoring import RewardConfig
from lme_v2_env.trajectory import QuestionView
from rewards.errors import UserError
from tests import lme_world
from tests.hostile_endpoint import HostileEndpoint
from tests.tiny import tiny_policy
from train import validate
from train.lme_v2 import LmeV2Task, LmeV2Tasks
from train.lme_v2_config import LmeV2Config
from train.local import train
from train.local_config import LoraSettings, WarmStart, load_config
from train.prime import to_toml

WORDS = ["keep(t1:1)", "keep(t2:1)", "keep(t3:0)", "open(t1)"]


@pytest.fixture
def config(tmp_path: Path) -> LmeV2Config:
    """One question; its answer is on state 1 of run t1."""
    trajectories = [lme_world.trajectory(number) for number in range(3)]
    folder = lme_world.write(tmp_path / "shop", trajectories, [lme_world.question(0)])
    return LmeV2Config(
        model="tiny",
        output=str(tmp_path / "run"),
        steps=8,
        groups=1,
        group_size=16,
        max_reply_tokens=1,
        lr=0.02,
        data=DataConfig(str(folder)),
        protocol=ProtocolConfig(wording="plain", max_actions=1, spans_only=True),
        lora=LoraSettings(r=8, alpha=64),
    )


def metrics(config: LmeV2Config, log: str = "metrics.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (Path(config.output) / log).read_text("utf-8").splitlines()]


def test_the_right_page_is_learned(config: LmeV2Config) -> None:
    assert train(config, tiny_policy(WORDS, spread=0.1, window=1024)) == 0
    rows = metrics(config)
    assert rows[0]["reward"] < 0.4
    assert rows[-1]["reward"] > 0.7
    rollouts = metrics(config, "rollouts.jsonl")
    assert all((rollout["replies"] == ["keep(t1:1)"]) == (rollout["verdict"] == "correct") for rollout in rollouts)
    assert (Path(config.output) / "adapter" / "adapter_model.safetensors").is_file()


def test_a_reader_that_fails_leaves_rollouts_unscored_and_its_key_nowhere(
    config: LmeV2Config, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every third request is refused with the key in the refusal."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    refuses = lambda messages, count: "401-echo" if count % 3 == 0 else None  # noqa: E731
    with HostileEndpoint(lambda messages: "\\boxed{100}", refuses) as endpoint:
        reader = ReaderConfig(reader="m", base_url=endpoint.url)
        assert train(replace(config, steps=2, reader=reader), tiny_policy(WORDS, spread=0.1, window=1024)) == 0
        refused = endpoint.faults["401-echo"]
    rollouts = metrics(config, "rollouts.jsonl")
    assert len(rollouts) == 32
    unscored = [rollout["unscored_reason"] for rollout in rollouts if rollout["reward"] is None]
    assert len(unscored) == refused > 8
    assert all("401" in reason for reason in unscored)
    assert sum(row["verdicts"]["correct"] for row in metrics(config)) == 32 - refused
    said = "".join(capfd.readouterr())
    assert re.search(r"reward 1.000, (\d+)/\1 correct \(\d+ unscored\)", said)
    files = [file.read_bytes() for file in Path(config.output).rglob("*") if file.is_file()]
    assert not [data for data in (*files, said.encode()) if b"canary" in data]


def test_a_terminated_run_does_not_wait_for_a_reader_that_hangs_and_resumes(
    config: LmeV2Config, tmp_path: Path
) -> None:
    policy = tiny_policy(WORDS, spread=0.1, window=1024)
    policy.model.save_pretrained(tmp_path / "model")
    policy.tokenizer.save_pretrained(tmp_path / "model")
    hangs = lambda messages, count: "hang" if count > 16 else None  # noqa: E731  from the second step on
    with HostileEndpoint(lambda messages: "\\boxed{100}", hangs, patience=60) as endpoint:
        reader = ReaderConfig(reader="m", base_url=endpoint.url)
        config = replace(config, model=str(tmp_path / "model"), steps=2, checkpoint_every=5, reader=reader)
        file = tmp_path / "run.toml"
        file.write_text(to_toml(asdict(config)), "utf-8")
        arguments = ["train.cli", "train", "--env", "lme-v2", "--engine", "local", "--config", str(file)]
        error = endpoint.terminate(arguments, requests=20, within=20)
    assert "interrupted after grpo step 1; resume with" in error
    assert train(replace(config, steps=1, resume=True), policy) == 0
    assert [row["step"] for row in metrics(config)] == [1], "the step that was done is kept"


def test_a_step_of_which_nothing_is_scored_ends_the_run_and_it_resumes(
    config: LmeV2Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lme_v2_env.chat.pause", lambda *_: 0.0)
    down: list[str | None] = [None, "404"]
    policy = lambda: tiny_policy(WORDS, spread=0.1, window=1024)  # noqa: E731
    with HostileEndpoint(lambda messages: "\\boxed{100}", lambda messages, count: down[count > 16]) as endpoint:
        config = replace(config, steps=2, reader=ReaderConfig(reader="m", base_url=endpoint.url))
        with pytest.raises(UserError, match=r"step 2: 16 of 16 rollouts could not be scored, .*404.* with --resume"):
            train(config, policy())
        down[1] = None
        elsewhere = replace(config.reader, base_url=endpoint.url.replace("127.0.0.1", "localhost"), timeout=9.0)
        assert train(replace(config, resume=True, reader=elsewhere), policy()) == 0
        other = replace(config, resume=True, reader=replace(config.reader, reader="another"))
        with pytest.raises(UserError, match=r"cannot resume: reader\.reader was m, now another"):
            train(other, policy())
    assert [row["step"] for row in metrics(config)] == [1, 2]
    assert len(metrics(config, "rollouts.jsonl")) == 32


def test_a_checkpoint_that_the_reader_does_not_answer_is_not_kept(
    config: LmeV2Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second point meets a reader that is down; the same command then plays it and keeps the first."""
    monkeypatch.setattr("lme_v2_env.chat.pause", lambda *_: 0.0)
    policy = tiny_policy(WORDS, spread=0.1, window=4096)
    policy.model.save_pretrained(tmp_path / "model")
    policy.tokenizer.save_pretrained(tmp_path / "model")
    down = [False]
    refuses = lambda messages, count: "404" if down[0] and count > 3 else None  # noqa: E731  2 trained, 1 of the base
    with HostileEndpoint(lambda messages: "\\boxed{100}", refuses) as endpoint:
        reader = ReaderConfig(reader="m", base_url=endpoint.url)
        data = DataConfig(data="train", preset="easy", num_worlds=1)
        config = replace(config, model=str(tmp_path / "model"), data=data, steps=1, group_size=2, reader=reader)
        assert train(config, policy) == 0
        down[0] = True
        assert validate.main([config.output, "--n", "1"]) == 2
        said = capsys.readouterr().err
        assert "step 1: 1 of 1 tasks could not be scored (" in said
        assert "the same command goes on" in said
        down[0] = False
        assert validate.main([config.output, "--n", "1"]) == 0
        assert capsys.readouterr().err.count("validate: ") == 1
    assert [row["label"] for row in metrics(config, validate.LOG)] == ["base", "step 1"]


def test_a_prompt_over_the_window_is_unscored(config: LmeV2Config) -> None:
    assert train(replace(config, steps=1), tiny_policy(WORDS, window=16)) == 0
    (row,) = metrics(config)
    assert row["reward"] is None
    assert row["over_window"] == 16


def test_the_teacher_searches_keeps_what_it_found_and_is_right() -> None:
    data = DataConfig(data="train", preset="easy", num_worlds=4)
    config = LmeV2Config(data=data, reward=RewardConfig(evidence_weight=0.5))
    tasks = LmeV2Tasks(config)
    rewards = []
    for number in range(20):
        task: LmeV2Task = tasks.task(number)
        examples = task.examples()
        assert [reply.partition("(")[0] for reply in (examples[0].reply, examples[-1].reply)] == [
            "search_states",
            "submit",
        ]
        play = task.start()
        bare = RetrievalRollout(QuestionView(task.task.question.text), play.rollout.explorer, config.protocol)
        for example in examples:
            assert tuple(bare.prompt()) == example.prompt
            bare.step(example.reply)
            play.step(example.reply)
        result = play.result()
        assert 1.0 in result.credits
        assert result.reward is not None
        rewards.append(result.reward)
    assert len({tasks.task(number).task.world for number in range(20)}) > 1
    assert sum(rewards) / len(rewards) > 1.0  # most are right, and the evidence is worth 0.5 more


def test_files_and_options_are_checked() -> None:
    shipped = load_config(env="lme-v2")
    assert isinstance(shipped, LmeV2Config)
    assert shipped.env == "lme-v2"
    assert load_config(env="lme-v2", overrides=["--protocol.max_actions", "3"]).protocol.max_actions == 3
    for overrides, message in (
        (["--protocol.max_action", "3"], "max_actions"),
        (["--data.preset", "esy"], "did you mean 'easy'"),
        (["--data.data", "heldout"], "train on data 'train'"),
        (["--protocol.actions", "tools"], "acts by text"),
        (["--normalisation", "mean", "--reward.action_cost", "0.1"], "rewards of 0 and 1"),
    ):
        with pytest.raises(UserError, match=message):
            load_config(env="lme-v2", overrides=overrides)


def test_a_warm_start_makes_examples(tmp_path: Path) -> None:
    config = LmeV2Config(
        model="tiny",
        output=str(tmp_path / "run"),
        steps=0,
        data=DataConfig(data="train", preset="easy", num_worlds=1),
        lora=LoraSettings(r=4),
        warm_start=WarmStart(steps=1, episodes=2),
    )
    assert train(config, tiny_policy(WORDS, window=4096)) == 0
    (row,) = metrics(config, "warm.jsonl")
    assert row["examples"] >= 6


def test_the_prime_rl_file_names_options_that_there_are() -> None:
    tomllib = pytest.importorskip("tomllib")
    taskset = pytest.importorskip("lme_v2_env.taskset")
    file = tomllib.loads((Path(__file__).parents[1] / "configs" / "lme_v2_rl.toml").read_text("utf-8"))
    for part in (file["orchestrator"]["train"]["source"], file["orchestrator"]["eval"]["source"]):
        assert taskset.LmeV2Config(**part[0]["env"]["taskset"]).task.reader == "Qwen/Qwen3.5-9B"
