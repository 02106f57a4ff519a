"""GRPO with LoRA on one machine: an optional warm start, then reinforcement learning on the environment's episodes.

The algorithm is prime-rl's (train/grpo.py) in a plain loop: play `groups` x `group_size` rollouts in lock-step, grade
them, take one update (or `updates`) on every turn of every rollout whose group varied. One torch engine samples and
scores (train/policy.py), so no weights are copied and no importance correction is needed. All randomness is derived
from the seed and the step's number: a resumed run equals an uninterrupted one.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from rewards.errors import UserError
from train import curriculum
from train.checkpoint import Checkpoint, Phase, Position, RunFolder, write_adapter
from train.grpo import kl_to_base, policy_loss
from train.local_config import MAY_CHANGE, EngineConfig, LocalConfig, load_config
from train.optimizer import MasterAdamW, adapter_parameters, add_adapter, uninterrupted
from train.overrides import flattened
from train.policy import Ids, LocalPolicy
from train.progress import Reporter
from train.rollouts import Played, group_advantages, play
from train.tasks import OVER_WINDOW, load_tasks, total_counts

__all__ = ["LocalConfig", "load_config", "run", "train"]

INTERRUPTED_EXIT = 130
"""What shells give a command that Ctrl-C ended."""


def run(config: EngineConfig) -> int:
    """Train as `config` says and tell what to do next. 0 done, 2 refused with one line, 130 interrupted."""
    print(f"loading {config.model}; the run goes to {config.output}", file=sys.stderr, flush=True)
    try:
        return train(config, LocalPolicy.load(config.model, device=config.device, dtype=config.dtype))
    except UserError as error:
        print(f"prime-rl: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # before the first step
        print("prime-rl: interrupted before training began", file=sys.stderr)
        return INTERRUPTED_EXIT


def train(config: EngineConfig, policy: LocalPolicy) -> int:
    """As `run`, with the model already loaded. Raises `UserError`."""
    with RunFolder(Path(config.output)).only_writer():
        return _train(config, policy)


def _train(config: EngineConfig, policy: LocalPolicy) -> int:
    trainer = Trainer.begin(config, policy)
    with Reporter(config.wandb, asdict(config), config.output) as reporter:
        try:
            trainer.warm_start(reporter)
            trainer.reinforce(reporter)
            with uninterrupted(late=False):
                adapter = trainer.folder.finish(trainer.save())
        except KeyboardInterrupt:
            with uninterrupted(late=False):  # a second Ctrl-C while it saves changes nothing
                trainer.optimizer.discard()
                trainer.save()
                reporter.note(f"interrupted after {trainer.position.phase} step {trainer.position.step}; resume with:")
                reporter.note(f"  prime-rl train --env {config.env} --engine local --resume \\")
                reporter.note(f"    --config {trainer.folder.root}/config.toml")
            return INTERRUPTED_EXIT
        except NothingScored:
            with uninterrupted(late=False):
                trainer.save()
            raise
    root = trainer.folder.root
    print(f"adapter   {adapter}" + (f" (after the warm start: {root / 'warm'})" if config.warm_start.steps else ""))
    print(f"metrics   {root / 'metrics.jsonl'}")
    print(f"rollouts  {root / 'rollouts.jsonl'}")
    print(f"next      {trainer.tasks.next_command(adapter)}")
    return 0


class NothingScored(UserError):
    """A step that cannot be learnt from."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One turn to learn from; `logprobs` are those it was sampled with."""

    prompt_ids: Ids
    token_ids: Ids
    logprobs: tuple[float, ...]
    advantage: float


@dataclass(frozen=True, slots=True)
class Learned:
    """One update's loss, its KL to the base a token, and the largest difference between the log-probability that a
    token was sampled with and its log-probability now: rounding, when the weights are the same."""

    loss: float
    largest: float
    kl: float


