"""LongMemEval-V2 grading: equal to the published code where that is promised, and strict as a person would be.

`data/lme_v2_strict.json` holds own questions with answers that are right and answers that are not;
`data/lme_v2_strict_official.json` holds answers to official questions, whose text and gold stay in the data folder.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rewards.judge import EndpointError, Judge, Messages
from rewards.lme_v2 import Grade, extract_boxed, grade, judge, needs_judge, parse_spec
from rewards.lme_v2_choices import options_of
from rewards.lme_v2_judge import messages
from rewards.lme_v2_published import MATCHERS, is_unknown, normalise_phrase, parse_verdict, split_phrases
from tests.conftest import ROOT, SHARED

DATA = ROOT / "tests" / "data"
OWN: dict[str, dict[str, Any]] = json.loads((DATA / "lme_v2_strict.json").read_text("utf-8"))
OFFICIAL: dict[str, dict[str, list[str]]] = json.loads((DATA / "lme_v2_strict_official.json").read_text("utf-8"))

PHRASES = "norm_phrase_set_match|separators=,;"
SPECS = (PHRASES, "norm_phrase_set_match_ordered|separators=,;", "mc_choice_match", "mc_choice_set_match")


@pytest.fixture(scope="module")
def parity() -> dict[str, Any]:
    file = SHARED / "parity" / "lme_v2.json"
    if not file.is_file():
        pytest.skip("parity numbers are not at ../shared/parity/lme_v2.json")
    return json.loads(file.read_text("utf-8"))


@pytest.fixture(scope="module")
def questions() -> list[dict[str, Any]]:
    """The official questions that need no judge."""
    file = SHARED / "data" / "longmemeval_v2" / "questions.jsonl"
    if not file.is_file():
        pytest.skip("LongMemEval-V2 is not at ../shared/data/longmemeval_v2")
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [row for row in rows if not needs_judge(row["eval_function"])]


def check(row: dict[str, Any], response: str, *, strict: bool) -> Grade:
    return grade(row["eval_function"], response, row["answer"], question=row["question"], strict=strict)


# --- equal to the published code -------------------------------------------------------------------------------------


def test_every_published_grader_vector(parity: dict[str, Any]) -> None:
    for case in parity["graders"]:
        name, options = parse_spec(case["spec"])
        assert MATCHERS[name](case["prediction"], case["gold"], options) is case["result"], case


def test_every_box_vector(parity: dict[str, Any]) -> None:
    for case in parity["boxed"]:
        assert extract_boxed(case["text"]) == case["boxed"], case
        assert is_unknown(extract_boxed(case["text"])) is case["is_unknown"], case


def test_every_normalisation_vector(parity: dict[str, Any]) -> None:
    for case in parity["normalize"]:
        assert normalise_phrase(case["in"]) == case["out"], case
        assert split_phrases(case["in"]) == case["split"], case


def test_every_spec_vector(parity: dict[str, Any]) -> None:
    for case in parity["spec_parse"]:
        if isinstance(case["result"], str):
            with pytest.raises(ValueError, match=re.escape(case["result"].split()[-1].strip("."))):
                parse_spec(case["spec"])
        else:
            assert list(parse_spec(case["spec"])) == case["result"], case


def test_every_judge_reply_vector(parity: dict[str, Any]) -> None:
    for case in parity["judge_parse"]:
        expected = None if isinstance(case["result"], str) else tuple(case["result"])
        assert parse_verdict(case["text"]) == expected, case


def test_unknown_scores_false_with_every_published_grader() -> None:
    assert not grade(PHRASES, r"\boxed{UNKNOWN}", "unknown").correct
    assert grade(PHRASES, r"\boxed{UNKNOWN.}", "unknown").correct, "only the bare word counts as unknown"


# --- the official questions ------------------------------------------------------------------------------------------


def test_every_gold_passes_its_own_grader(questions: list[dict[str, Any]]) -> None:
    assert len(questions) == 295
    for row in questions:
        for response in (row["answer"], rf"So it must be \boxed{{{row['answer']}}}."):
            for strict in (False, True):
                assert check(row, response, strict=strict).correct, (row["id"], strict, response)


def test_echoing_the_question_earns_nothing(questions: list[dict[str, Any]]) -> None:
    """The published graders accept the echo of 53 phrase questions, and of those whose example box holds the gold."""
    phrase = [row for row in questions if row["eval_function"].startswith("norm_phrase")]
    assert sum(check(row, row["question"], strict=False).correct for row in phrase) == 53
    for row in questions:
        question = row["question"]
        bare = re.sub(r"\\boxed\{A?\}", "", question)
        for echo in (question, f"\\boxed{{{question}}}", f"Q: {question} END", question.upper(), bare, bare.title()):
            result = check(row, echo, strict=True)
            assert not result.correct, (row["id"], result)


def test_listing_every_option_earns_nothing(questions: list[dict[str, Any]]) -> None:
    """Lettered options, true and false, the number words, and every gold of the benchmark."""
    golds = "; ".join(sorted({row["answer"] for row in questions}))
    numbers = "zero, one, two, three, four, five, six, seven, eight, nine, ten, 20, 100, 300"
    accepted = 0
    for row in questions:
        options = options_of(row["question"])
        lettered = [line for line in row["question"].splitlines() if re.match(r"\(?[A-Z][.)]\s", line)]
        lists = [golds, numbers, "true or false", "true, false", ", ".join(options), "".join(options)]
        if lettered:
            lists += ["\n".join(lettered), "; ".join(lettered), " or ".join(options), "\\boxed{A} \\boxed{B}"]
        slashes = re.findall(r"\w[\w -]*(?:/\w[\w -]*){2,}", row["question"])
        named = re.findall(r"`([^`]+)`", row["question"])
        lists += slashes + [", ".join(part.split("/")) for part in slashes]
        if row["answer"] in named and len(named) > 1:
            lists.append(", ".join(named))
        for text in filter(None, lists):
            response = text if "boxed" in text else f"\\boxed{{{text}}}"
            accepted += check(row, response, strict=False).correct
            result = check(row, response, strict=True)
            assert not result.correct, (row["id"], text, result)
    assert accepted > 200, "the lists no longer fool the published graders: they test nothing"


@pytest.mark.parametrize("wanted", ["right", "wrong"])
def test_answers_to_official_questions(questions: list[dict[str, Any]], wanted: str) -> None:
    rows = {row["id"]: row for row in questions}
    for key, cases in OFFICIAL.items():
        for answer in cases[wanted]:
            result = check(rows[key], f"\\boxed{{{answer}}}", strict=True)
            assert result.correct is (wanted == "right"), (key, answer, result)


# --- strict, as a person would ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OWN)
def test_strict_accepts_right_answers_only(name: str) -> None:
    case = OWN[name]
    for wanted in ("right", "wrong"):
        for response in case[wanted]:
            result = grade(case["eval_function"], response, case["gold"], question=case["question"], strict=True)
            assert result.correct is (wanted == "right"), (wanted, response, result)


@pytest.mark.parametrize(
    ("options", "gold", "right", "wrong"),
    [
        ("separators=none", "alpha, beta", "alpha, beta", "beta"),
        ('separators=["->"]', "alpha -> beta", "beta, alpha", "alpha"),
    ],
)
def test_a_spec_may_name_other_separators(options: str, gold: str, right: str, wrong: str) -> None:
    for strict in (False, True):
        graded = [
            grade(f"norm_phrase_set_match|{options}", f"\\boxed{{{text}}}", gold, strict=strict)
            for text in (right, wrong)
        ]
        assert [result.correct for result in graded] == [True, False], (strict, graded)


def test_a_spec_that_needs_a_judge_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a judge"):
        grade("llm_abstention_checker", "x", "y")
    with pytest.raises(ValueError, match="needs no judge"):
        judge("mc_choice_match", "x", "y", Judge(lambda _: "", "m"), question="")
    with pytest.raises(ValueError, match="no option 'sepparators'"):
        grade("norm_phrase_set_match|sepparators=,", "x", "y")


# --- any text, in linear time ----------------------------------------------------------------------------------------

PIECES = st.sampled_from(["\\boxed{", "\\text{", "B.", "(C)", "alpha", "not ", "true", "or", ", ", "; ", "6,000", "-1"])
MARKUP = st.sampled_from(
    ["<think>", "</think>", "**", "1) ", "2) ", "because ", "the answer is ", "\x08oxed{", "\ud800"]
)
SIGNS = st.sampled_from("}{A6$\\=½ﷺ\x00\n ")
ANYTHING = st.one_of(
    st.text(), st.lists(st.one_of(PIECES, MARKUP, SIGNS, st.text(max_size=3)), max_size=30).map("".join)
)
ASKED = "Which one (alpha/beta)? Use \\boxed{}.\nA. alpha\nB. beta\nC. alpha beta\n"


@settings(max_examples=300, deadline=None)
@given(response=ANYTHING, gold=st.one_of(st.sampled_from(["A", "true", "alpha, 6", "A,B"]), st.text(max_size=20)))
@example(response="\\boxed{", gold="")
@example(response="{" * 50, gold="6")
def test_grading_is_total(response: str, gold: str) -> None:
    for spec in SPECS:
        for question in ("", ASKED):
            for strict in (False, True):
                result = grade(spec, response, gold, question=question, strict=strict)
                assert isinstance(result.correct, bool)
                assert result.explanation


@settings(max_examples=200, deadline=None)
@given(extra=st.text(alphabet="qxzw", min_size=3, max_size=8), before=st.booleans())
def test_one_more_item_is_never_accepted(extra: str, before: bool) -> None:
    answer = f"{extra}, alpha, beta" if before else f"alpha, beta, {extra}"
    assert not grade(PHRASES, f"\\boxed{{{answer}}}", "alpha, beta", strict=True).correct
    assert grade(PHRASES, f"\\boxed{{{answer}}}", "alpha, beta").correct


@pytest.mark.parametrize(
    "unit", ["{", "\\boxed{", "\\boxed{A}, ", "alpha, ", "((", "111 ", "1", "<think>", " ", "not A "]
)
def test_time_grows_with_the_length_only(unit: str) -> None:
    """A quadratic grader would take minutes on 60,000 characters; this takes a second or two."""
    response = unit * (60_000 // len(unit))
    start = time.perf_counter()
    for spec, gold in zip(SPECS, ("alpha, beta", "alpha, beta", "A", "A,B"), strict=True):
        for strict in (False, True):
            grade(spec, response, gold, question=ASKED, strict=strict)
    assert time.perf_counter() - start < 15


# --- the judge -------------------------------------------------------------------------------------------------------

ABSTENTION, GOTCHAS = "llm_abstention_checker|require_non_empty=true", "llm_gotchas_checker|require_non_empty=true"


def answering(reply: str, seen: list[Messages] | None = None) -> Judge:
    def complete(asked: Messages) -> str:
        if seen is not None:
            seen.append(asked)
        return reply

    return Judge(complete, "judge-1")


@pytest.mark.parametrize("spec", [ABSTENTION, GOTCHAS])
def test_a_verdict_is_kept_with_what_made_it(spec: str) -> None:
    seen: list[Messages] = []
    good = judge(
        spec, "There is no such page. \\boxed{none}", "No such page", answering('{"label": 1}', seen), question="Q"
    )
    assert (good.correct, good.scored, good.model, good.answer) == (True, True, "judge-1", "none")
    assert re.fullmatch(r"[0-9a-f]{12}", good.prompt_hash)
    for part in ("Q", "No such page", "There is no such page.", "none"):
        assert part in seen[0][1]["content"], part
    bad = judge(spec, "It is on page 3", "No such page", answering('{"label": 0, "reason": "follows"}'), question="Q")
    assert (bad.correct, bad.explanation) == (False, "follows")


def test_the_two_rubrics_differ_and_are_hashed() -> None:
    one, two = (judge(spec, "x", "y", answering('{"label": 1}'), question="") for spec in (ABSTENTION, GOTCHAS))
    assert one.prompt_hash != two.prompt_hash
    assert messages("llm_abstention_checker", "x", "y", "q")[0] != messages("llm_gotchas_checker", "x", "y", "q")[0]


def test_a_judge_that_fails_leaves_the_row_unscored() -> None:
    def down(_: Messages) -> str:
        raise EndpointError("503 Service Unavailable")

    failed = judge(ABSTENTION, "x", "y", Judge(down, "judge-1"), question="")
    assert (failed.correct, failed.scored) == (None, False)
    assert "503" in failed.explanation
    for reply in ("", "The answer is 1", "<html>", '{"label": 2}', "[" * 100_000, '{"label": ' + "[" * 100_000):
        mute = judge(ABSTENTION, "x", "y", answering(reply), question="")
        assert mute.correct is None, reply[:40]


def test_what_needs_no_call_makes_none() -> None:
    def never(_: Messages) -> str:
        raise AssertionError("asked")

    for response, gold in (("", "y"), ("  ", "y"), ("x", " "), (r"\boxed{UNKNOWN}", "y")):
        result = judge(GOTCHAS, response, gold, Judge(never, "judge-1"), question="")
        assert (result.correct, result.model) == (False, "")
