"""Questions in the published form: which are asked of a world, their words, golds, graders and evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from generators.draw import Draw
from generators.webworld.bank import bank
from generators.webworld.drafts import ABSTENTION, GOTCHAS, GRADERS, Draft
from generators.webworld.explorer import Run, runs
from generators.webworld.ids import QUESTION, row_id
from generators.webworld.model import World, with_article
from generators.webworld.premises import premise_drafts
from generators.webworld.seen import Seen
from generators.webworld.templates import OPTIONS, PLAIN, drafts

LETTERS = "ABCDEFGH"


@dataclass(frozen=True)
class Asked:
    """A row of questions.jsonl, and what is known about it and never shown: evidence, template, premise."""

    row: dict[str, Any]
    evidence: dict[str, Any]


def ask(world: World, others: Sequence[World], seen_runs: Sequence[Run] | None = None) -> tuple[Asked, ...]:
    """The questions of a world. `others` lend the false premises."""
    draw = Draw(world.seed, "questions")
    seen = Seen(runs(world) if seen_runs is None else seen_runs)
    pool = [*drafts(world, seen, draw), *premise_drafts(world, others, draw)]
    pool = [draft for draft in pool if all(fact in seen for fact in draft.facts)]
    if world.config.plain:
        pool = [draft for draft in pool if draft.template in PLAIN]
    chosen = [draft for kind, count in world.config.quotas for draft in _chosen(world, pool, kind, count, draw)]
    made, choices = [], 0
    for number, draft in enumerate(draw.shuffled(chosen)):
        letter = (world.seed // len(world.config.kinds) + 3 * choices) % OPTIONS
        choices += draft.form == "choice"
        made.append(_asked(world, draft, number, letter, seen, draw))
    return tuple(made)


def _chosen(world: World, pool: Sequence[Draft], kind: str, count: int, draw: Draw) -> list[Draft]:
    """Drafts of a type, a template again only when every other one has had its turn."""
    groups: dict[str, list[Draft]] = {}
    free = kind == GOTCHAS and draw.percent(world.config.judged_gotchas)
    for draft in draw.shuffled([draft for draft in pool if draft.question_type == kind]):
        if kind != GOTCHAS or (draft.form == "free") == free:
            groups.setdefault(draft.template, []).append(draft)
    order = draw.shuffled(sorted(groups))
    found: list[Draft] = []
    while len(found) < count and any(groups.values()):
        for template in order:
            if groups[template] and len(found) < count:
                draft = groups[template].pop()
                if not _echoes(draft):
                    found.append(draft)
    return found


def _echoes(draft: Draft) -> bool:
    """Whether some wording of the question would hold its own answer."""
    if draft.form not in ("phrase", "number"):
        return False
    gold = f" {normalised(draft.gold)} "
    return any(gold in f" {normalised(_worded(way, draft.slots))} " for way in bank("questions")["ask"][draft.template])


def _worded(way: str, slots: dict[str, Any]) -> str:
    """A wording with its slots filled."""
    noun = slots.get("noun")
    return way.format(**slots, a_noun=with_article(noun) if noun else "")


def _asked(world: World, draft: Draft, number: int, letter: int, seen: Seen, draw: Draw) -> Asked:
    words = bank("questions")
    text = _worded(draw.pick(words["ask"][draft.template]), draft.slots)
    if not world.config.plain:
        text = f"{draw.pick(words['intro']).format(what=world.what)} {text}"
    answer, boxed = draft.gold, draw.pick(words["boxed"][draft.form])
    if draft.form == "choice":
        options = list(draft.wrong)
        options.insert(letter, draft.gold)
        text += "\n\n" + "\n".join(f"{name}. {option}" for name, option in zip(LETTERS, options, strict=True))
        answer = LETTERS[letter]
    grader = ABSTENTION if draft.premise else GRADERS[draft.form]
    name = row_id(world.seed, number, QUESTION)
    row = {
        "id": name,
        "domain": world.domain,
        "environment": world.environment,
        "question_type": draft.question_type,
        "question": f"{text}\n\n{boxed}",
        "image": None,
        "answer": answer,
        "eval_function": grader,
    }
    hidden: dict[str, Any] = {
        "question_id": name,
        "evidence": seen.evidence(draft.facts),
        "states": seen.states(draft.facts),
        "world": world.seed,
        "template": draft.template,
        "about": draft.about,
        "gold_text": draft.gold,
    }
    return Asked(row, hidden | ({"premise": draft.premise} if draft.premise else {}))


def normalised(text: str) -> str:
    """Lower-case words and numbers: what two answers are compared by here."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))