class Trainer:
    """The state of a run: the policy with its adapter, the optimiser of the current phase, the steps done."""

    def __init__(self, config: EngineConfig, policy: LocalPolicy, folder: RunFolder) -> None:
        self.config, self.policy, self.folder = config, policy, folder
        self.tasks = load_tasks(config)
        self.position = Position("warm" if config.warm_start.steps else "grpo", 0)
        self.optimizer = MasterAdamW(adapter_parameters(policy.model), self._lr(), config.weight_decay)
        self.started = time.monotonic()
        self._saved: tuple[Position, Path] | None = None

    @classmethod
    def begin(cls, config: EngineConfig, policy: LocalPolicy) -> Trainer:
        """A new run, or with `resume` the one in `config.output` at its last checkpoint. Raises `UserError`."""
        from train.prime import to_toml

        folder = RunFolder(Path(config.output))
        checkpoint = folder.newest() if config.resume else None
        saved: dict[str, torch.Tensor] = {}
        if checkpoint is not None:
            _same_run(config, checkpoint)
            saved = checkpoint.trainer()  # before anything is changed: it may be damaged
            folder.cut_logs(checkpoint)
        else:
            if config.resume:
                print(f"prime-rl: {config.output} has no checkpoint yet; starting from the beginning", file=sys.stderr)
            folder.start()
        folder.describe(to_toml(asdict(config) | {"resume": False}))
        policy.model = add_adapter(policy.model, config.lora, config.seed)
        policy.tokens = config.micro_tokens or policy.tokens
        trainer = cls(config, policy, folder)
        if checkpoint is not None:
            trainer.position = checkpoint.position
            trainer.optimizer.restart(trainer._lr())
            trainer.optimizer.load(saved)
            trainer._saved = (checkpoint.position, checkpoint.folder)
        return trainer

    def warm_start(self, reporter: Reporter) -> None:
        """The supervised steps that are left, then the checkpoint `warm`."""
        total = self.config.warm_start.steps
        if self.position.phase != "warm":
            return
        reporter.phase("warm start", self.position.step, total)
        while self.position.step < total:
            row = self._warm_step(self.position.step)
            reporter.step(row)
            if self.position.step % self.config.checkpoint_every == 0 and self.position.step < total:
                self.save()
        with uninterrupted():
            path = self.save()
            # reinforcement learning begins with fresh moments: another loss, another learning rate
            self.optimizer.restart(self.config.lr)
            self.position = Position("grpo", 0)
            self._saved = (self.position, path)

    def reinforce(self, reporter: Reporter) -> None:
        """The GRPO steps that are left, or as many as `max_minutes` allows."""
        config = self.config
        deadline = None if config.max_minutes is None else self.started + 60 * config.max_minutes
        if self.position.step and self.position.step >= config.steps:
            reporter.note(f"nothing to train: {self.position.step} steps are done, --steps is {config.steps}")
        reporter.phase("grpo", self.position.step, config.steps, deadline)
        longest = 0.0
        while self.position.step < config.steps:
            if deadline is not None and longest and time.monotonic() + longest > deadline:
                reporter.note(f"max_minutes reached: stopped after step {self.position.step} of {config.steps}")
                break
            row = self._grpo_step(self.position.step, reporter)
            longest = max(longest, row["seconds"])
            reporter.step(row)
            if self.position.step % config.checkpoint_every == 0 and self.position.step < config.steps:
                self.save()

    def save(self) -> Path:
        """A checkpoint of the current position, unless there is one."""
        if self._saved is not None and self._saved[0] == self.position:
            return self._saved[1]
        done = self.position.phase == "warm" and self.position.step == self.config.warm_start.steps
        name = "warm" if done else f"{'warm' if self.position.phase == 'warm' else 'step'}_{self.position.step:04d}"
        adapter = write_adapter(self.policy.model, self.optimizer.masters, self.config.model)
        config = asdict(self.config)
        path = self.folder.save(name, self.position, config, adapter, self.optimizer.state())
        self._saved = (self.position, path)
        return path

    def _lr(self) -> float:
        """Learning rate of the step that comes next."""
        return self.config.warm_start.lr_of(self.position.step) if self.position.phase == "warm" else self.config.lr

    def _warm_step(self, step: int) -> dict[str, Any]:
        began = time.monotonic()
        config = self.config
        numbers = range(step * config.warm_start.episodes, (step + 1) * config.warm_start.episodes)
        examples = [example for number in numbers for example in self.tasks.task(number).examples()]
        prompts = [self.policy.prompt_ids(example.prompt) for example in examples]
        replies = [self.policy.reply_ids(example.reply) for example in examples]
        count = sum(map(len, replies))
        loss = self._backward(prompts, replies, lambda rows, logprobs: -torch.cat(logprobs).sum() / count, 1.0)
        with uninterrupted():
            lr = self._lr()
            self.optimizer.set_lr(lr)
            norm = self.optimizer.apply(config.max_grad_norm)
            seconds = time.monotonic() - began
            tokens = count + sum(map(len, prompts))
            row = {
                "step": step + 1,
                "loss": loss,
                "lr": lr,
                "grad_norm": norm,
                "examples": len(examples),
                "reply_tokens": count,
                "tokens": tokens,
                "tokens_per_second": tokens / seconds,
                "seconds": seconds,
            }
            self._finish_step("warm", "warm.jsonl", row)
        return row

    def _grpo_step(self, step: int, reporter: Reporter) -> dict[str, Any]:
        config, began = self.config, time.monotonic()
        reporter.doing("playing")
        stage, groups = self._play_groups(step)
        sampled_at = time.monotonic()
        by_group = [self._advantages(group) for group in groups]
        samples = [
            [Sample(t.prompt_ids, t.token_ids, t.logprobs, a) for t, a in zip(one.turns, row, strict=True)]
            for group, rows in zip(groups, by_group, strict=True)
            if rows is not None
            for one, row in zip(group, rows, strict=True)
            if one.result.reward is not None
        ]
        reporter.doing(f"learning from {len(samples)} rollouts")
        # several updates must not be torn apart by Ctrl-C: all of them count as done with the step's record, or none
        with uninterrupted() if config.updates > 1 else nullcontext():
            learned = self._learn(samples)
            row = {
                "step": step + 1,
                "stage": stage,
                **rollout_metrics([one for group in groups for one in group]),
                "groups": len(groups),
                "varied_groups": sum(rows is not None for rows in by_group),
                **learned,
            }
            with uninterrupted():
                if samples:
                    row["grad_norm"] = self.optimizer.apply(config.max_grad_norm)
                seconds = time.monotonic() - began
                row |= {"sample_seconds": sampled_at - began, "seconds": seconds}
                row["tokens_per_second"] = (row["tokens"] + row["prompt_tokens"]) / seconds
                records = [
                    {"step": step + 1, "group": number} | one.to_record()
                    for number, group in enumerate(groups)
                    for one in group
                ]
                self.folder.append("rollouts.jsonl", records)
                self._finish_step("grpo", "metrics.jsonl", row)
        return row

    def _play_groups(self, step: int) -> tuple[int, list[list[Played]]]:
        """The curriculum's stage and this step's groups: one round of `groups` tasks, and with `varied_groups` further
        rounds until enough of them vary. Raises `NothingScored`."""
        config = self.config
        presets = config.curriculum.presets
        stage = curriculum.stage(config.curriculum, self.folder.rows("metrics.jsonl")) if presets else 0
        # every step has its own range of tasks, whether it plays all of them or not: a resumed run needs no counter
        first = config.warm_start.steps * config.warm_start.episodes
        first += step * config.groups * (config.max_rounds if config.varied_groups else 1)
        groups: list[list[Played]] = []
        for number in range(config.max_rounds if config.varied_groups else 1):
            numbers = range(first + number * config.groups, first + (number + 1) * config.groups)
            tasks = [self.tasks.task(n, presets[stage] if presets else None) for n in numbers]
            played = play(
                self.policy,
                [task.start() for task in tasks for _ in range(config.group_size)],
                temperature=config.temperature,
                seed=f"{config.seed}:{step}:{number}" if number else f"{config.seed}:{step}",
            )
            fresh = [played[g * config.group_size : (g + 1) * config.group_size] for g in range(config.groups)]
            _refuse_unscored(fresh, step + 1)
            groups += fresh
            if sum(self._advantages(group) is not None for group in groups) >= config.varied_groups:
                break
        return stage, groups

    def _advantages(self, group: Sequence[Played]) -> list[list[float]] | None:
        return group_advantages(group, self.config.normalisation, self.config.turn_weight)

    def _learn(self, rollouts: Sequence[Sequence[Sample]]) -> dict[str, Any]:
        """Collect the gradient of one batch; with several `updates`, apply all but the last share's."""
        config = self.config
        shares = [[s for one in rollouts[k :: config.updates] for s in one] for k in range(config.updates)]
        shares = [share for share in shares if share]
        learned: list[Learned] = []
        for share in shares:
            if learned:
                self.optimizer.apply(config.max_grad_norm)
            learned.append(self._learn_share(share, fresh=not learned))
        row: dict[str, Any] = {
            "trained_tokens": sum(len(sample.token_ids) for share in shares for sample in share),
            "loss": sum(one.loss for one in learned) / len(learned) if learned else None,
            "max_logprob_difference": learned[0].largest if learned else None,
            "grad_norm": None,
        }
        if config.kl_weight:
            row["kl"] = sum(one.kl for one in learned) / len(learned) if learned else None
        return row

    def _learn_share(self, share: Sequence[Sample], *, fresh: bool) -> Learned:
        """Collect one update's gradient; the rollouts are `fresh` when they were sampled with these very weights."""
        config = self.config
        prompts, replies = [s.prompt_ids for s in share], [s.token_ids for s in share]
        count = sum(map(len, replies))
        base = self._base_logprobs(prompts, replies) if config.kl_weight else []
        largest = kl = 0.0

        def loss_of(rows: list[int], logprobs: list[torch.Tensor]) -> torch.Tensor:
            nonlocal largest, kl
            now = torch.cat(logprobs)
            drawn = now.new_tensor([p for row in rows for p in share[row].logprobs])
            weight = now.new_tensor([share[row].advantage for row in rows for _ in share[row].token_ids])
            largest = max(largest, float((now.detach() - drawn).abs().max()))
            loss = policy_loss(now, weight, None if fresh else drawn, config.clip) / count
            if config.kl_weight:
                divergence = kl_to_base(now, torch.cat([base[row] for row in rows])) / count
                kl += float(divergence.detach())
                loss = loss + config.kl_weight * divergence
            return loss

        return Learned(self._backward(prompts, replies, loss_of, config.temperature), largest, kl)

    def _base_logprobs(self, prompts: Sequence[Ids], replies: Sequence[Ids]) -> list[torch.Tensor]:
        """Log-probabilities of the replies under the base model: the same weights without the adapter."""
        with self.policy.model.disable_adapter():
            scored = self.policy.score(prompts, replies, temperature=self.config.temperature)
        return [tensor.clone() for tensor in scored]  # inference tensors may not enter a graph

    def _backward(
        self,
        prompts: Sequence[Ids],
        replies: Sequence[Ids],
        loss_of: Callable[[list[int], list[torch.Tensor]], torch.Tensor],
        temperature: float,
    ) -> float:
        """Collect the gradients of the summed losses of all micro-batches. Returns the sum."""
        total = 0.0
        for rows in self.policy.scoring_batches(prompts, replies):
            some = [prompts[row] for row in rows], [replies[row] for row in rows]
            loss = loss_of(rows, self.policy.logprobs(*some, temperature=temperature))
            loss.backward()
            self.optimizer.collect()
            total += float(loss.detach())
        return total

    def _finish_step(self, phase: Phase, log: str, row: dict[str, Any]) -> None:
        self.folder.append(log, [row])
        self.position = Position(phase, row["step"])


