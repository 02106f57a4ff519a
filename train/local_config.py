"""The local engine's configuration: a file in configs/ or the user's own, and `--a.b c` overrides.

`EngineConfig` is what every run has; `LocalConfig` adds Supersede's part, train/lme_v2_config.py that of LME-V2.

Importing this loads no torch, so that `--help` and `--dry-run` answer at once.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from rewards.errors import UserError, refuse_unknown
from rewards.options import build
from supersede_env.data import DataConfig
from supersede_env.protocol import ProtocolConfig
from train.overrides import apply, load_toml, nearest, parse

ENVIRONMENTS = {
    "supersede": ("train.local_config", "LocalConfig", "supersede_local.toml"),
    "lme-v2": ("train.lme_v2_config", "LmeV2Config", "lme_v2_local.toml"),
}
"""Environment -> module and name of its configuration, and its file in configs/."""


def _positive(section: object, *names: str) -> None:
    for name in names:
        value = getattr(section, name)
        if not 0 < value < math.inf:  # not a number is neither
            raise UserError(f"{name} is {value}: give a positive number")


def _not_negative(section: object, *names: str) -> None:
    for name in names:
        value = getattr(section, name)
        if not 0 <= value < math.inf:
            raise UserError(f"{name} is {value}: give 0 or more")


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """The adapter that is trained.

    Attributes:
        r: rank.
        alpha: the adapter's output is scaled by alpha / r.
        targets: names of the linear layers that get one; by default all seven projections of a Llama-like block.
    """

    r: int = 16
    alpha: int = 32
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

    def __post_init__(self) -> None:
        _positive(self, "r", "alpha")
        if not self.targets:
            raise UserError("lora.targets is empty: name at least one layer")


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Supervised steps on a teacher's turns (Supersede: oracle notes and answers), before reinforcement learning.

    Attributes:
        steps: how many; 0 leaves the warm start out.
        episodes: tasks a step; each gives an example a turn.
        lr: learning rate (AdamW) of the first step.
        schedule: of the learning rate: `constant`, or `linear` from `lr` down to `lr / steps` in the last step, with
            which a warm start of as many steps learns less (docs/results/README.md).
    """

    steps: int = 0
    episodes: int = 2
    lr: float = 5e-4
    schedule: Literal["constant", "linear"] = "constant"

    def __post_init__(self) -> None:
        _not_negative(self, "steps")
        _positive(self, "episodes", "lr")

    def lr_of(self, step: int) -> float:
        """The learning rate of step `step`, counted from 0."""
        return self.lr if self.schedule == "constant" else self.lr * (self.steps - step) / self.steps


@dataclass(frozen=True, slots=True)
class Curriculum:
    """Presets from easy to hard, for GRPO; train/curriculum.py says when the stage changes.

    Attributes:
        presets: their names; empty plays `data.preset` throughout. The warm start always takes `data.preset`.
        advance_at: share of correct rollouts from which the next preset begins.
        min_varied: share of groups with variance below which the stage changes too: groups that do not vary teach
            nothing.
        window: steps that both shares are taken over.
    """

    presets: tuple[str, ...] = ()
    advance_at: float = 0.6
    min_varied: float = 0.25
    window: int = 3

    def __post_init__(self) -> None:
        _positive(self, "advance_at", "window")
        _not_negative(self, "min_varied")


