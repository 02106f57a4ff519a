"""The retrieval protocol: a question, actions over a memory, a submission. One growing chat, one action a turn.

`RetrievalRollout` is the only place where a policy's prompt is built. Training, evaluation and both verifiers adapters
drive the same object. It sees the question's text (and picture, where the policy takes pictures) and the memory:
no id, type, gold, evidence or path is in its reach.

Limits, in the order in which they are checked after every reply: submitted; too many malformed replies in a row; no
action left; observations used up; chat too long. Whatever the reason, the states kept so far are the submission: time
is up, and the reader gets what there is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from lme_v2_env.actions import SEARCHES, Action, ActionName, Malformed, Reply
from lme_v2_env.chat import picture_part, text_part
from lme_v2_env.explore import BadPattern, Explorer, NoSuch, State
from lme_v2_env.replies import parse
from lme_v2_env.tokens import CHARS_PER_TOKEN
from lme_v2_env.trajectory import QuestionView
from rewards.errors import UserError, refuse_unknown

Message = dict[str, Any]
"""What an OpenAI-compatible endpoint takes."""


class Stop(StrEnum):
    """Why a rollout ended."""

    SUBMITTED = "submitted"
    MALFORMED = "malformed"
    """Too many replies in a row without an action."""
    ACTIONS = "actions"
    OBSERVATIONS = "observations"
    CHAT = "chat"
    """The conversation reached its token limit."""


@dataclass(frozen=True, slots=True)
class Wording:
    """One preset of prompt texts; `hash` identifies them in every result."""

    name: str
    system: str
    how_text: str
    how_tools: str
    task: str
    status: str
    malformed: str
    one_at_a_time: str

    @property
    def hash(self) -> str:
        """First 12 hex digits of the sha256 over all texts and the tools' descriptions."""
        return hashlib.sha256(json.dumps([asdict(self), TOOLS], sort_keys=True).encode()).hexdigest()[:12]


@cache
def wordings() -> Mapping[str, Wording]:
    """The presets of policy_prompts.json, by name."""
    texts = json.loads(files("lme_v2_env").joinpath("policy_prompts.json").read_text("utf-8"))
    return {name: Wording(name, **preset) for name, preset in texts.items()}


