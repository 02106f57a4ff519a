"""The local trainer on a tiny model: it learns, resumes exactly, sends NotesRollout's prompts, refuses bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from safetensors.torch import load_file

from eval import heldout
from rewards.currency import grade
from rewards.errors import UserError
from supersede_env.data import DataConfig, generated_records
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig
from tests.episodes import record
from tests.tiny import tiny_policy
from train import cli
from train.checkpoint import RunFolder
from train.local import train
from train.local_config import LocalConfig, LoraSettings, WarmStart, load_config
from train.optimizer import MasterAdamW, uninterrupted
from train.policy import LocalPolicy
from train.rollouts import play
from train.supersede import SupersedePlay, SupersedeTask, memory_counts, oracle_examples, turn_credits

WORDS = ["Oslo", "Rome", "Paris", "Lima", "none"]


def episodes_file(folder: Path, count: int = 6, **changes: Any) -> str:
    """Episodes with two short sessions and a gold that the tiny model can say."""
    file = folder / f"episodes-{'-'.join(changes)}.jsonl"
    rows = [record(i, 2, **({"gold": "Oslo", "stale": ["Rome"]} | changes)) for i in range(count)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(file)


def bandit(folder: Path, name: str = "run", **changes: Any) -> LocalConfig:
    """Whatever the sessions say, the answer "Oslo" is rewarded and "Rome" is punished."""
    settings: dict[str, Any] = {
        "model": "tiny",
        "output": str(folder / name),
        "steps": 4,
        "groups": 2,
        "group_size": 8,
        "max_notes_tokens": 2,
        "max_answer_tokens": 1,
        "lr": 0.01,
        "checkpoint_every": 2,
        "data": DataConfig(data=episodes_file(folder)),
        "lora": LoraSettings(r=8, alpha=64),
    }
    return LocalConfig(**(settings | changes))


def even_policy(**options: Any) -> LocalPolicy:
    """A model that says all words about equally often."""
    return tiny_policy(WORDS, spread=0.1, **options)


def metrics(config: LocalConfig, log: str = "metrics.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (Path(config.output) / log).read_text("utf-8").splitlines()]


def lasting(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Metrics without those of time."""
    return [{k: v for k, v in row.items() if "second" not in k} for row in rows]


def adapter(config: LocalConfig, name: str = "adapter") -> dict[str, torch.Tensor]:
    return load_file(Path(config.output) / name / "adapter_model.safetensors")


def test_reward_improves_on_a_bandit(tmp_path: Path) -> None:
    config = bandit(tmp_path, steps=9, group_size=24, max_notes_tokens=1)
    assert train(config, even_policy()) == 0
    rewards = [row["reward"] for row in metrics(config)]
    assert sum(rewards[-3:]) / 3 > rewards[0] + 0.5
    for row in metrics(config):
        assert sum(row["verdicts"].values()) == row["rollouts"] == 48
        assert row["max_logprob_difference"] is None or row["max_logprob_difference"] < 1e-4
        assert row["turns"] == 48 * 3
    rollouts = metrics(config, "rollouts.jsonl")
    assert len(rollouts) == 9 * 48
    assert {r["verdict"] for r in rollouts} >= {"correct", "wrong"}


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warm = {"data": DataConfig(data="train", preset="quick"), "warm_start": WarmStart(3, 1, 0.01, "linear")}
    monkeypatch.setattr("train.supersede.grade_answer", coin)
    whole = bandit(tmp_path, "whole", steps=5, **warm)
    assert train(whole, even_policy()) == 0
    for stop_after in ("warm.jsonl:1", "warm.jsonl:3", "metrics.jsonl:3"):
        config = bandit(tmp_path, f"parts-{stop_after.replace(':', '-')}", steps=5, **warm)
        with monkeypatch.context() as patch:
            patch.setattr("train.checkpoint.RunFolder.append", dying_append(stop_after))
            with pytest.raises(Killed):
                train(config, even_policy())
        assert train(replace(config, resume=True), even_policy()) == 0
        for log in ("warm.jsonl", "metrics.jsonl", "rollouts.jsonl"):
            assert lasting(metrics(config, log)) == lasting(metrics(whole, log)), (stop_after, log)
        for name in ("warm", "adapter"):
            assert all(torch.equal(adapter(config, name)[k], v) for k, v in adapter(whole, name).items())
    assert any(row["loss"] for row in metrics(whole)), "the comparison needs steps that learned"
    assert not torch.equal(*(adapter(whole, n)[min(adapter(whole))] for n in ("warm", "adapter")))


