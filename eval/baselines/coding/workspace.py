"""Trajectories as plain files: written once for every content, linked into one workspace a haystack.

    <store>/runs/<fingerprint>/trajectory.json, screenshots/, card.json
    <store>/workspaces/<key>/trajectories/<id>/..., TRAJECTORY_SUMMARY_CONCISE.md, TRAJECTORY_SUMMARY_FULL.md,
                             index.json, haystack_manifest.json, scripts/inspect_trajectory.py

All is made while trajectories are inserted; a workspace that is there already is taken as it is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from lme_v2_env.memory.slices import annotated_actions
from lme_v2_env.memory.store import signature
from lme_v2_env.trajectory import Trajectory
from rewards.errors import UserError

CONCISE, FULL = "TRAJECTORY_SUMMARY_CONCISE.md", "TRAJECTORY_SUMMARY_FULL.md"
INDEX, HAYSTACK = "index.json", "haystack_manifest.json"
HELPER = "inspect_trajectory.py"

LAYOUT = 1
"""Raise it when the files' content changes."""

SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""An id becomes the name of a folder, and trajectories are anybody's text."""


@dataclass(frozen=True, slots=True)
class Card:
    """What the manifests say of a run."""

    id: str
    goal: str
    outcome: str
    states: int
    start_url: str
    actions: tuple[str, ...]

    @property
    def order(self) -> tuple[str, str, str]:
        return self.start_url.lower(), self.goal.lower(), self.id.lower()


class RunStore:
    """Runs on disk by content. Threads and processes may share one."""

    def __init__(self, folder: Path, picture: Callable[[str], Path] | None) -> None:
        self.folder, self.picture = folder, picture
        self.written = 0
        """Runs written by this object."""

    def put(self, trajectory: Trajectory) -> tuple[Path, Card]:
        """The run's folder, written first when nobody has. Raises `UserError`."""
        if not SAFE_ID.fullmatch(trajectory.id):
            raise UserError(f"trajectory id '{trajectory.id[:60]}' cannot name a folder: letters, digits, . _ - only")
        kind = "pictures" if self.picture else "text"
        place = self.folder / "runs" / f"{trajectory.fingerprint[:32]}-{kind}-{LAYOUT}"
        if not (place / "card.json").is_file():
            self._write(trajectory, place)
            self.written += 1
        row = json.loads((place / "card.json").read_text("utf-8"))
        return place, Card(**(row | {"actions": tuple(row["actions"])}))

    def _write(self, trajectory: Trajectory, place: Path) -> None:
        partial = _partial(place)
        names = {}
        for state in trajectory.states if self.picture else ():
            assert self.picture is not None
            source = self.picture(state.screenshot or f"state {state.index}")
            names[state.index] = f"screenshots/{state.index:04d}{source.suffix}"
            _folder(partial / "screenshots")
            _link(source, partial / names[state.index])
        _text(partial / "trajectory.json", json.dumps(simplified(trajectory, names), ensure_ascii=False, indent=1))
        card = {
            "id": trajectory.id,
            "goal": trajectory.goal,
            "outcome": trajectory.outcome,
            "states": len(trajectory.states),
            "start_url": trajectory.start_url,
            "actions": annotated_actions(trajectory.states),
        }
        _text(partial / "card.json", json.dumps(card, ensure_ascii=False))
        _publish(partial, place)


def simplified(trajectory: Trajectory, pictures: Mapping[int, str]) -> dict[str, Any]:
    """The published file of a run: no domain, no environment; `thoughts` and `text` are its names."""
    states = [
        {
            "state_index": state.index,
            "step": state.step,
            "url": state.url,
            "action": state.action,
            "thoughts": state.thought,
            "text": state.tree,
            "screenshot": pictures.get(state.index),
        }
        for state in trajectory.states
    ]
    return {
        "id": trajectory.id,
        "goal": trajectory.goal,
        "outcome": trajectory.outcome,
        "start_url": trajectory.start_url,
        "actions": [state.action for state in trajectory.states if state.action],
        "states": states,
    }


def workspace(store: Path, runs: Sequence[tuple[Path, Card]]) -> Path:
    """The folder for these runs in this order, made first when nobody has."""
    key = signature({"runs": [place.name for place, _ in runs], "ids": [card.id for _, card in runs], "layout": LAYOUT})
    place = store / "workspaces" / key
    if (place / INDEX).is_file():
        return place
    partial = _partial(place)
    for source, card in runs:
        target = partial / "trajectories" / card.id
        for file in sorted(source.rglob("*")):
            if file.is_file() and file.name != "card.json":
                _folder((target / file.relative_to(source)).parent)
                _link(file, target / file.relative_to(source))
    cards = [card for _, card in runs]
    _text(partial / CONCISE, concise(cards))
    _text(partial / FULL, full(cards))
    _folder(partial / "scripts")
    _text(partial / "scripts" / HELPER, files("eval.baselines.coding").joinpath(HELPER).read_text("utf-8"))
    ids = [card.id for card in cards]
    manifest = {"id": key, "variant": None, "trajectory_ids": ids, "metadata": {}}
    _text(partial / HAYSTACK, json.dumps(manifest, indent=1))
    index = {"memory_type": "codex", "trajectory_count": len(ids), "inserted_trajectory_ids": ids}
    _text(partial / INDEX, json.dumps(index, indent=1))
    _publish(partial, place)
    return place


def concise(cards: Sequence[Card]) -> str:
    """A table with a line a run."""
    lines = ["| # | id | goal | outcome | states | start |", "|---|---|---|---|---|---|"]
    for number, card in enumerate(sorted(cards, key=lambda card: card.order), 1):
        cells = (number, card.id, card.goal, card.outcome, card.states, card.start_url)
        lines.append("| " + " | ".join(_cell(str(cell)) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def full(cards: Sequence[Card]) -> str:
    """A section a run: what it was to do, every action with the element that it touched, how it ended."""
    return "\n".join(map(_section, sorted(cards, key=lambda card: card.order)))


def _section(card: Card) -> str:
    # the action with number n leads into state n; empty ones keep their number
    actions = [f"{number}. {_line(action) or '(none)'}" for number, action in enumerate(card.actions, 1)]
    head = f"## {card.id}\nstart: {_line(card.start_url)}\ngoal: {_line(card.goal)}\nstates: 0 to {card.states - 1}\n"
    return f"{head}actions (number n led into state n):\n" + "\n".join([*actions, f"outcome: {card.outcome}"]) + "\n"


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _line(text: str) -> str:
    return " ".join(text.split())


def _partial(place: Path) -> Path:
    partial = place.with_name(f".{place.name}.{os.getpid()}.{threading.get_ident()}")
    shutil.rmtree(partial, ignore_errors=True)
    _folder(partial)
    return partial


def _folder(folder: Path) -> None:
    """Open to everybody, whatever the umask: the sandbox's user has no other rights to it."""
    if not folder.is_dir():
        _folder(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def _text(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(0o644)


def _link(source: Path, target: Path) -> None:
    """The same file under another name, or a copy: on another disk, or when others may not read it."""
    if source.stat().st_mode & stat.S_IROTH and not source.is_symlink():
        try:
            os.link(source, target)
            return
        except OSError:
            pass
    shutil.copyfile(source, target)
    target.chmod(0o644)


def _publish(partial: Path, place: Path) -> None:
    try:
        os.rename(partial, place)
    except OSError:  # another writer was first
        shutil.rmtree(partial)
