"""The query bundle: what to look for in each pool, written by a model or by rules, from the question's text alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, Protocol

from lme_v2_env.chat import EmptyReply, Endpoint
from lme_v2_env.memory.api import searched
from lme_v2_env.memory.index import STOP_WORDS
from lme_v2_env.memory.slices import words
from lme_v2_env.memory.writer import json_object
from lme_v2_env.trajectory import SURROGATE
from rewards.text import drop_reasoning

MOST_QUERIES = 5
"""Raw-state queries of a bundle, as published; further ones are dropped."""

LONGEST_QUERY = 2000
"""Characters of a query: as long as the longest question. A model that repeats itself would fill the embedder."""

NAMED = re.compile(r"`([^`]+)`|\"([^\"]+)\"|((?:[A-Z][\w+-]*)(?:\s+[A-Z0-9][\w+-]*)+)")
"""What a question calls by name: in back ticks, in double quotes, or several capitalised words in a row."""

OPTIONS = re.compile(r"^\s*\(?[A-H][.):]\s", re.MULTILINE)
"""Where the options of a multiple-choice question begin."""

EFFECT = re.compile(
    r"\b(?:what (?:would )?(?:happens?|changes?|appears?)|chang(?:e|es|ed|ing)|becomes?|turns? into|(?:dis)?appears?"
    r"|(?:after|when|if|once|upon)\b[^.?!]{0,60}?\b(?:click|press|select|submit|choos|plac|typ|enter|open|sav|delet|add"
    r"|remov|check|expand|sort|filter|hover)\w*)\b",
    re.IGNORECASE,
)
"""A question about what an action does."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Queries of one question. An empty event or note query leaves that pool out.

    `source` says who wrote it: `rules`, `model`, `repaired` (at the second try) or `fallback`.
    """

    raw: tuple[str, ...]
    event: str = ""
    note: str = ""
    source: str = "rules"


class Planner(Protocol):
    """Writes bundles. `settings` identify it in a run's record."""

    @property
    def settings(self) -> dict[str, Any]: ...

    def plan(self, question: str, summary: Callable[[], str]) -> Bundle:
        """`summary` tells what the memory holds, for those who want to know."""
        ...


def parse_bundle(text: str, parity: bool = False) -> Bundle:
    """The bundle in a reply. Raises `ValueError` when there is none.

    A null query means none; the published code refuses it, and so does `parity`. A bundle without any query is refused
    (it would leave the reader with nothing), but taken with `parity`. Braces in thoughts before it are no bundle.
    """
    found = json_object(text if parity else drop_reasoning(text)) or json_object(text)
    if found is None or not isinstance(found.get("raw_state_queries"), list):
        raise ValueError("the reply holds no object with a list 'raw_state_queries'")
    plain = [_plain(query) for query in found["raw_state_queries"] if isinstance(query, str)]
    raw = tuple(dict.fromkeys(filter(None, plain)))[:MOST_QUERIES]
    single = {}
    for name in ("event_query", "note_query"):
        value = found.get(name, "")
        if value is None and not parity:
            value = ""
        if not isinstance(value, str):
            raise ValueError(f"'{name}' is no text")
        single[name] = _plain(value)
    bundle = Bundle(raw, single["event_query"], single["note_query"], "model")
    if not parity and not (bundle.raw or bundle.event or bundle.note):
        raise ValueError("the bundle holds no query")
    return bundle


def _plain(query: str) -> str:
    return " ".join(SURROGATE.sub("\ufffd", query).split())[:LONGEST_QUERY]


def fallback(question: str, parity: bool = False) -> Bundle:
    """The bundle when the model wrote none, even when asked again.

    Every pool is searched with the question: a reply that cannot be read says nothing about which pool is needed, and
    notes and events are a few hundred words. The published fallback looks at the question's type, which a memory is
    not to know; with `parity` this is its branch for the types that it does not name, pages alone.
    """
    if parity:
        return Bundle((question,), source="fallback")
    text = searched(question)
    return Bundle((text,), text, text, "fallback")


class RulesPlanner:
    """No model: the question itself, the things it names, and the events when it asks what an action does.

    A question that names several things gets a query for each, since the best pages for the whole question may all be
    one thing's. Notes are always asked: they are short, and the published RAG gained 8 points by them.
    """

    settings: dict[str, Any] = {"controller": "rules", "version": 1}  # noqa: RUF012

    def plan(self, question: str, summary: Callable[[], str]) -> Bundle:
        text = searched(question)
        names = named(OPTIONS.split(text)[0])
        more = names[: MOST_QUERIES - 1] if len(names) > 1 else []
        return Bundle((text, *more), text if EFFECT.search(text) else "", text)


def named(text: str) -> list[str]:
    """What a text calls by name, in order, each once whatever its spelling."""
    found = [" ".join((tick or quoted).split()) or _run(capitals) for tick, quoted, capitals in NAMED.findall(text)]
    distinct = {" ".join(words(name)): name for name in reversed(found)}
    return sorted((name for key, name in distinct.items() if key), key=found.index)


def _run(capitals: str) -> str:
    """A run of capitalised words as a name, or nothing when it is only how a sentence begins (`After I`)."""
    parts = capitals.split()
    while parts and parts[0].lower() in STOP_WORDS:
        parts = parts[1:]
    return " ".join(parts) if len(parts) > 1 and "I" not in parts else ""


@dataclass
class ModelPlanner:
    """A model behind an OpenAI-compatible endpoint, with the published sampling: asked, asked again, then the fallback.

    Raises `EndpointError` when the endpoint fails. It sees the question's text and the memory's summary.
    """

    endpoint: Endpoint
    parity: bool = False
    thinking: bool = True
    sampling: dict[str, Any] = field(
        default_factory=lambda: {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "max_tokens": 8192}
    )

    def __post_init__(self) -> None:
        text = files("eval.baselines").joinpath("agentrunbook_r_prompts.json").read_text("utf-8")
        self.prompts: dict[str, Any] = json.loads(text)

    @property
    def settings(self) -> dict[str, Any]:
        prompts = hashlib.sha256(json.dumps(self.prompts, sort_keys=True).encode()).hexdigest()[:12]
        return {
            "controller": self.endpoint.model,
            "prompts": prompts,
            "thinking": self.thinking,
            **self.sampling,
        }

    def plan(self, question: str, summary: Callable[[], str]) -> Bundle:
        messages = self.messages(question, summary())
        source = "model"
        for thinking in (self.thinking, False):  # the repair needs no thought
            try:
                text = self.endpoint.complete(messages, **self._body(thinking)).text
            except EmptyReply:  # thinking that used up all tokens, say
                source = "repaired"
                continue
            try:
                bundle = parse_bundle(text, self.parity)
            except ValueError:
                repair = {"role": "user", "content": self.prompts["repair"]}
                messages = [*messages, {"role": "assistant", "content": text}, repair]
                source = "repaired"
                continue
            return replace(bundle, source=source)
        return fallback(question, self.parity)

    def messages(self, question: str, summary: str) -> list[dict[str, str]]:
        """The controller's whole prompt."""
        examples = "\n\n".join(
            f"Question: {example['question']}\n{json.dumps(example['bundle'])}" for example in self.prompts["examples"]
        )
        user = f"{self.prompts['memory']}\n{summary}\n\n{self.prompts['shown']}\n\n{examples}\n\nQuestion: {question}"
        return [{"role": "system", "content": self.prompts["system"]}, {"role": "user", "content": user}]

    def _body(self, thinking: bool) -> dict[str, Any]:
        return self.sampling if thinking else self.sampling | {"chat_template_kwargs": {"enable_thinking": False}}
