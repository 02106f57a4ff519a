"""Codex and AgentRunbook-C: a coding agent searches the runs as plain files and hands over text and spans of states.

The systems differ in what the agent is given (`Scaffold`), the engines in what drives it. An attempt that ends without
a valid file is made again, at most `attempts` times; then the context is empty and the row says why. A model's endpoint
that fails is not the agent's fault: it makes the row unscored.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eval.baselines import Kit
from eval.baselines.coding import context
from eval.baselines.coding.accounting import Command, summary
from eval.baselines.coding.engine import Effort, Engine
from eval.baselines.coding.engines import AgentConfig, engine_for
from eval.baselines.coding.instruct import PLAIN, Scaffold, instruction
from eval.baselines.coding.output import BadOutput, Span, existing, parse
from eval.baselines.coding.sandbox import HOME, Mount, require
from eval.baselines.coding.workspace import CONCISE, FULL, HAYSTACK, INDEX, Card, RunStore, workspace
from lme_v2_env.chat import EndpointError
from lme_v2_env.memory.api import Gathered
from lme_v2_env.trajectory import Question, Trajectory
from rewards.errors import UserError

WHOLE = Scaffold()

SCAFFOLDS: Mapping[str, Scaffold] = {
    "codex": PLAIN,
    "agentrunbook_c": WHOLE,
    "agentrunbook_c_no_instruction": replace(WHOLE, workflow=False),
    "agentrunbook_c_no_manifests": replace(WHOLE, manifests=False),
    "agentrunbook_c_no_helper": replace(WHOLE, helper=False),
}
"""The two systems, and the paper's three ablations of the second."""

PICTURES = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp"}
"""First bytes of a picture and the name that its file gets."""

LONGEST_TEXT = 500
"""Characters of a command, or of the name in a span, that a row keeps."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt, judged: `markdown` and `spans` are its result when `fault` is empty."""

    effort: Effort
    fault: str
    seconds: float
    markdown: str = ""
    spans: tuple[Span, ...] = ()


class FilesMemory:
    """Runs as files, searched by an agent."""

    def __init__(
        self, store: Path, kit: Kit, scaffold: Scaffold, engine: Engine, agent: AgentConfig, parity: bool
    ) -> None:
        self.runs = RunStore(store, kit.picture())
        self.store, self.scaffold, self.engine, self.agent, self.parity = store, scaffold, engine, agent, parity
        self._inserted: list[tuple[Path, Card]] = []
        self._states: dict[str, int] = {}
        self._workspace: Path | None = None

    def insert(self, trajectory: Trajectory) -> None:
        if trajectory.id in self._states:
            raise UserError(f"trajectory '{trajectory.id}' was inserted before")
        self._inserted.append(self.runs.put(trajectory))
        self._states[trajectory.id] = len(trajectory.states)
        self._workspace = None

    def prepare(self) -> Path:
        """The workspace of all that is inserted; made here, so that no query pays for it."""
        if self._workspace is None:
            self._workspace = workspace(self.store, self._inserted)
        return self._workspace

    def query(self, question: str, image: bytes | None = None) -> Gathered:
        place = self.prepare()
        tried: list[Tried] = []
        with tempfile.TemporaryDirectory(prefix="question-") as folder:
            mounts = self._mounts(place, Path(folder), question, image)
            while len(tried) < self.agent.attempts and not (tried and not tried[-1].fault):
                tried.append(self._try(mounts, image))
        last = tried[-1]
        if last.fault and last.effort.failure:
            raise EndpointError(f"the agent's model: {last.effort.failure}")
        kept, dropped = existing(last.spans, self._states)
        report = _report(tried, dropped)
        return Gathered(context.items(last.markdown, kept, place / "trajectories"), report)

    def _try(self, mounts: Sequence[Mount], image: bytes | None) -> Tried:
        started = time.perf_counter()
        effort = self.engine.attempt(mounts, self.agent.seconds, image)
        seconds = time.perf_counter() - started
        # a valid file counts however the attempt ended, as published
        if effort.output is None:
            return Tried(effort, f"output file: {effort.missing}; ended by: {effort.ended}", seconds)
        try:
            output = parse(effort.output, parity=self.parity)
        except BadOutput as error:
            return Tried(effort, f"output file: {error}; ended by: {effort.ended}", seconds)
        return Tried(effort, "", seconds, output.markdown, output.spans)

    def _mounts(self, place: Path, folder: Path, question: str, image: bytes | None) -> list[Mount]:
        """What the agent is given. It sees the names inside only, none of which says which question this is."""
        os.chmod(folder, 0o755)
        asked: dict[str, Any] | str = question
        mounts = []
        if image is not None:
            kind = next((kind for start, kind in PICTURES.items() if image.startswith(start)), ".png")
            name = f"question_image{kind}"
            mounts.append(_given(folder, name, image))
            asked = {"text": question, "image": name}
        text = json.dumps({"question": asked}, ensure_ascii=False, indent=1)
        mounts.append(_given(folder, "question.json", text.encode("utf-8", "replace")))
        mounts.append(_given(folder, "INSTRUCTION.md", instruction(self.scaffold).encode()))
        names = ["trajectories"]
        names += [CONCISE, FULL] if self.scaffold.manifests else []
        names += ["scripts"] if self.scaffold.helper else []
        names += [INDEX, HAYSTACK] if self.scaffold.index else []
        return mounts + [Mount(place / name, f"{HOME}/{name}") for name in names]


