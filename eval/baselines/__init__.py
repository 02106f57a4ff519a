"""Memory systems, one file a family. A system makes a fresh memory for every haystack."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lme_v2_env.chat import Endpoint
from lme_v2_env.dataset import Dataset
from lme_v2_env.memory.api import Memory, RetrievalConfig
from lme_v2_env.memory.library import Library
from lme_v2_env.trajectory import Question
from rewards.errors import refuse_unknown

if TYPE_CHECKING:
    from eval.baselines.coding.engines import AgentConfig
    from eval.baselines.policy import PolicyOptions

SYSTEMS = {
    "no_retrieval": "eval.baselines.no_retrieval",
    "rag_slice": "eval.baselines.rag",
    "rag_slice_notes": "eval.baselines.rag",
    "agentrunbook_r": "eval.baselines.agentrunbook_r",
    "agentrunbook_r_no_slices": "eval.baselines.agentrunbook_r",
    "agentrunbook_r_no_events": "eval.baselines.agentrunbook_r",
    "agentrunbook_r_no_notes": "eval.baselines.agentrunbook_r",
    "agentrunbook_r_only_slices": "eval.baselines.agentrunbook_r",
    "agentrunbook_r_only_events": "eval.baselines.agentrunbook_r",
    "agentrunbook_r_only_notes": "eval.baselines.agentrunbook_r",
    "codex": "eval.baselines.coding_agent",
    "agentrunbook_c": "eval.baselines.coding_agent",
    "agentrunbook_c_no_instruction": "eval.baselines.coding_agent",
    "agentrunbook_c_no_manifests": "eval.baselines.coding_agent",
    "agentrunbook_c_no_helper": "eval.baselines.coding_agent",
    "search": "eval.baselines.policy",
    "policy": "eval.baselines.policy",
    "oracle_trajectories": "eval.baselines.oracle",
    "oracle_slices_notes": "eval.baselines.oracle",
}
"""Name -> module with `build(name, kit) -> System`."""


OWN = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
"""`package.module:Class`, a system that is not in the list."""


@dataclass(frozen=True)
class Kit:
    """What systems are built from. `library` makes an empty one over the shared store."""

    dataset: Dataset
    library: Callable[[], Library]
    retrieval: RetrievalConfig
    pictures: bool
    """Whether memories may return screenshots."""
    controller: Endpoint | None = None
    """The model that writes AgentRunbook-R's queries; rules do without one."""
    parity: bool = False
    """Do as the published code does where it differs from the paper."""
    agent: AgentConfig | None = None
    """The model behind the coding agents, which need one."""
    files: Path = Path("files")
    """Where coding agents' files of trajectories are kept between runs."""
    policy: PolicyOptions | None = None
    """The model of the system `policy`, and how policies act."""

    def picture(self) -> Callable[[str], Path] | None:
        return self.dataset.trajectories.screenshot if self.pictures else None


AGENTS = tuple(name for name, module in SYSTEMS.items() if module == "eval.baselines.coding_agent")
"""Systems that need a model for their agent."""


class System(Protocol):
    """A named way to answer. `settings` identify it in a run's record."""

    name: str
    queries: bool
    """False when it makes no query: then it has no latency and stays out of LAFS."""
    inserts: bool
    """False when it has no use for trajectories: then they are not read."""

    @property
    def settings(self) -> dict[str, Any]: ...

    def covers(self, question: Question) -> bool:
        """Whether the system can be asked this; oracles need known evidence."""
        ...

    def memory(self) -> Memory: ...


def build(name: str, kit: Kit) -> System:
    """The system of that name. Raises `UserError`."""
    if OWN.fullmatch(name):
        return import_module("eval.baselines.own").build(name, kit)
    refuse_unknown([name], SYSTEMS, "system")
    return import_module(SYSTEMS[name]).build(name, kit)
