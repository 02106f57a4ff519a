"""The agent's instruction, put together from what the workspace holds."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

PROMPT = (
    "Read INSTRUCTION.md and question.json in the current folder, do what the instruction says, and stop when "
    "memory_module_output.json is written."
)


@dataclass(frozen=True, slots=True)
class Scaffold:
    """What an agent is given beside the raw files; the paper's three ablations take one away."""

    workflow: bool = True
    manifests: bool = True
    helper: bool = True
    index: bool = False
    """Lists of the ids, which plain Codex has in place of manifests."""


PLAIN = Scaffold(workflow=False, manifests=False, helper=False, index=True)


def instruction(scaffold: Scaffold) -> str:
    """INSTRUCTION.md: the paragraphs whose marks (`@name`, `@!name`) hold."""
    text = files("eval.baselines.coding").joinpath("instruction.md").read_text("utf-8")
    kept = []
    for paragraph in text.strip().split("\n\n"):
        words = paragraph.split(" ")
        marks = 0
        while words[marks].startswith("@"):
            marks += 1
        if all(getattr(scaffold, mark.lstrip("@!")) is not mark.startswith("@!") for mark in words[:marks]):
            kept.append(" ".join(words[marks:]))
    return "\n\n".join(kept) + "\n"