def test_a_linear_schedule_halves_the_second_of_two_warm_steps(tmp_path: Path) -> None:
    last = {}
    schedules: tuple[Literal["constant", "linear"], ...] = ("constant", "linear")
    for schedule in schedules:
        warm = WarmStart(steps=2, episodes=1, lr=0.01, schedule=schedule)
        data = DataConfig(data="train", preset="quick")
        config = bandit(tmp_path, schedule, steps=0, checkpoint_every=1, data=data, warm_start=warm)
        assert train(config, even_policy()) == 0
        first, second = (adapter(config, name) for name in ("warm_0001", "warm"))
        last[schedule] = torch.cat([(second[name] - first[name]).flatten() for name in first])
        assert [row["lr"] for row in metrics(config, "warm.jsonl")] == [warm.lr_of(0), warm.lr_of(1)]
    assert last["constant"].abs().max() > 0.001
    torch.testing.assert_close(last["linear"], last["constant"] / 2, rtol=1e-3, atol=1e-6)


class Killed(BaseException):
    """Stands for kill -9: nothing in the trainer may catch it."""


def dying_append(where: str) -> Callable[..., None]:
    log, step = where.split(":")
    original = RunFolder.append

    def append(self: RunFolder, name: str, rows: list[dict[str, Any]]) -> None:
        original(self, name, rows)
        if name == log and rows[0]["step"] == int(step):
            raise Killed

    return append


def coin(episode: Episode, answer: str) -> Any:
    """A grade that about half of all answers get, so that groups vary."""
    return grade("Oslo" if sum(map(ord, answer)) % 2 else "Rome", "Oslo", ["Rome"])


def test_same_seed_same_losses_other_seed_other_losses(tmp_path: Path) -> None:
    runs = [bandit(tmp_path, f"seed-{n}", steps=2, seed=seed) for n, seed in enumerate((1, 1, 2))]
    for config in runs:
        train(config, even_policy())
    first, same, other = (lasting(metrics(config)) for config in runs)
    assert first == same
    assert first != other


def test_groups_without_variance_are_skipped_and_counted(tmp_path: Path) -> None:
    config = bandit(tmp_path, steps=1, data=DataConfig(data=episodes_file(tmp_path, gold="Lagos", stale=["Quito"])))
    policy = even_policy()
    assert train(config, policy) == 0
    (row,) = metrics(config)
    assert (row["groups"], row["varied_groups"], row["trained_tokens"]) == (2, 0, 0)
    assert row["loss"] is None
    assert row["grad_norm"] is None
    assert all(not value.any() for name, value in adapter(config).items() if "lora_B" in name)


def test_a_rollout_over_the_window_is_unscored_and_counted(tmp_path: Path) -> None:
    config = bandit(tmp_path, steps=1)
    assert train(config, even_policy(window=20)) == 0
    (row,) = metrics(config)
    assert row["over_window"] == row["rollouts"] == 16
    assert row["reward"] is None
    assert metrics(config, "rollouts.jsonl")[0]["unscored_reason"] == "over window"


def test_the_policy_gets_the_protocols_prompts_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = even_policy()
    sent: list[list[dict[str, str]]] = []
    generate = LocalPolicy.generate

    def recording(self: LocalPolicy, prompts: list[list[dict[str, str]]], *args: Any, **options: Any) -> Any:
        sent.extend(prompts)
        return generate(self, prompts, *args, **options)

    monkeypatch.setattr(LocalPolicy, "generate", recording)
    protocol = ProtocolConfig(budget=40, wording="plain")
    config = LocalConfig(protocol=protocol, max_notes_tokens=8, max_answer_tokens=4)
    tasks = [SupersedeTask(record(i, 1 + i % 3), config) for i in range(5)]
    played = play(policy, [task.start() for task in tasks], temperature=1.0, seed="s")
    expected = []
    for task, one in zip(tasks, played, strict=True):
        rollout = NotesRollout(task.episode.view, protocol)
        for turn in one.turns:
            expected.append(rollout.prompt())
            assert len(turn.token_ids) <= (4 if len(rollout.history) + 1 == rollout.num_turns else 8)
            rollout.step(turn.text)
        assert rollout.answer == one.result.record["answer"]
    assert sorted(map(json.dumps, sent)) == sorted(map(json.dumps, expected))


