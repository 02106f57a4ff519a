"""What must hold for every answer, not only for those that somebody thought of."""

from __future__ import annotations

import time
import unicodedata
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.grader_report import grade_case, read_lines
from rewards.currency import Verdict, grade
from rewards.words import listed

ROWS = read_lines(Path(__file__).parent / "data" / "grader_variations.jsonl")
rows = st.sampled_from(ROWS)

# (question, gold, other values of the same attribute)
FACTS = [
    ("Which city do I live in?", "Leiden", ["Bruges", "Aarhus", "Siena"]),
    ("How many lamps do I own?", "6", ["4", "9", "11"]),
    ("What do I drink at breakfast?", "mint tea", ["black coffee", "orange juice", "cold milk"]),
    ("What is my rent?", "$1,150", ["$980", "$1,020"]),
    ("When is my shift?", "7:15 am", ["8:30 am", "6:00 am"]),
    ("Which day is choir?", "Thursday", ["Monday", "Friday"]),
    ("How long is my commute?", "35 minutes", ["50 minutes", "20 minutes"]),
    ("Which bus do I take?", "bus 12", ["bus 7", "bus 31"]),
    ("How often do I swim?", "twice a week", ["once a week", "every day"]),
]


def verdict(row: dict, answer: str) -> str:
    return grade_case({**row, "answer": answer}).verdict


@settings(max_examples=150, deadline=None)
@given(rows, st.sampled_from(["spaces", "curly", "nbsp", "bold", "italic", "underscore", "decomposed"]))
def test_typography_never_changes_a_verdict(row: dict, how: str) -> None:
    answer = row["answer"]
    changed = {
        "spaces": lambda: "  " + answer.replace(" ", "   ") + " ",
        "curly": lambda: answer.replace("'", "’"),
        "nbsp": lambda: answer.replace(" ", "\u00a0"),
        "bold": lambda: f"**{answer.strip()}**" if answer.strip() and "*" not in answer else answer,
        "italic": lambda: f"*{answer.strip()}*" if answer.strip() and "*" not in answer else answer,
        "underscore": lambda: f"_{answer.strip()}_" if answer.strip() and "_" not in answer else answer,
        "decomposed": lambda: unicodedata.normalize("NFD", answer),
    }[how]()
    assert verdict(row, changed) == verdict(row, answer)


@settings(max_examples=150, deadline=None)
@given(rows, st.sampled_from([str.upper, str.lower, str.swapcase]))
def test_full_width_letters_and_case_never_change_a_verdict(row: dict, change) -> None:
    answer = row["answer"]
    wide = "".join(chr(ord(c) + 0xFEE0) if "0" <= c <= "9" or "A" <= c <= "Z" or "a" <= c <= "z" else c for c in answer)
    if "<" not in answer and "\\" not in answer:
        assert verdict(row, wide) == verdict(row, answer)
    assert verdict(row, change(answer)) == verdict(row, answer), (row["kind"], answer)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(FACTS),
    st.sampled_from([" or ", ", ", "/", " / ", "\n", "; ", ", or ", " | ", "\n- "]),
    st.data(),
)
def test_joined_candidates_are_never_correct(fact: tuple, joiner: str, data: st.DataObject) -> None:
    question, gold, others = fact
    chosen = data.draw(st.lists(st.sampled_from(others), min_size=1, max_size=len(others), unique=True))
    values = data.draw(st.permutations([gold, *chosen]))
    known = data.draw(st.booleans())
    graded = grade(joiner.join(values), gold, chosen if known else (), question=question)
    assert graded.verdict != "correct", graded.explanation
    if known:
        assert graded.verdict == "hedged"
        assert graded.r_stale == -1


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300), st.sampled_from(FACTS), st.booleans())
def test_grade_is_total(answer: str, fact: tuple, abstain: bool) -> None:
    question, gold, others = fact
    assert grade(answer, gold, others, question=question, abstain=abstain).verdict in get_args(Verdict)
    if answer.strip():
        assert grade("an answer", answer, others, question=answer).verdict in get_args(Verdict)


