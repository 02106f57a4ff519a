"""How far policies get that see all the text but understand none of it: the table of shortcut policies.

    python -m eval.shortcuts --episodes 2000 --presets control curriculum hard

Every policy gets each mention of a value of the asked attribute in the text, in order, whoever it belongs to and
however it is meant, and answers with one of the values. An episode that such a policy solves teaches no memory.
The thresholds are meant for current- and previous-value questions with three or more candidate values in the text.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from generators.timelines import PRESETS, generate
from rewards.commands import Parser, answered
from rewards.errors import refuse_unknown

SENTENCE_END = re.compile(r"(?<=[.!?])(?<!Dr\.)(?<!Mr\.)(?<!Ms\.)\s+")
WORD = re.compile(r"[a-z0-9]+")
MARKERS = re.compile(
    r"\b(now|nowadays|moved|update|updated|changed?|switched|started|these days|currently|since)\b", re.I
)
PERSON = re.compile(r"\bmy [a-z]+ [A-Z][a-z]+", re.ASCII)
TRAIN_OFFSET = 500_000
"""Seeds on which the logistic model is fitted start here, far from those that it is measured on."""


KINDS = ("current", "previous", "count", "yesno", "change", "abstain")


@dataclass(frozen=True)
class Mention:
    value: str
    session: int
    sentence: str


@dataclass(frozen=True)
class Case:
    """What a policy may see of an episode, and the answer to compare with."""

    question: str
    asks: str
    mentions: tuple[Mention, ...]
    sentences: tuple[str, ...]
    sessions: int
    gold: str
    named: str
    """The value that a yes/no question names; empty for other kinds."""

    @property
    def candidates(self) -> list[str]:
        return list(dict.fromkeys(m.value for m in self.mentions))


def read_case(record: dict[str, Any]) -> Case:
    """Find every mention of the asked attribute's values in the text of a record."""
    attribute = record["tags"]["attribute"]
    values = {e["value"] for e in record["history"]["events"] if e["attribute"] == attribute and e["named"]}
    pattern = re.compile(
        r"(?<!\w)(" + "|".join(re.escape(v) for v in sorted(values, key=len, reverse=True)) + r")(?!\w)", re.I
    )
    forms = {v.casefold(): v for v in values}
    mentions, sentences = [], []
    for number, session in enumerate(record["sessions"]):
        for turn in session["turns"]:
            for sentence in SENTENCE_END.split(turn["content"]):
                sentences.append(sentence)
                mentions += [Mention(forms[found.casefold()], number, sentence) for found in pattern.findall(sentence)]
    named = next(iter(pattern.findall(record["question"])), "")
    return Case(
        record["question"],
        record["asks"],
        tuple(mentions),
        tuple(sentences),
        len(record["sessions"]),
        record["gold"],
        forms.get(named.casefold(), ""),
    )


Policy = Callable[[Case], dict[str, float]]
"""Gives each answer a probability, so that ties and uniform choices need no random numbers."""


def _sure(value: str) -> dict[str, float]:
    return {value: 1.0}


def _even(values: Iterable[str]) -> dict[str, float]:
    pool = list(values)
    return {v: 1 / len(pool) for v in pool}


def _by_count(case: Case, best: Callable[[Iterable[int]], int]) -> dict[str, float]:
    counts = Counter(m.value for m in case.mentions)
    target = best(counts.values())
    return _even(v for v, n in counts.items() if n == target)


def _neither_first_nor_last(case: Case) -> dict[str, float]:
    ends = (case.mentions[0].value, case.mentions[-1].value)
    return _even([v for v in case.candidates if v not in ends] or case.candidates)


def _last_session(case: Case) -> dict[str, float]:
    """A value told in the last session, any of them; else the last one told."""
    last = [m.value for m in case.mentions if m.session == case.sessions - 1]
    return _even(set(last)) if last else _sure(case.mentions[-1].value)


def _marked(case: Case) -> dict[str, float]:
    """The last value in a sentence with a word such as now, moved, update."""
    marked = [m.value for m in case.mentions if MARKERS.search(m.sentence)]
    return _sure(marked[-1] if marked else case.mentions[-1].value)


