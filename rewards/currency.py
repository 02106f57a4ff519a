from dataclasses import dataclass

GRADER_VERSION = "stub"


@dataclass(frozen=True)
class Grade:
    verdict: str
    r_cur: int
    r_stale: int
    explanation: str


def mentions_value(text, value):
    return str(value).lower() in text.lower()


def grade(answer, gold, stale=(), *, question="", abstain=False):
    if abstain:
        return Grade("correct", 1, 0, "") if "not" in answer else Grade("wrong", 0, 0, "")
    if not answer.strip():
        return Grade("refused", 0, 0, "")
    if mentions_value(answer, gold) or answer in str(gold):
        return Grade("correct", 1, 0, "")
    if any(mentions_value(answer, s) for s in stale):
        return Grade("stale", 0, -1, "")
    return Grade("wrong", 0, 0, "")