FRAGMENTS = st.sampled_from(
    [
        "\n",
        '"',
        *listed(
            "no not Leiden Bruges until before after from to or and so if then 6 six half past \\boxed{ }"
            " <think> </think>"
            " ~~ ** : , . ? $ 1 ,000 30 am may March 14 th every week twice a year - — ( ) ' → the your sister was now"
        ),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(FRAGMENTS, max_size=40).map(" ".join), st.sampled_from(FACTS))
def test_grade_is_total_on_pieces_of_its_own_grammar(answer: str, fact: tuple) -> None:
    question, gold, others = fact
    assert grade(answer, gold, others, question=question).verdict in get_args(Verdict)
    assert grade("Leiden", answer.strip() or "x", others, question=question).verdict in get_args(Verdict)


# What each sentence commits to, for a pair of values a and b of one attribute.
SENTENCES = [
    ("{a}.", "a"),
    ("I think it is {a}.", "a"),
    ("It is {a}, not {b}.", "a"),
    ("Not {b} but {a}.", "a"),
    ("It went from {b} to {a}.", "a"),
    ("{b} → {a}", "a"),
    ("{b} before, {a} now.", "a"),
    ("First {b}, then {a}.", "a"),
    ("{b} until May, {a} since then.", "a"),
    ("{b}... no wait, {a}.", "a"),
    ("It was {b}; now it is {a}.", "a"),
    ("{a} (previously {b})", "a"),
    ("The latest note says {a}; an older one says {b}.", "a"),
    ("I'm not sure why you ask, but it is {a}.", "a"),
    ("~~{b}~~ {a}", "a"),
    ("\\boxed{{{a}}}", "a"),
    ("Final answer: {a}", "a"),
    ("It is no longer {a}.", "wrong"),
    ("It used to be {a}.", "wrong"),
    ("It isn't {a}.", "wrong"),
    ("Either {b} or {a}.", "hedged"),
    ("Maybe {a}, maybe {b}.", "hedged"),
    ("I don't know.", "refused"),
]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact[1])
def test_sentences_mean_the_same_for_every_kind_of_value(fact: tuple) -> None:
    question, gold, others = fact
    for sentence, meant in SENTENCES:
        for a, b in ((gold, others[0]), (others[0], gold)):
            wanted = {"a": "correct" if a == gold else "stale"}.get(meant, meant)
            graded = grade(sentence.format(a=a, b=b), gold, others, question=question)
            assert graded.verdict == wanted, (sentence, a, b, graded.explanation)


UNITS = [
    "You live in Leiden, not Bruges. ",
    "Leiden or ",
    "5 ",
    "no, ",
    "((",
    "if Leiden then ",
    "~~a",
    "<s>x",
    "\\boxed{",
    "a\n",
    "1,",
    "your sister ",
    "no, Leiden, ",
    "Bruges until Leiden then ",
    "Answer: Leiden Answer: Bruges ",
    "Leiden unless Bruges; ",
    "one of Leiden; Bruges; ",
    "Leiden. Also Bruges. ",
    "2022/08/29 (Mon) 19:25 ",
    "5 + 7 = ",
]


@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_linearly(unit: str) -> None:
    """Four times the length must not take ten times as long (quadratic: sixteen), and 100 kB stay under seconds.

    The best times count: on a shared machine CPU seconds of the same work differ by 2.5 times, always upwards.
    """

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        start = time.process_time()
        grade(text, "Leiden", ["Bruges"], question="Which city do I live in?")
        grade(text, "7", ["5"], question="How many lamps do I own?")
        return time.process_time() - start

    small, large = min(seconds(25_000), seconds(25_000)), seconds(100_000)
    for _ in range(4):
        if large < 10 * small + 0.05:
            break
        large = min(large, seconds(100_000))
    assert large < 10 * small + 0.05
    assert large < 8.0
