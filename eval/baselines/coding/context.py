"""What the reader is shown of the agent's output: its text, then the pages of its spans."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.baselines.coding.inspect_trajectory import annotated
from eval.baselines.coding.output import Span
from lme_v2_env.memory.api import ContextItem
from lme_v2_env.memory.slices import numbered


def items(markdown: str, spans: Sequence[Span], trajectories: Path) -> list[ContextItem]:
    """Text, list of spans, and per span its run (in full where it comes first), then every state with its screenshot.

    `trajectories` is the workspace's own folder, never the agent's.
    """
    found = [ContextItem("text", markdown)] if markdown.strip() else []
    if not spans:
        return found
    listed = [f"- trajectory {span.trajectory_id}, states {span.start} to {span.end}" for span in spans]
    found.append(ContextItem("text", "Pages that the notes above rest on:\n" + "\n".join(listed)))
    described = set()
    for span in spans:
        folder = trajectories / span.trajectory_id
        run = json.loads((folder / "trajectory.json").read_text("utf-8"))
        actions = annotated(run["states"])
        head = f"Trajectory {run['id']} ({run['outcome']}), states {span.start} to {span.end} of {len(run['states'])}"
        if run["id"] not in described:
            head += f"\nGoal of the run: {run['goal']}\nStart: {run['start_url']}"
            head += f"\nActions of the run:\n{numbered(actions[1:])}"
            described.add(run["id"])
        found += [ContextItem("text", head), *_states(run, actions, span, folder)]
    return found


def _states(run: dict[str, Any], actions: list[str], span: Span, folder: Path) -> list[ContextItem]:
    found = []
    for index in range(span.start, span.end + 1):
        state = run["states"][index]
        shows = ((run["id"], index),)
        reached = f"\nReached by: {actions[index]}" if actions[index] else ""
        found.append(ContextItem("text", f"State {index}\nAddress: {state['url']}{reached}\n{state['text']}", shows))
        if state["screenshot"]:
            found.append(ContextItem("image", str(folder / state["screenshot"]), shows))
    return found