def _refuse_unscored(groups: Sequence[Sequence[Played]], step: int) -> None:
    """Raise `NothingScored` when a reader failed and left no group with two scores to compare: hours of such steps
    would end as a run that learnt nothing. A prompt over the window is no failure; the next step's may fit."""
    failed = [one.result.record["unscored_reason"] for group in groups for one in group if one.result.reward is None]
    failed = [reason for reason in failed if reason != OVER_WINDOW]
    comparable = any(sum(one.result.reward is not None for one in group) > 1 for group in groups)
    if failed and not comparable:
        raise NothingScored(
            f"step {step}: {len(failed)} of {sum(map(len, groups))} rollouts could not be scored, and no group has two "
            f"that were: {failed[0]}. What was trained before is saved; mend that, and go on with --resume"
        )


def rollout_metrics(played: Sequence[Played]) -> dict[str, Any]:
    """Reward, verdicts and lengths of a step's rollouts; `entropy` is estimated by minus the mean log-probability."""
    scored = [one.result.reward for one in played if one.result.reward is not None]
    turns = [turn for one in played for turn in one.turns]
    logprobs = [p for turn in turns for p in turn.logprobs]
    return {
        "reward": sum(scored) / len(scored) if scored else None,
        "rollouts": len(played),
        "verdicts": dict(Counter(one.result.verdict for one in played if one.result.verdict is not None)),
        **total_counts([one.result for one in played]),
        "unfinished": sum(not turn.finished for turn in turns),
        "turns": len(turns),
        "tokens": len(logprobs),
        "prompt_tokens": sum(len(turn.prompt_ids) for turn in turns),
        "entropy": -sum(logprobs) / len(logprobs) if logprobs else None,
    }


def _same_run(config: EngineConfig, checkpoint: Checkpoint) -> None:
    """Refuse to continue a run with settings that would make it another one."""
    now = flattened(asdict(config))
    # a setting that is newer than the checkpoint had its default's effect then
    known = flattened(asdict(type(config)())) | flattened(checkpoint.config)
    for key, before in known.items():
        if key not in MAY_CHANGE and now.get(key) != before:
            raise UserError(f"cannot resume: {key} was {before}, now {now.get(key)}; give another --output")
