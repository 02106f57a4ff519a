"""The local engine's configuration for LME-V2: configs/lme_v2_local.toml. Importing this loads no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lme_v2_env.data import DataConfig
from lme_v2_env.protocol import ProtocolConfig
from lme_v2_env.reading import ReaderConfig
from lme_v2_env.scoring import RewardConfig
from rewards.errors import UserError
from train.local_config import EngineConfig


def _protocol() -> ProtocolConfig:
    return ProtocolConfig(
        wording="plain",
        max_actions=5,
        max_malformed=2,
        observation_chars=900,
        total_observation_chars=3_000,
        max_kept=4,
        spans_only=True,
    )


@dataclass(frozen=True, slots=True)
class LmeV2Config(EngineConfig):
    """A run on LME-V2.

    Attributes:
        max_reply_tokens: most new tokens of an action.
        data: which worlds to train on; their questions are taken in an order that mixes worlds.
        protocol: actions and limits.
        reader: who answers from the submission; the extractive reader needs no model.
        reward: what is added to strict correctness.
    """

    env: Literal["lme-v2"] = "lme-v2"
    output: str = "runs/lme_v2_local"
    max_reply_tokens: int = 48
    data: DataConfig = field(default_factory=lambda: DataConfig(data="train", preset="easy"))
    protocol: ProtocolConfig = field(default_factory=_protocol)
    reader: ReaderConfig = field(default_factory=ReaderConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)

    def __post_init__(self) -> None:
        EngineConfig.__post_init__(self)
        if self.max_reply_tokens < 1:
            raise UserError(f"max_reply_tokens is {self.max_reply_tokens}: give a positive number")
        if self.data.data in ("validation", "heldout"):
            raise UserError(f"data.data is '{self.data.data}': train on data 'train', or on a folder")
        if self.protocol.actions == "tools":
            raise UserError("the local engine acts by text: leave out protocol.actions = 'tools'")
        if self.curriculum.presets and not self.data.generated:
            raise UserError("curriculum.presets need generated data (data.data = 'train')")
        parts = self.reward
        if self.normalisation == "mean" and any(
            (parts.evidence_weight, parts.action_cost, parts.token_cost, parts.abstention_bonus)
        ):
            raise UserError("normalisation 'mean' is for rewards of 0 and 1: leave the options of reward at 0")

    @property
    def presets(self) -> tuple[str, ...]:
        return (*self.curriculum.presets, self.data.preset)