@dataclass(frozen=True, slots=True)
class Wandb:
    """Weights & Biases.

    Attributes:
        project: where to log; empty logs nowhere.
        mode: `offline` writes files only, for a later `wandb sync`.
    """

    project: str = ""
    mode: Literal["online", "offline"] = "online"


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What every run has, whatever the environment.

    Attributes:
        env: the environment.
        model: `smollm2-135m` (shipped by a package), a folder, or a hub name.
        output: the run's folder: metrics, rollouts, checkpoints, the final adapter.
        resume: continue the run in `output` from its last checkpoint.
        seed: of the adapter's initial weights and of sampling; episodes are chosen by `data`.
        steps: GRPO steps.
        max_minutes: end GRPO early, with a checkpoint, when the next step would end later than this many minutes
            after the start; `None` never does.
        groups: tasks (episodes, questions) a step.
        group_size: rollouts of each task; their mean reward is the baseline.
        varied_groups: play further `groups` tasks until this many groups varied (dynamic sampling, arXiv
            2503.14476); 0 never does.
        max_rounds: at most this many times `groups` tasks a step, when `varied_groups` asks for more.
        normalisation: of advantages: `none` (reward minus group mean, as prime-rl), `std` (GRPO), `mean` (MaxRL; for
            rewards of 0 and 1, so without the parts that add to or take from correctness).
        turn_weight: weight of each turn's own credit beside the rollout's advantage (Supersede: "is the current value
            in the notes after this session", of turns that are told it or had it; LME-V2: "is what was kept
            evidence"); needs generated data. 0 leaves it out.
        kl_weight: weight of the KL divergence to the base model, added to the loss a token; 0 leaves it out and saves
            the base model's forward pass.
        temperature: of sampling.
        lr: learning rate of GRPO (AdamW, constant).
        weight_decay: AdamW's.
        max_grad_norm: the gradient is scaled down to this norm.
        updates: optimiser steps on each step's rollouts, each on its share of them; from the second on the
            importance ratio is clipped.
        clip: half width of the clipped ratio; of no effect with one update.
        checkpoint_every: GRPO and warm-start steps between checkpoints; the last step always makes one.
        micro_tokens: most tokens, with padding, in one forward and backward pass; `None` takes 2048 on a CPU and
            16384 on a GPU.
        device: `auto`, `cpu`, `cuda`, `cuda:1`...
        dtype: of the weights: `auto`, `bf16` or `fp32`. The adapter's master weights are fp32 always.
        curriculum: presets from easy to hard.
        lora: the adapter.
        warm_start: supervised steps first.
        wandb: logging to Weights & Biases.
    """

    env: str = "supersede"
    model: str = "smollm2-135m"
    output: str = "runs/supersede_local"
    resume: bool = False
    seed: int = 0
    steps: int = 100
    max_minutes: float | None = None
    groups: int = 4
    group_size: int = 8
    temperature: float = 1.0
    varied_groups: int = 0
    max_rounds: int = 3
    normalisation: Literal["none", "std", "mean"] = "none"
    turn_weight: float = 0.0
    kl_weight: float = 0.0
    lr: float = 2e-4
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    updates: int = 1
    clip: float = 0.2
    checkpoint_every: int = 10
    micro_tokens: int | None = None
    device: str = "auto"
    dtype: Literal["auto", "bf16", "fp32"] = "auto"
    curriculum: Curriculum = field(default_factory=Curriculum)
    lora: LoraSettings = field(default_factory=LoraSettings)
    warm_start: WarmStart = field(default_factory=WarmStart)
    wandb: Wandb = field(default_factory=Wandb)

    def __post_init__(self) -> None:
        _positive(self, "groups", "temperature", "lr", "max_grad_norm", "updates", "clip", "checkpoint_every")
        _positive(self, "max_rounds")
        _not_negative(self, "steps", "weight_decay", "varied_groups", "turn_weight", "kl_weight")
        if self.group_size < 2:
            raise UserError(f"group_size is {self.group_size}: a group needs 2 rollouts to differ")
        if self.micro_tokens is not None:
            _positive(self, "micro_tokens")
        if self.max_minutes is not None:
            _positive(self, "max_minutes")
        if self.varied_groups > self.groups * self.max_rounds:
            played = f"max_rounds x groups is {self.max_rounds} x {self.groups}"
            raise UserError(f"varied_groups is {self.varied_groups}: more than can be played, {played}")

    @property
    def presets(self) -> tuple[str, ...]:
        """Presets that are named anywhere, to be checked."""
        return self.curriculum.presets


@dataclass(frozen=True, slots=True)
class LocalConfig(EngineConfig):
    """A run on Supersede.

    Attributes:
        max_notes_tokens: most new tokens of a notes reply.
        max_answer_tokens: most new tokens of the answer.
        stale_weight: lambda of r_cur + lambda * r_stale; the paper's run used 0.
        length_weight: the reward loses this times the mean length of the notes as a share of the budget; 0 leaves
            length free.
        data: which episodes to train on; the warm start takes the first ones, GRPO those after them.
        protocol: how episodes are played: budget, wording, dates.
    """

    env: Literal["supersede"] = "supersede"
    max_notes_tokens: int = 48
    max_answer_tokens: int = 12
    stale_weight: float = 0.5
    length_weight: float = 0.0
    data: DataConfig = field(default_factory=lambda: DataConfig(data="train", preset="quick"))
    protocol: ProtocolConfig = field(default_factory=lambda: ProtocolConfig(budget=200, wording="plain"))

    def __post_init__(self) -> None:
        EngineConfig.__post_init__(self)  # a class with slots is made twice, which super() does not survive
        _positive(self, "max_notes_tokens", "max_answer_tokens")
        _not_negative(self, "stale_weight", "length_weight")
        if self.data.data != "train" and not self.data.data.endswith(".jsonl"):
            raise UserError(f"data.data is '{self.data.data}': training takes generated data (train) or a .jsonl file")
        if self.normalisation == "mean" and (self.stale_weight or self.length_weight):
            raise UserError("normalisation 'mean' is for rewards of 0 and 1: set stale_weight and length_weight to 0")
        if self.data.data != "train" and (self.turn_weight or self.curriculum.presets):
            raise UserError("turn_weight and curriculum.presets need generated data (data.data = 'train')")
        if self.warm_start.steps and self.data.data != "train":
            raise UserError("a warm start needs oracle notes, which generated data (data.data = 'train') has")

    @property
    def presets(self) -> tuple[str, ...]:
        return (*self.curriculum.presets, *([self.data.preset] if self.data.preset else []))


MAY_CHANGE = (
    *("resume", "output", "steps", "max_minutes", "checkpoint_every", "micro_tokens", "device"),
    *("wandb.project", "wandb.mode"),
    *("reader.base_url", "reader.judge_base_url", "reader.timeout", "reader.api_key_var", "reader.judge_api_key_var"),
)
"""What a resumed run may set anew, the place and the key of a reader among it; anything else would make it another
run."""


def load_config(path: Path | None = None, overrides: Sequence[str] = (), env: str = "supersede") -> Any:
    """Defaults, then the TOML at `path` (else the environment's file in configs/), then `--a.b c`.

    Returns the environment's configuration, an `EngineConfig`. Raises `UserError`.
    """
    module, name, default_file = ENVIRONMENTS[env]
    kind = getattr(import_module(module), name)
    file = path if path is not None else files("configs") / default_file
    merged = _merge(asdict(kind()), load_toml(file), str(path or default_file))
    config = build(kind, apply(merged, parse(overrides)))
    if config.presets:
        refuse_unknown(config.presets, _known_presets(env), "preset")
    return config


def _known_presets(env: str) -> Mapping[str, Any]:
    generator = import_module("generators.timelines" if env == "supersede" else "generators.webworld")
    return generator.PRESETS


def _merge(base: Mapping[str, Any], given: Mapping[str, Any], where: str, prefix: str = "") -> dict[str, Any]:
    """`base` with the file's values; unknown keys are refused with the nearest one."""
    merged = copy.deepcopy(dict(base))
    for key, value in given.items():
        if key not in base:
            raise UserError(f"{where}: unknown key '{prefix}{key}'{nearest(key, dict(base)).replace('--', prefix)}")
        if isinstance(base[key], dict):
            if not isinstance(value, Mapping):
                raise UserError(f"{where}: '{prefix}{key}' is a table")
            merged[key] = _merge(base[key], value, where, f"{prefix}{key}.")
        else:
            merged[key] = None if value == "None" else value  # TOML has no null; files written here say "None"
    return merged