def _given(folder: Path, name: str, data: bytes) -> Mount:
    file = folder / name
    file.write_bytes(data)
    file.chmod(0o644)
    return Mount(file, f"{HOME}/{name}")


def _report(tried: Sequence[Tried], dropped: Sequence[tuple[Span, str]]) -> dict[str, Any]:
    """For the row: what was tried, what came of it, what the commands were for, what was stopped."""
    last = tried[-1]
    return {
        "empty_because": last.fault or None,
        "attempts": [
            {
                "fault": attempt.fault or None,
                "ended": attempt.effort.ended,
                "seconds": round(attempt.seconds, 3),
                "turns": attempt.effort.turns,
                "usage": attempt.effort.usage,
                "commands": [_kept(command) for command in attempt.effort.commands],
            }
            for attempt in tried
        ],
        "spans": [[span.trajectory_id[:LONGEST_TEXT], span.start, span.end] for span in last.spans],
        "spans_dropped": [
            [span.trajectory_id[:LONGEST_TEXT], span.start, span.end, reason] for span, reason in dropped
        ],
        "tools": summary([attempt.effort.commands for attempt in tried]),
        "incidents": sorted({name for attempt in tried for c in attempt.effort.commands for name in c.incidents}),
    }


def _kept(command: Command) -> dict[str, Any]:
    return {
        "round": command.round,
        "kind": str(command.kind),
        "text": command.text[:LONGEST_TEXT],
        "seconds": round(command.seconds, 3),
        "incidents": list(command.incidents),
    }


class CodingAgent:
    queries = inserts = True

    def __init__(self, name: str, kit: Kit, agent: AgentConfig) -> None:
        self.name, self.kit, self.agent = name, kit, agent
        self.scaffold = SCAFFOLDS[name]
        require()
        self.engine = engine_for(agent)

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "scaffold": asdict(self.scaffold),
            "instruction": hashlib.sha256(instruction(self.scaffold).encode()).hexdigest()[:12],
            "attempts": self.agent.attempts,
            "seconds": self.agent.seconds,
            "parity": self.kit.parity,
            "pictures": self.kit.pictures,
            **self.engine.settings,
        }

    def covers(self, question: Question) -> bool:
        return True

    def memory(self) -> FilesMemory:
        folder = self.kit.files
        return FilesMemory(folder, self.kit, self.scaffold, self.engine, self.agent, self.kit.parity)


def build(name: str, kit: Kit) -> CodingAgent:
    if kit.agent is None:
        raise UserError(f"system '{name}' needs an agent: --agent MODEL and --agent-base-url, or --agent scripted")
    return CodingAgent(name, kit, kit.agent)
