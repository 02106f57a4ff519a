"""Scripted policies that speak the text protocol: yardsticks for a table, demonstrations for a warm start, test pieces.

A policy is a function of the conversation, as a model is: the same prompts get the same replies whoever plays them.
`oracle` alone knows more than its prompt: where the evidence of each question is.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Sequence

from lme_v2_env.arguments import spans_of
from lme_v2_env.data import Task, explorer_of_world
from lme_v2_env.extractive import NAMED
from lme_v2_env.memory.api import searched
from lme_v2_env.memory.index import STOP_WORDS
from lme_v2_env.memory.slices import plain_line, words
from lme_v2_env.protocol import Message

Policy = Callable[[Sequence[Message]], str]

RAG_STATES = 3
"""States that `rag` keeps."""

_RESULT = re.compile(r"^\d+\. (t\d+:\d+)", re.MULTILINE)
_RUNS = re.compile(r"\(t1 to t(\d+)\)")


def oracle(tasks: Iterable[Task]) -> Policy:
    """Keeps the known evidence, then submits. Worlds may share a question: the memory's summary tells them apart."""
    by_question: dict[str, list[Task]] = {}
    for task in tasks:
        by_question.setdefault(task.question.text, []).append(task)

    def policy(messages: Sequence[Message]) -> str:
        if len(messages) > 2:
            return "submit()"
        same = by_question[question_of(messages)]
        shown = _text(messages[1])
        task = next((task for task in same[1:] if explorer_of_world(task.world).summary in shown), same[0])
        states = list(dict.fromkeys((point.trajectory_id, point.state_index) for point in task.evidence))
        return f"keep({explorer_of_world(task.world).refs(states)})"

    return policy


def teacher(task: Task) -> Policy:
    """Searches as `search` does, and keeps of what it found the results that hold the evidence: to be learned from.

    Unlike the oracle's, every choice of its can be made from what the prompt shows. What no search finds is kept
    nevertheless.
    """
    explorer = explorer_of_world(task.world)
    wanted = {
        plain_line(point.line) if point.line else (point.trajectory_id, point.state_index): point
        for point in task.evidence
    }

    def policy(messages: Sequence[Message]) -> str:
        turn = _turn(messages)
        found = _RESULT.findall(_text(messages[-1]))
        if turn == 0:
            return search(messages)
        chosen: dict[str, None] = {}
        missing = set(wanted)
        for ref in found:
            (state,) = explorer.named(spans_of(ref))
            held = missing & ({state} | set(explorer.page(*state).lines))
            if held:
                chosen[ref] = None
                missing -= held
        kept = any(message["role"] == "assistant" and message["content"].startswith("keep(") for message in messages)
        if kept:
            return "submit()"
        if missing and turn == 1:
            return search(messages)
        chosen |= dict.fromkeys(explorer.refs([wanted[key][:2] for key in missing]).split(", ") if missing else ())
        return f"keep({', '.join(chosen)})"

    return policy


def anything(messages: Sequence[Message]) -> str:
    """Opens and keeps states by lot, then submits."""
    turn = _turn(messages)
    if turn == 3:
        return "submit()"
    key = hashlib.sha256(json.dumps([message["content"] for message in messages]).encode()).digest()
    draw = random.Random(key)
    runs = _RUNS.search(_text(messages[1]))
    state = f"t{draw.randint(1, int(runs[1]) if runs else 10)}:{draw.randint(0, 3)}"
    return f"open({state})" if turn == 0 else f"keep({state})"


def rag(messages: Sequence[Message]) -> str:
    """Searches with the question and keeps what ranks first, unread."""
    turn = _turn(messages)
    if turn == 0:
        return f"search_states({json.dumps(_query(question_of(messages)))})"
    found = _RESULT.findall(_text(messages[3]))[:RAG_STATES]
    return f"keep({', '.join(found)})" if turn == 1 and found else "submit()"


def search(messages: Sequence[Message]) -> str:
    """Searches with the question and with what it names; keeps pages that both find, then the best of each."""
    question, turn = question_of(messages), _turn(messages)
    if turn == 0:
        return f"search_states({json.dumps(_query(question))})"
    names = [next(filter(None, match)) for match in NAMED.findall(searched(question))]
    if turn == 1:
        return f"search_states({json.dumps(' '.join(names) or _query(question))})"
    if turn > 2:
        return "submit()"
    whole, named = (_RESULT.findall(_text(messages[place])) for place in (3, 5))
    best = [ref for ref in whole if ref in named] + whole[:3] + named[:3]
    chosen = list(dict.fromkeys(best))[:5]
    return f"keep({', '.join(chosen)})" if chosen else "submit()"


def question_of(messages: Sequence[Message]) -> str:
    """The question as the protocol's first user message shows it, whatever the wording."""
    text = _text(messages[1])
    for mark in ("# The question\n", "Question: "):
        if mark in text:
            return text.partition(mark)[2]
    return text


SCRIPTED: dict[str, Policy] = {"random": anything, "rag": rag, "search": search}


def _turn(messages: Sequence[Message]) -> int:
    return sum(message["role"] == "assistant" for message in messages)


def _text(message: Message) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _query(question: str) -> str:
    """The question's own words, without those that every question has."""
    return " ".join(dict.fromkeys(word for word in words(searched(question)) if word not in STOP_WORDS))