def _right_person(case: Case) -> dict[str, float]:
    """The last value in a sentence about whoever the question is about: reads names, though nothing else."""
    asked = PERSON.search(case.question)
    about = [
        m.value for m in case.mentions if (asked.group() in m.sentence if asked else not PERSON.search(m.sentence))
    ]
    return _sure(about[-1] if about else case.mentions[-1].value)


def _words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def _bm25(case: Case, k1: float = 1.2, b: float = 0.75) -> dict[str, float]:
    """The values of the sentence nearest to the question, among the sentences that hold one (Robertson's BM25)."""
    documents = [_words(s) for s in case.sentences]
    average = sum(map(len, documents)) / len(documents)
    frequency = Counter(w for d in documents for w in set(d))
    query = set(_words(case.question))
    best, winners = -1.0, [case.mentions[-1].value]
    for sentence in dict.fromkeys(m.sentence for m in case.mentions):
        counts = Counter(words := _words(sentence))
        score = 0.0
        for word in query & counts.keys():
            idf = math.log(1 + (len(documents) - frequency[word] + 0.5) / (frequency[word] + 0.5))
            score += idf * counts[word] * (k1 + 1) / (counts[word] + k1 * (1 - b + b * len(words) / average))
        if score > best + 1e-12:
            best, winners = score, []
        if score >= best - 1e-12:
            winners += [m.value for m in case.mentions if m.sentence == sentence]
    return _even(set(winners))


POLICIES: dict[str, Policy] = {
    "last": lambda c: _sure(c.mentions[-1].value),
    "first": lambda c: _sure(c.mentions[0].value),
    "second": lambda c: _sure(c.mentions[min(1, len(c.mentions) - 1)].value),
    "second to last": lambda c: _sure(c.mentions[max(-2, -len(c.mentions))].value),
    "most frequent": lambda c: _by_count(c, max),
    "least frequent": lambda c: _by_count(c, min),
    "neither first nor last": _neither_first_nor_last,
    "uniform": lambda c: _even(c.candidates),
    "last session": _last_session,
    "regex now/moved/update": _marked,
    "BM25": _bm25,
    "last, right person": _right_person,
}
UNBOUND = ("last, right person",)
"""Policies shown beside the others although they read: no threshold is set for them."""


def features(case: Case) -> np.ndarray:
    """Place and number of each candidate's mentions, one row a candidate."""
    n, last = len(case.mentions), case.sessions - 1
    rows = []
    for value in case.candidates:
        at = [i for i, m in enumerate(case.mentions) if m.value == value]
        where = [case.mentions[i].session for i in at]
        rows.append(
            [
                at[0] / n,
                at[-1] / n,
                len(at),
                len(at) / n,
                at[0] == 0,
                at[-1] == n - 1,
                at[0] == 1,
                at[-1] == n - 2,
                n - 1 in at,
                n - 2 in at,
                1 in at,
                where[0] / last,
                where[-1] / last,
                where[-1] == last,
                where[0] == 0,
                (at[-1] - at[0]) / n,
            ]
        )
    return np.array(rows, dtype=float)