@dataclass(frozen=True, slots=True)
class ProtocolConfig:
    """How a question is played.

    Attributes:
        actions: `text` (the action is the reply) or `tools` (native tool calls). Either kind of reply is understood.
        wording: a preset of policy_prompts.json: `standard`, or `plain` for small models.
        max_actions: replies, malformed ones included.
        max_malformed: this many malformed replies in a row end the rollout.
        observation_chars: longest answer to one action, in characters.
        total_observation_chars: of all answers together.
        chat_tokens: of the whole conversation, estimated at 3 characters a token.
        max_kept: states that may be kept; 20 is the published limit.
        evidence_tokens: of the kept pages, estimated; what would not fit is refused. 200,000 is the published limit.
        markdown_chars: what is longer is cut.
        spans_only: leave the markdown out: the reader gets pages alone.
        show_image: show the question's picture to the policy.
    """

    actions: Literal["text", "tools"] = "text"
    wording: str = "standard"
    max_actions: int = 12
    max_malformed: int = 4
    observation_chars: int = 3_000
    total_observation_chars: int = 24_000
    chat_tokens: int = 32_000
    max_kept: int = 20
    evidence_tokens: int = 200_000
    markdown_chars: int = 2_000
    spans_only: bool = False
    show_image: bool = False

    def __post_init__(self) -> None:
        refuse_unknown([self.actions], ("text", "tools"), "kind of actions")
        refuse_unknown([self.wording], wordings(), "wording")
        for name in ("max_actions", "max_malformed", "max_kept", "evidence_tokens", "chat_tokens"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}: give a positive number")
        if self.observation_chars < 200 or self.total_observation_chars < self.observation_chars:
            raise UserError(
                f"observation_chars is {self.observation_chars} of {self.total_observation_chars} in all: give at "
                "least 200, and no less in all than for one"
            )
        if self.markdown_chars < 0:
            raise UserError(f"markdown_chars is {self.markdown_chars}: give 0 or more (or set spans_only)")

    @property
    def hash(self) -> str:
        """Identifies everything that shapes a prompt or a submission."""
        key = json.dumps([asdict(self), wordings()[self.wording].hash], sort_keys=True)
        return hashlib.sha256(key.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Step:
    """One finished turn. `action` is its name, or None when the reply was malformed."""

    reply: Reply
    action: str | None
    refused: bool
    """Whether the action was understood but could not be done (no such state, too many kept, a bad pattern)."""
    observation: str


class RetrievalRollout:
    """One question being played. Call `prompt()`, give the model's reply to `step()`, until `done`."""

    def __init__(self, view: QuestionView, explorer: Explorer, config: ProtocolConfig) -> None:
        self.config = config
        self.explorer = explorer
        self.kept: list[State] = []
        self.markdown = ""
        self.markdown_cut = 0
        self.stop: Stop | None = None
        self.history: list[Step] = []
        self.observed = 0
        """Characters of all observations."""
        self.written = 0
        """Characters of all replies."""
        self._words = wordings()[config.wording]
        self._messages = self._opening(view)
        self._chars = sum(len(message["content"]) for message in self._messages if isinstance(message["content"], str))

    @property
    def num_turns(self) -> int:
        """Model calls of a whole rollout, at most."""
        return self.config.max_actions

    @property
    def done(self) -> bool:
        return self.stop is not None

    @property
    def tools(self) -> list[dict[str, Any]] | None:
        """Tool definitions to send along, when the policy acts by tool calls."""
        return TOOLS if self.config.actions == "tools" else None

    def prompt(self) -> list[Message]:
        """The conversation so far. Raises `RuntimeError` after the end."""
        if self.done:
            raise RuntimeError("the rollout is finished; there is no next prompt")
        return list(self._messages)

    def step(self, reply: str | Reply) -> None:
        """Take the model's reply to the last prompt."""
        if self.done:
            raise RuntimeError("the rollout is finished; it takes no more replies")
        reply = Reply(reply) if isinstance(reply, str) else reply
        action = parse(reply)
        self.written += _written(reply)
        refused = False
        if isinstance(action, Malformed):
            text = _fill(self._words.malformed, {"why": action.why})
        else:
            try:
                text = self._do(action)
            except (NoSuch, BadPattern, _Refused) as reason:
                text, refused = f"{action.name}: {reason}", True
            text += self._words.one_at_a_time if action.more else ""
        text = self._observed(text)
        name = None if isinstance(action, Malformed) else str(action.name)
        self.history.append(Step(reply, name, refused, text))
        said, heard = _said(reply), _heard(reply, text + self._status())
        chars = self._chars + _written(reply) + sum(len(message["content"]) for message in heard)
        self.stop = self._stop(action, chars)
        if not self.done:
            self._messages += [said, *heard]
            self._chars = chars

    def _do(self, action: Action) -> str:
        explorer, name = self.explorer, action.name
        if name is ActionName.SUBMIT:
            self.markdown = action.text[: self.config.markdown_chars].rstrip()
            self.markdown_cut = max(0, len(action.text) - self.config.markdown_chars)
            return "submitted"
        if name in SEARCHES:
            return getattr(explorer, name.value)(action.text)
        if name is ActionName.MATCH:
            return explorer.match(action.spans[0].trajectory, action.text)
        if name is ActionName.OPEN:
            span = action.spans[0]
            if span.first is None:
                return explorer.overview(span.trajectory)
            return explorer.pages(span, action.line, self._room())
        states = explorer.named(action.spans)
        return self._keep(states) if name is ActionName.KEEP else self._drop(states)

    def _keep(self, states: Sequence[State]) -> str:
        fresh = [state for state in states if state not in self.kept]
        if not fresh:
            return "They were kept already."
        if len(self.kept) + len(fresh) > self.config.max_kept:
            raise _Refused(f"{len(self.kept)} states are kept, {len(fresh)} more are over {self.config.max_kept}.")
        items = self.explorer.context([*self.kept, *fresh])
        tokens = round(sum(len(item.value) for item in items if item.type == "text") / CHARS_PER_TOKEN)
        if tokens > self.config.evidence_tokens:
            raise _Refused(f"that would make {tokens} tokens of pages, over {self.config.evidence_tokens}.")
        self.kept += fresh
        return f"Kept {self.explorer.refs(fresh)}."

    def _drop(self, states: Sequence[State]) -> str:
        gone = [state for state in states if state in self.kept]
        if not gone:
            raise _Refused("none of these states is kept.")
        self.kept = [state for state in self.kept if state not in gone]
        return f"Dropped {self.explorer.refs(gone)}."

    def _room(self) -> int:
        return min(self.config.observation_chars, self.config.total_observation_chars - self.observed)

    def _observed(self, text: str) -> str:
        room = self._room()
        if len(text) > room:
            text = text[: max(0, room - len(_CUT))].rstrip() + _CUT
        self.observed += len(text)
        return text

    def _status(self) -> str:
        slots = {
            "left": str(self.config.max_actions - len(self.history)),
            "kept": str(len(self.kept)),
            "max_kept": str(self.config.max_kept),
        }
        return _fill(self._words.status, slots)

    def _stop(self, action: Action | Malformed, chars: int) -> Stop | None:
        """`chars` is how long the next prompt would be."""
        if isinstance(action, Action) and action.name is ActionName.SUBMIT:
            return Stop.SUBMITTED
        last = self.history[-self.config.max_malformed :]
        if len(last) == self.config.max_malformed and all(step.action is None for step in last):
            return Stop.MALFORMED
        if len(self.history) >= self.config.max_actions:
            return Stop.ACTIONS
        if self.config.total_observation_chars - self.observed < _LEAST_ROOM:
            return Stop.OBSERVATIONS
        return Stop.CHAT if chars / CHARS_PER_TOKEN >= self.config.chat_tokens else None

    def _opening(self, view: QuestionView) -> list[Message]:
        words, config = self._words, self.config
        how = words.how_tools if config.actions == "tools" else words.how_text
        limits = {name: str(getattr(config, name)) for name in ("max_actions", "max_kept", "markdown_chars")}
        system = _fill(words.system, {"how": _fill(how, limits), **limits})
        summary = self.explorer.summary if "{summary}" in words.task else ""
        task = _fill(words.task, {"summary": summary, "question": view.text})
        content: Any = task
        if config.show_image and view.image is not None:
            content = [text_part(task), picture_part(view.image)]
        return [{"role": "system", "content": system}, {"role": "user", "content": content}]


def _said(reply: Reply) -> Message:
    """The reply as it came, so that a trace knows it again."""
    said: Message = {"role": "assistant", "content": reply.content}
    if reply.reasoning is not None:
        said["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.tool_calls
        ]
    return said


def _heard(reply: Reply, text: str) -> list[Message]:
    """The observation in the form that the reply asks for: every tool call wants its own answer."""
    if not reply.tool_calls:
        return [{"role": "user", "content": text}]
    answers = [text, *([_NOT_TAKEN] * (len(reply.tool_calls) - 1))]
    return [
        {"role": "tool", "tool_call_id": call.id, "content": answer}
        for call, answer in zip(reply.tool_calls, answers, strict=True)
    ]


class _Refused(ValueError):
    """An action that is understood but against the rules; the message tells the policy."""


_CUT = "\n... cut"
_NOT_TAKEN = "Not taken: one action at a time."
_LEAST_ROOM = 100
"""With fewer characters left no observation says anything."""

_SLOT = re.compile(r"\{(\w+)\}")


def _fill(template: str, slots: Mapping[str, str]) -> str:
    """One pass, so that braces inside a question or a page are never interpreted."""
    return _SLOT.sub(lambda match: slots[match[1]], template)


def _written(reply: Reply) -> int:
    """Characters that the model wrote."""
    calls = sum(len(call.name) + len(call.arguments) for call in reply.tool_calls)
    return len(reply.content or "") + len(reply.reasoning or "") + calls


def _tool(name: ActionName, description: str, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name.value, "description": description, "parameters": schema}}


_SPAN = "states, such as t3:4 or t3:2-4; several with commas between them"
TOOLS: list[dict[str, Any]] = [
    _tool(ActionName.SEARCH_STATES, "Pages that have these words.", query="words to look for"),
    _tool(ActionName.SEARCH_EVENTS, "What actions did.", query="words to look for"),
    _tool(ActionName.SEARCH_NOTES, "Procedures and hints.", query="words to look for"),
    _tool(ActionName.OPEN, "The course of a run (t3) or the lines of its pages (t3:4).", span="t3, t3:4 or t3:2-4"),
    _tool(ActionName.MATCH, "Lines of a run that match.", trajectory="a run, such as t3", regex="regular expression"),
    _tool(ActionName.KEEP, "Keep states as evidence.", span=_SPAN),
    _tool(ActionName.DROP, "No longer keep states.", span=_SPAN),
    _tool(ActionName.SUBMIT, "End; what was kept goes to the reader.", markdown="notes beside the pages; may be empty"),
]
"""Native definitions of the actions."""