def test_warm_start_examples_are_oracle_replies_to_the_protocols_prompts() -> None:
    protocol = ProtocolConfig(budget=200, wording="plain")
    for generated in generated_records(DataConfig(data="train", preset="quick", num_episodes=5)):
        examples = oracle_examples(generated, protocol)
        rollout = NotesRollout(Episode.from_record(generated).view, protocol)
        for example in examples:
            assert list(example.prompt) == rollout.prompt()
            rollout.step(example.reply)
        assert rollout.answer == generated["history"]["oracle_answer"]
        assert [e.reply for e in examples[:-1]] == generated["history"]["oracle_notes"]


def test_only_generated_histories_credit_a_turn_with_the_value_that_is_true_after_it() -> None:
    config = LocalConfig(protocol=ProtocolConfig(budget=400, wording="plain"))
    seen: set[float | None] = set()
    for generated in generated_records(DataConfig(data="train", preset="curriculum", num_episodes=20)):
        oracle, empty = (SupersedeTask(generated, config).start() for _ in range(2))
        for note in generated["history"]["oracle_notes"]:
            oracle.step(note)
            empty.step("")
        for play_ in (oracle, empty):
            play_.step("no idea")
        credits = oracle.result().credits
        seen |= set(credits)
        assert len(credits) == len(generated["sessions"]) + 1
        assert credits[-1] is None
        assert set(empty.result().credits) <= {0.0, None}
        assert sum(c == 0.0 for c in credits) <= 1, generated["id"]
    assert {1.0, None} <= seen
    plain = SupersedeTask(record(0, 2), config).start()
    for _ in range(3):
        plain.step("Oslo")
    assert plain.result().credits == (None,) * 3
    assert not any(plain.result().counts[name] for name in ("told", "written", "carried", "kept"))


def test_counts_tell_writing_a_new_value_from_keeping_a_known_one() -> None:
    values = [None, "Oslo", "Oslo", "Rome", "Rome", "Rome"]
    kept_then_lost = [None, True, True, False, False, True]
    assert memory_counts(values, kept_then_lost) == {"told": 2, "written": 1, "carried": 1, "kept": 1}
    copies_the_last_session = [None, True, False, True, False, False]
    assert memory_counts(values, copies_the_last_session) == {"told": 2, "written": 2, "carried": 2, "kept": 0}


def test_a_turn_is_not_blamed_for_what_was_lost_before_it() -> None:
    values = [None, "Oslo", "Oslo", "Oslo", "Rome", "Rome"]
    none = [False] * 6
    assert turn_credits(values, [None, True, False, False, False, False], none, 0.5) == (None, 1, 0, None, 0, None)
    assert turn_credits(values, [None, False, True, True, True, True], none, 0.5) == (None, 0, None, 1, 1, 1)
    assert turn_credits(values, [], [], 0.5) == ()


def test_an_old_value_beside_the_new_one_costs_what_a_stale_answer_costs() -> None:
    row = record(2, 3, gold="Rome", stale=["Oslo"])
    values = ["Oslo", "Rome", "Rome"]

    def credits(notes: list[str], **changes: Any) -> tuple[float | None, ...]:
        play = SupersedePlay(Episode.from_record(row | changes), LocalConfig(stale_weight=0.25), values)
        for reply in (*notes, "Rome"):
            play.step(reply)
        assert play.result().counts["outdated"] == (0 if changes else 2 * notes[1].count("Oslo"))
        return play.result().credits

    assert credits(["Oslo", "Rome, Oslo before", "Rome, Oslo before"]) == (1, 0.75, 0.75, None)
    assert credits(["Oslo", "Oslo", "Oslo"]) == (1, -0.25, None, None)
    assert credits(["Oslo", "Rome", "Rome"]) == (1, 1, 1, None)
    assert credits(["Oslo", "Rome, Oslo before", "Rome, Oslo"], asks="previous") == (1, 1, 1, None), "asked for"
    split = LocalConfig(protocol=ProtocolConfig(max_session_chars=30))
    play = SupersedePlay(Episode.from_record(row), split, values)
    while not play.done:
        play.step("Oslo")
    assert len(play.rollout.history) > len(values) + 1
    assert play.result().counts["outdated"] == 0, "which part of a session tells what is not known"


