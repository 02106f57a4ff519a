"""Notes and events written by a model behind an OpenAI-compatible endpoint.

An empty reply, or one that is no JSON, is asked for once more; a prompt that is refused as over-long is sent again with
less of the pages. After that the template writes the entry, and its record says so (`fallback`): one trajectory never
ends a run that can go on. An endpoint that fails otherwise is an error, since templates would take the model's place
unseen: what was written so far is in the store, and the same command goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from lme_v2_env.chat import EmptyReply, Endpoint, OverLong, picture_part, text_part
from lme_v2_env.memory.events import Event, template_events
from lme_v2_env.memory.notes import Note, template_notes
from lme_v2_env.memory.slices import annotated_actions
from lme_v2_env.trajectory import SURROGATE, State, Trajectory

FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)

LONGEST_TREE = 60_000
"""Characters of a tree that an event's prompt shows; the middle of a longer one is left out."""

SHORTER_TREE = 12_000
"""The same, when the endpoint refused the prompt as over-long; as published."""

LONGEST_RUN = 120_000
"""Characters of a run that the notes' prompt shows; longer thoughts are cut first."""

SHORTER_RUN = 30_000
"""The same, when the endpoint refused the prompt as over-long."""


class ModelWriter:
    """Sampling as published for the controller: temperature 0.6, top_p 0.95, top_k 20, 8,192 tokens.

    The model thinks about notes; not about events, of which there are many, nor when asked again. `picture` finds the
    file of a screenshot, or raises: then the model is shown those of the pages, too.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        concurrency: int = 16,
        max_tokens: int = 8192,
        picture: Callable[[str], Path] | None = None,
    ) -> None:
        self.endpoint, self.concurrency, self.picture = endpoint, concurrency, picture
        self.prompts: dict[str, str] = json.loads(
            files("lme_v2_env").joinpath("writer_prompts.json").read_text("utf-8")
        )
        self.sampling = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "max_tokens": max_tokens}

    @property
    def settings(self) -> dict[str, Any]:
        prompts = hashlib.sha256(json.dumps(self.prompts, sort_keys=True).encode()).hexdigest()[:12]
        settings = {"writer": self.endpoint.model, "prompts": prompts, "thinking": "notes", **self.sampling}
        return settings | {"pictures": True} if self.picture else settings

    def notes(self, trajectory: Trajectory) -> list[Note]:
        def text(short: bool) -> str:
            return _run_text(trajectory, SHORTER_RUN if short else LONGEST_RUN)

        reply = self._object(self.prompts["notes"], text, trajectory.states, ("procedure", "hint"), thinking=True)
        if reply is None or not all(isinstance(reply[kind], dict) for kind in ("procedure", "hint")):
            return [replace(note, fallback=True) for note in template_notes(trajectory)]
        return [_note(kind, reply[kind]) for kind in ("procedure", "hint")]

    def events(self, trajectory: Trajectory) -> list[Event]:
        templates = template_events(trajectory)
        pairs = list(pairwise(trajectory.states))
        with ThreadPoolExecutor(self.concurrency) as pool:
            return list(pool.map(lambda template, pair: self._event(trajectory, template, pair), templates, pairs))

    def _event(self, trajectory: Trajectory, template: Event, pair: tuple[State, State]) -> Event:
        before, after = pair

        def text(short: bool) -> str:
            longest = SHORTER_TREE if short else LONGEST_TREE
            return (
                f"Goal: {trajectory.goal}\nAction: {template.action or '(none)'}\n\n"
                f"Before, {before.url}\n{middle_cut(before.tree, longest)}\n\n"
                f"After, {after.url}\n{middle_cut(after.tree, longest)}"
            )

        reply = self._object(self.prompts["event"], text, pair, ("overview", "change"), thinking=False)
        if reply is None:
            return replace(template, fallback=True)
        return Event(template.before, template.action, _plain(reply["overview"]), _plain(reply["change"]))

    def _object(
        self,
        system: str,
        text: Callable[[bool], str],
        states: Sequence[State],
        keys: tuple[str, ...],
        *,
        thinking: bool,
    ) -> dict[str, Any] | None:
        """A JSON object with these keys, of the prompt or, when that is over-long, the shorter one without pictures.

        Raises `EndpointError` when the endpoint fails otherwise.
        """
        for short in (False, True):
            try:
                user = text(True) if short else self._shown(text(False), states)
                return self._asked(system, user, keys, thinking)
            except OverLong:
                continue
        return None

    def _shown(self, text: str, states: Sequence[State]) -> str | list[dict[str, Any]]:
        """The text, followed by the states' screenshots in order where the model takes them."""
        if self.picture is None:
            return text
        files = [self.picture(state.screenshot) for state in states if state.screenshot]
        return [text_part(text), *(picture_part(file.read_bytes()) for file in files)]

    def _asked(
        self, system: str, user: str | list[dict[str, Any]], keys: tuple[str, ...], thinking: bool
    ) -> dict[str, Any] | None:
        """Asked for at most twice."""
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        for think in (thinking, False):
            more = {} if think else {"chat_template_kwargs": {"enable_thinking": False}}
            try:
                text = self.endpoint.complete(messages, **self.sampling, **more).text
            except EmptyReply:
                continue
            found = json_object(text)
            if found is not None and all(key in found for key in keys):
                return found
            repair = {"role": "user", "content": self.prompts["repair"]}
            messages = [*messages, {"role": "assistant", "content": text}, repair]
        return None


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a reply: the whole text, a fenced one, or from the first brace to the last."""
    fenced = FENCED.search(text)
    whole = text[text.find("{") : text.rfind("}") + 1]
    for candidate in (text, fenced.group(1) if fenced else "", whole):
        try:
            found = json.loads(candidate)
        except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, or thousands of brackets
            continue
        if isinstance(found, dict):
            return found
    return None


def middle_cut(text: str, longest: int) -> str:
    """At most about `longest` characters, the middle left out."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n... ({len(text) - 2 * half} characters left out) ...\n{text[-half:]}"


def _run_text(trajectory: Trajectory, longest: int) -> str:
    actions = [*annotated_actions(trajectory.states), "(the run ended)"]
    share = max(200, longest // len(trajectory.states) - 200)
    parts = [f"Goal: {trajectory.goal}\nOutcome: {trajectory.outcome}\nStart: {trajectory.start_url}"]
    parts += [
        f"Page {state.index}, {state.url}\nThought: {middle_cut(state.thought or '(none)', share)}\nNext: {action}"
        for state, action in zip(trajectory.states, actions, strict=True)
    ]
    return middle_cut("\n\n".join(parts), longest)


def _note(kind: str, fields: dict[str, Any]) -> Note:
    title, description, content = (_plain(fields.get(name)) for name in ("title", "description", "content"))
    return Note(kind, title, description, content)


def _plain(value: Any) -> str:
    """Text of a field; models also send lists of points."""
    if isinstance(value, list):
        return "\n".join(f"- {_plain(item)}" for item in value)
    text = value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return SURROGATE.sub("\ufffd", text)
