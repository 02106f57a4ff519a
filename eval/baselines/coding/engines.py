"""Which engine drives the agent, from the command's options."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from eval.baselines.coding.engine import Engine
from eval.baselines.coding.engine_tools import LoopConfig, ToolLoop
from eval.baselines.coding.scripted import SCRIPTED, serve
from lme_v2_env.chat import Endpoint

EngineName = Literal["tools", "codex"]


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The agent's model and how long it may work. Published: gpt-5.4-mini in Codex, xhigh, 1,800 s, 3 attempts."""

    model: str
    base_url: str | None = None
    engine: EngineName = "tools"
    api_key_var: str = "OPENAI_API_KEY"
    effort: str | None = None
    """Reasoning effort, sent when given."""
    seconds: float = 1800.0
    """Of one attempt."""
    attempts: int = 3
    turns: int = 30
    command_seconds: float = 30.0
    sampling: dict[str, Any] = field(default_factory=dict)


def engine_for(agent: AgentConfig) -> Engine:
    """Raises `UserError` when it cannot be had here."""
    if agent.model == SCRIPTED and agent.base_url is None:
        agent = replace(agent, base_url=serve())
    assert agent.base_url is not None
    if agent.engine == "codex":
        from eval.baselines.coding.engine_codex import CodexEngine

        return CodexEngine.found(agent.model, agent.base_url, agent.api_key_var, agent.effort)
    sampling = {"max_tokens": 8192} | dict(agent.sampling)
    if agent.effort:
        sampling["reasoning_effort"] = agent.effort
    endpoint = Endpoint(agent.base_url, agent.model, agent.api_key_var, timeout=600.0, retries=3)
    return ToolLoop(endpoint, LoopConfig(agent.turns, agent.command_seconds, sampling=sampling))