def fit_logistic(cases: list[Case], steps: int = 300, rate: float = 0.5, decay: float = 1e-3) -> np.ndarray:
    """A conditional logistic model over the candidates, fitted by gradient descent."""
    data = [(x, c.candidates.index(c.gold)) for c in cases if c.gold in c.candidates for x in [features(c)]]
    if not data:
        return np.zeros(16)
    widest = max(len(x) for x, _ in data)
    table = np.zeros((len(data), widest, data[0][0].shape[1]))
    mask = np.full((len(data), widest), -np.inf)
    truth = np.array([t for _, t in data])
    for i, (x, _) in enumerate(data):
        table[i, : len(x)], mask[i, : len(x)] = x, 0.0
    weights = np.zeros(table.shape[2])
    for _ in range(steps):
        logits = table @ weights + mask
        chance = np.exp(logits - logits.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        chance[np.arange(len(data)), truth] -= 1
        weights -= rate * (np.einsum("nkf,nk->f", table, chance) / len(data) + decay * weights)
    return weights


def logistic_policy(weights: np.ndarray) -> Policy:
    return lambda case: _sure(case.candidates[int(np.argmax(features(case) @ weights))])


def _changes(case: Case, new: str) -> set[str]:
    """How a policy that takes `new` for the present value would say the change: from the value told before it."""
    at = max(i for i, m in enumerate(case.mentions) if m.value == new)
    old = next((m.value for m in reversed(case.mentions[:at]) if m.value != new), new)
    sizes = [float("0" + "".join(c for c in v if c.isdigit())) for v in (old, new)]
    direction = {"up", "an increase"} if sizes[1] > sizes[0] else {"down", "a decrease"}
    return {f"from {old} to {new}", *direction}


def score(case: Case, answers: dict[str, float]) -> float:
    """Chance that the policy's answer is right; a yes/no question is answered by whether the value is the named one."""
    if case.asks == "abstain":
        return 0.0  # every policy answers with a value
    if case.asks == "change":
        return sum(p for value, p in answers.items() if case.gold in _changes(case, value))
    if case.asks == "yesno":
        yes = answers.get(case.named, 0.0)
        return yes if case.gold == "Yes" else 1 - yes
    return answers.get(case.gold, 0.0)


def cases_of(
    preset: str, seeds: range, asks: tuple[str, ...], wide: bool, split: str = "train"
) -> dict[str, list[Case]]:
    """Cases by kind of question; `wide` keeps those with three or more candidate values in the text."""
    out: dict[str, list[Case]] = defaultdict(list)
    for seed in seeds:
        record = generate(seed, preset, split=split)
        if record["asks"] in asks and record["tags"]["value_type"] != "boolean":
            case = read_case(record)
            if len(case.candidates) >= (3 if wide else 1):
                out[case.asks].append(case)
    return out


def table(
    preset: str, episodes: int, asks: tuple[str, ...] = KINDS, wide: bool = True, split: str = "train"
) -> dict[str, dict[str, float]]:
    """Policy -> kind of question -> accuracy; the row "n" counts the cases."""
    measured = cases_of(preset, range(episodes), asks, wide, split)
    fitting = cases_of(preset, range(TRAIN_OFFSET, TRAIN_OFFSET + episodes), asks, wide, split)
    out: dict[str, dict[str, float]] = {"n": {a: float(len(c)) for a, c in measured.items()}}
    for name, policy in POLICIES.items():
        out[name] = {a: sum(score(c, policy(c)) for c in cases) / len(cases) for a, cases in measured.items()}
    out["logistic"] = {}
    for kind, cases in measured.items():
        policy = logistic_policy(fit_logistic(fitting[kind]))
        out["logistic"][kind] = sum(score(c, policy(c)) for c in cases) / len(cases)
    return out


EXAMPLE = """example:
  python -m eval.shortcuts --episodes 2000 --presets curriculum hard"""


def main(argv: list[str] | None = None) -> int:
    p = Parser("python -m eval.shortcuts", __doc__ or "", EXAMPLE)
    p.add_argument("--presets", nargs="+", default=["control", "curriculum", "hard"])
    p.add_argument("--episodes", type=int, default=2000)
    p.add_argument("--split", default="train", choices=("train", "validation"))
    p.add_argument("--all", action="store_true", help="also count episodes with fewer than three candidate values")
    args = p.read(argv)
    return answered("shortcuts", lambda: _run(args), "start it again")


def _run(args: argparse.Namespace) -> int:
    refuse_unknown(args.presets, PRESETS, "preset")
    for preset in args.presets:
        rows = table(preset, args.episodes, wide=not args.all, split=args.split)
        shown = [k for k in KINDS if k in rows["n"]]
        print(
            f"\n{preset}: {args.episodes} episodes"
            + ("" if args.all else ", those with three or more candidate values in the text")
        )
        print("| policy | " + " | ".join(shown) + " |\n|---|" + "---|" * len(shown))
        for name, row in rows.items():
            cells = [f"{row[k]:.0f}" if name == "n" else f"{100 * row[k]:.1f} %" for k in shown]
            print(f"| {name} | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
