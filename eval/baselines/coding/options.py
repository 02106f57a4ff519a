"""The coding agents' options of `python -m eval lme-v2`."""

from __future__ import annotations

import argparse
from typing import get_args

from eval.baselines.coding.engines import AgentConfig, EngineName
from eval.baselines.coding.scripted import SCRIPTED
from rewards.errors import UserError


def add_agent_options(top: argparse.ArgumentParser) -> None:
    """--agent and what goes with it."""
    add = top.add_argument_group("coding agents: codex, agentrunbook_c and its ablations").add_argument
    add("--agent", help=f"the agent's model, or {SCRIPTED} (rules, no model)")
    add("--agent-base-url", help="its OpenAI-compatible endpoint; called from outside the agent's sandbox")
    add("--agent-engine", choices=get_args(EngineName), default="tools", help="own tool loop, or the codex program")
    add("--agent-api-key-var", default="OPENAI_API_KEY")
    add("--agent-effort", help="reasoning effort, as the model names it (published: xhigh)")
    add("--agent-seconds", type=float, default=1800.0, help="for one attempt (published: 1800)")
    add("--agent-attempts", type=int, default=3, help="at most (published: 3)")
    add("--agent-command-seconds", type=float, default=30.0, help="for one command of the tool loop")
    add("--agent-turns", type=int, default=30, help="replies of the model in one attempt of the tool loop")


def agent_from(options: argparse.Namespace) -> AgentConfig | None:
    """The agent, or None when none is named. Raises `UserError`."""
    for name in ("agent_seconds", "agent_attempts", "agent_command_seconds", "agent_turns"):
        value = getattr(options, name)
        if not value > 0:
            raise UserError(f"--{name.replace('_', '-')} is {value}: give a positive number")
    if options.agent is None:
        if options.agent_base_url:
            raise UserError("--agent-base-url goes with a model: name it with --agent")
        return None
    if options.agent != SCRIPTED and not options.agent_base_url:
        raise UserError(f"agent '{options.agent}' needs --agent-base-url; without a model take --agent {SCRIPTED}")
    return AgentConfig(
        model=options.agent,
        base_url=options.agent_base_url,
        engine=options.agent_engine,
        api_key_var=options.agent_api_key_var,
        effort=options.agent_effort,
        seconds=options.agent_seconds,
        attempts=options.agent_attempts,
        turns=options.agent_turns,
        command_seconds=options.agent_command_seconds,
    )