def test_further_rounds_are_played_until_enough_groups_vary(tmp_path: Path) -> None:
    same = bandit(
        tmp_path,
        steps=2,
        varied_groups=2,
        max_rounds=3,
        data=DataConfig(data=episodes_file(tmp_path, gold="Lagos", stale=["Quito"])),
    )
    assert train(same, even_policy()) == 0
    assert [(row["groups"], row["varied_groups"]) for row in metrics(same)] == [(6, 0), (6, 0)]
    varied = bandit(tmp_path, "varied", steps=2, varied_groups=2, max_rounds=3)
    assert train(varied, even_policy()) == 0
    assert all(row["varied_groups"] >= 2 and row["groups"] < 6 for row in metrics(varied))


def test_kl_holds_the_policy_near_the_base_model(tmp_path: Path) -> None:
    runs = [bandit(tmp_path, f"kl-{weight}", steps=6, kl_weight=weight) for weight in (1e-9, 3.0)]
    for config in runs:
        assert train(config, even_policy()) == 0
    free, held = ([row["kl"] or 0 for row in metrics(config)] for config in runs)
    assert free[0] == held[0] == pytest.approx(0, abs=1e-6), "the adapter begins as the base model"
    assert 0 < max(held) < max(free) / 2


def test_length_weight_is_part_of_the_reward(tmp_path: Path) -> None:
    config = bandit(tmp_path, steps=1, length_weight=1.0, protocol=ProtocolConfig(budget=20))
    assert train(config, even_policy()) == 0
    values = {"correct": 1.0, "stale": -0.5, "hedged": 0.5}
    for row in metrics(config, "rollouts.jsonl"):
        shares = [len(note) / 20 for note in row["notes"]]
        verdict = values.get(row["verdict"], 0.0)
        assert row["reward"] == pytest.approx(verdict - sum(shares) / len(shares)), row


def test_one_process_a_training_folder(tmp_path: Path) -> None:
    config = bandit(tmp_path, steps=1)
    with RunFolder(Path(config.output)).only_writer(), pytest.raises(UserError, match="in use by another process"):
        train(config, even_policy())
    assert train(config, even_policy()) == 0


def test_kill_9_at_any_moment_then_resume_gives_the_uninterrupted_run(tmp_path: Path) -> None:
    policy = even_policy()
    policy.model.save_pretrained(tmp_path / "model")
    policy.tokenizer.save_pretrained(tmp_path / "model")
    command = [sys.executable, "-m", "train.cli", "train", "--env", "supersede", "--engine", "local"]
    command += ["--model", str(tmp_path / "model"), "--steps", "6", "--checkpoint_every", "1", "--groups", "2"]
    command += ["--group_size", "4", "--warm_start.steps", "3", "--max_notes_tokens", "4", "--dtype", "fp32"]
    command += ["--turn_weight", "1.0", "--max_minutes", "None"]  # random words: credits vary where rewards do not
    whole, parts = (LocalConfig(output=str(tmp_path / name)) for name in ("whole", "parts"))
    subprocess.run([*command, "--output", whole.output], check=True, capture_output=True)
    logs = ("warm.jsonl", "metrics.jsonl")
    for kill_after in (2, 6):  # lines in the logs: while warm, and in GRPO
        running = subprocess.Popen([*command, "--output", parts.output, "--resume"], stderr=subprocess.DEVNULL)
        while running.poll() is None:
            lines = sum(len(RunFolder(Path(parts.output)).rows(log)) for log in logs if Path(parts.output).is_dir())
            if lines >= kill_after:
                running.kill()
            time.sleep(0.01)
    subprocess.run([*command, "--output", parts.output, "--resume"], check=True, capture_output=True)
    for log in (*logs, "rollouts.jsonl"):
        assert lasting(metrics(parts, log)) == lasting(metrics(whole, log)), log
    assert all(torch.equal(adapter(parts)[name], tensor) for name, tensor in adapter(whole).items())
    assert len(metrics(whole)) == 6


