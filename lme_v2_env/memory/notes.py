"""Two notes a trajectory: how the task was done (procedure), and what to know next time (hint).

A model may write them (`LmWriter` in `writer`); without one a template does, which can only restate what happened.
"""

from __future__ import annotations

from dataclasses import dataclass

from lme_v2_env.memory.slices import annotated_actions, page_title
from lme_v2_env.trajectory import Trajectory

TEMPLATE = "template-1"
"""Names the template in the settings that key the store: raise it when the text changes."""

SHOWN_ACTIONS = 20


@dataclass(frozen=True, slots=True)
class Note:
    """`kind` is `procedure` or `hint`."""

    kind: str
    title: str
    description: str
    content: str
    fallback: bool = False
    """Whether a model was asked and the template had to write it."""

    @property
    def text(self) -> str:
        return f"Title: {self.title}\nDescription: {self.description}\n{self.content}"


def template_notes(trajectory: Trajectory) -> list[Note]:
    """The procedure and the hint, without a model."""
    actions = [action for action in annotated_actions(trajectory.states) if action]
    done = "reached its goal" if trajectory.outcome == "success" else "did not reach its goal"
    steps = [f"{number}. {action}" for number, action in enumerate(actions[:SHOWN_ACTIONS], 1)]
    if len(actions) > SHOWN_ACTIONS:
        steps.append(f"... and {len(actions) - SHOWN_ACTIONS} further actions")
    titles = list(dict.fromkeys(filter(None, map(page_title, trajectory.states))))
    procedure = Note(
        "procedure",
        trajectory.goal,
        f"Actions of a run that {done}, starting at {trajectory.start_url}",
        "\n".join(steps) or "No action was taken.",
    )
    repeated = sorted({action for action in actions if actions.count(action) > 1})
    hints = [f"- The run {done} after {len(actions)} actions."]
    hints += [f"- Pages on the way: {', '.join(titles)}."] if titles else []
    hints += [f"- Done more than once: {action}" for action in repeated[:5]]
    last = (trajectory.states[-1].thought or "").strip()
    hints += [f"- At the end the agent thought: {' '.join(last.split())[:300]}"] if last else []
    hint = Note("hint", trajectory.goal, f"What one run that {done} shows", "\n".join(hints))
    return [procedure, hint]
