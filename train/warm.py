"""The warm start's examples: the generator's oracle notes and answers as replies to the environment's own prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewards.errors import UserError
from supersede_env.episode import Episode
from supersede_env.protocol import Message, NotesRollout, ProtocolConfig


@dataclass(frozen=True, slots=True)
class Example:
    """One turn: the prompt and the reply to learn."""

    prompt: tuple[Message, ...]
    reply: str


def oracle_examples(record: Mapping[str, Any], protocol: ProtocolConfig) -> list[Example]:
    """One example a turn of a generated record. Raises `UserError` when its history does not match its turns."""
    history = record["history"]
    replies = [*history["oracle_notes"], history["oracle_answer"]]
    rollout = NotesRollout(Episode.from_record(record).view, protocol)
    if rollout.num_turns != len(replies):
        raise UserError(
            "a warm start has one note a session: use the bounded condition without protocol.max_session_chars"
        )
    examples = []
    for reply in replies:
        examples.append(Example(tuple(rollout.prompt()), reply))
        rollout.step(reply)
    return examples