@pytest.fixture
def listens_to_ctrl_c() -> Iterator[None]:
    """A shell without job control starts background jobs with SIGINT ignored; then no Ctrl-C would arrive."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listens_to_ctrl_c")
@pytest.mark.parametrize(
    ("owner", "name", "updates"),
    [(RunFolder, "append", 1), (LocalPolicy, "generate", 1), (MasterAdamW, "apply", 2)],
)
def test_ctrl_c_leaves_a_run_that_resumes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    owner: type,
    name: str,
    updates: int,
) -> None:
    whole = bandit(tmp_path, "whole", updates=updates)
    config = bandit(tmp_path, checkpoint_every=100, updates=updates)
    original, calls = getattr(owner, name), []

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return original(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        assert train(config, even_policy()) == 130
    done = len(metrics(config))
    assert 0 < done < 4
    assert f"interrupted after grpo step {done}; resume with" in capfd.readouterr().err
    assert train(replace(config, resume=True), even_policy()) == 0
    train(whole, even_policy())
    assert lasting(metrics(config)) == lasting(metrics(whole))


@pytest.mark.usefixtures("listens_to_ctrl_c")
def test_ctrl_c_once_more_while_the_run_is_saved_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    config, calls = bandit(tmp_path, checkpoint_every=100), []

    def interrupted_at(owner: type, name: str, when: int) -> None:
        original = getattr(owner, name)

        def interrupted(*args: Any, **options: Any) -> Any:
            calls.append(name)
            if calls.count(name) == when:
                os.kill(os.getpid(), signal.SIGINT)
            return original(*args, **options)

        monkeypatch.setattr(owner, name, interrupted)

    interrupted_at(LocalPolicy, "generate", 5)
    interrupted_at(RunFolder, "save", 1)
    assert train(config, even_policy()) == 130
    assert "interrupted after grpo step 1; resume with" in capfd.readouterr().err
    interrupted_at(RunFolder, "finish", 1)
    assert train(replace(config, resume=True), even_policy()) == 0, "all that was left to do is done"
    assert calls.count("finish") == 1
    assert [row["step"] for row in metrics(config)] == [1, 2, 3, 4]
    assert adapter(config)


@pytest.mark.usefixtures("listens_to_ctrl_c")
def test_a_job_that_ignores_ctrl_c_ignores_it_in_every_moment() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)


def test_the_next_command_plays_as_training_did(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    protocol = ProtocolConfig(budget=150, wording="plain", show_dates=False)
    config = bandit(tmp_path, steps=0, protocol=protocol)
    assert train(config, even_policy()) == 0
    command = capfd.readouterr().out.strip().splitlines()[-1].split()[1:]
    assert command[:4] == ["python", "-m", "eval", "supersede"]
    options = heldout.parser().parse_args(command[4:])
    assert (options.budget, options.wording, options.no_dates) == (150, "plain", True)
    assert Path(options.adapter, "adapter_config.json").is_file()


def test_max_minutes_ends_early_with_an_adapter(tmp_path: Path) -> None:
    config = bandit(tmp_path, steps=10_000, max_minutes=0.02)
    assert train(config, even_policy()) == 0
    assert 0 < len(metrics(config)) < 10_000
    assert adapter(config)


def test_several_updates_a_step_learn_too(tmp_path: Path) -> None:
    config = bandit(tmp_path, steps=6, group_size=16, max_notes_tokens=1, updates=2)
    assert train(config, even_policy()) == 0
    rewards = [row["reward"] for row in metrics(config)]
    assert sum(rewards[-2:]) / 2 > sum(rewards[:2]) / 2 + 0.2


def test_a_run_is_neither_overwritten_nor_resumed_as_another(tmp_path: Path) -> None:
    config = bandit(tmp_path, steps=1)
    train(config, even_policy())
    with pytest.raises(UserError, match="holds a run: continue it with --resume"):
        train(config, even_policy())
    with pytest.raises(UserError, match=r"cannot resume: lr was 0\.01, now 0\.02"):
        train(replace(config, resume=True, lr=0.02), even_policy())
    assert train(replace(config, resume=True, steps=2), even_policy()) == 0
    assert [row["step"] for row in metrics(config)] == [1, 2]


def test_a_setting_that_is_newer_than_the_checkpoint_keeps_its_default(tmp_path: Path) -> None:
    data, warm = DataConfig(data="train", preset="quick"), WarmStart(steps=1, episodes=1)
    config = bandit(tmp_path, steps=0, data=data, warm_start=warm)
    assert train(config, even_policy()) == 0
    file = Path(config.output) / "warm" / "state.json"
    state = json.loads(file.read_text("utf-8"))
    del state["config"]["warm_start"]["schedule"]  # as an earlier version wrote it
    file.write_text(json.dumps(state), "utf-8")
    with pytest.raises(UserError, match=r"cannot resume: warm_start\.schedule was constant, now linear"):
        train(replace(config, resume=True, warm_start=replace(warm, schedule="linear")), even_policy())
    assert train(replace(config, resume=True), even_policy()) == 0


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40])


DAMAGE: list[tuple[str, Callable[[Path], None], str]] = [
    ("step_0002/state.json", cut, "state.json is damaged, the run cannot resume"),
    ("step_0002/trainer.safetensors", cut, "trainer.safetensors is damaged, the run cannot resume"),
    ("step_0002/trainer.safetensors", Path.unlink, "no checkpoint has its trainer.safetensors"),
    ("metrics.jsonl", cut, "metrics.jsonl is shorter than its checkpoint says"),
]


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGE)
def test_a_damaged_run_is_told_in_one_line_and_left_as_it_is(
    tmp_path: Path, name: str, damage: Callable[[Path], None], message: str
) -> None:
    config = bandit(tmp_path, steps=2)
    train(config, even_policy())
    damage(Path(config.output) / name)
    before = {file: file.read_bytes() for file in Path(config.output).rglob("*") if file.is_file()}
    with pytest.raises(UserError, match=message) as refused:
        train(replace(config, resume=True, steps=3), even_policy())
    assert "\n" not in str(refused.value)
    assert {file: file.read_bytes() for file in Path(config.output).rglob("*") if file.is_file()} == before


def test_what_a_killed_writer_left_is_cleared_away_on_resume(tmp_path: Path) -> None:
    whole, config = bandit(tmp_path, "whole"), bandit(tmp_path, steps=2)
    train(config, even_policy())
    (Path(config.output) / ".step_0004.x1y2").mkdir()
    with (Path(config.output) / "rollouts.jsonl").open("a") as log:
        log.write('{"step": 3, "answer": "Os')
    assert train(replace(config, resume=True, steps=4), even_policy()) == 0
    assert not list(Path(config.output).glob(".step*"))
    train(whole, even_policy())
    assert lasting(metrics(config, "rollouts.jsonl")) == lasting(metrics(whole, "rollouts.jsonl"))
    assert load_config(Path(config.output) / "config.toml").steps == 4, "what an interruption says to resume with"


BAD = [
    (["--warm-start.step", "3"], "unknown key 'warm_start.step'; did you mean '--warm_start.steps'?"),
    (["--group_sise", "3"], "unknown key 'group_sise'; did you mean '--group_size'?"),
    (["--lr", "fast"], "lr is 'fast': expected a number"),
    (["--steps", "2.5"], "option 'steps'"),
    (["--group_size", "1"], "group_size is 1: a group needs 2 rollouts to differ"),
    (["--protocol.budget", "0"], "budget is 0"),
    (["--data.preset", "quik"], "unknown preset 'quik'; did you mean 'quick'?"),
    (["--data.data", "oracle", "--data.preset", "None"], "training takes generated data"),
    (["--dtype", "fp16"], "option 'dtype'"),
    (["--temperature", "0"], "temperature is 0"),
    (["--config", "/nowhere.toml"], "no such file"),
    (["--normalisation", "mean"], "set stale_weight and length_weight to 0"),
    (["--normalisation", "median"], "option 'normalisation'"),
    (["--varied_groups", "13"], "max_rounds x groups is 3 x 4"),
    (["--curriculum.presets", "quick", "hart"], "unknown preset 'hart'; did you mean 'hard'?"),
]


@pytest.mark.parametrize(("args", "message"), BAD)
def test_bad_input_is_refused_in_one_line(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "--env", "supersede", "--engine", "local", "--dry-run", *args]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_unknown_keys_of_a_file_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[warm_start]\nstep = 3\n", "utf-8")
    with pytest.raises(UserError, match=r"unknown key 'warm_start\.step'; did you mean 'warm_start\.steps'"):
        load_config(file)


def test_dry_run_prints_a_configuration_that_loads_to_the_same(tmp_path: Path) -> None:
    overrides = ["--warm-start.steps", "7", "--max-minutes", "2.5", "--data.first-seed", "100"]
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "train.cli",
        "train",
        "--env",
        "supersede",
        "--engine",
        "local",
    ]
    command += ["--dry-run", *overrides]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert " torch\n" not in done.stderr
    file = tmp_path / "printed.toml"
    file.write_text(done.stdout, "utf-8")
    loaded = load_config(file)
    assert loaded == load_config(None, overrides)
    assert (loaded.warm_start.steps, loaded.max_minutes, loaded.data.first_seed) == (7, 2.5, 100)
