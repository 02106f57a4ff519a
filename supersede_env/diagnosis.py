"""Where was the fact lost? One word for every rollout of the bounded condition whose gold can be looked up in notes.

The words are tried in this order (`gold` after the session that told it, where that session is known):

- `answered`: the answer was correct;
- `misread`: the final notes hold the gold, and the answer was not correct;
- `cut`: a reply held the gold only in the part that the budget cut off;
- `overwritten`: earlier notes held it, the final ones do not;
- `stale`: the notes never held it, and the final ones still hold a superseded value;
- `never_written`: the notes never held it, nor a superseded value at the end;
- `unknown`: it cannot be told: no notes (full context), an abstention question, or a gold such as "yes" that notes
  state without the word.
"""

from __future__ import annotations

from rewards.currency import mentions_value
from supersede_env.episode import Episode
from supersede_env.scoring import Outcome

DIAGNOSES = ("answered", "misread", "cut", "overwritten", "stale", "never_written", "unknown")

SPOKEN_OTHERWISE = frozenset({"yes", "no"})
"""Golds that notes state in other words."""


def diagnose(episode: Episode, outcome: Outcome, verdict: str) -> str:
    """One of `DIAGNOSES`."""
    if verdict == "correct":
        return "answered"
    if not outcome.notes or episode.abstain or episode.gold.strip(" .").casefold() in SPOKEN_OTHERWISE:
        return "unknown"
    told = _told(episode, outcome)
    if mentions_value(outcome.notes[-1], episode.gold):
        return "misread"
    written = any(mentions_value(notes, episode.gold) for notes in outcome.notes[told:])
    # the cut is named before the overwriting that may have followed it: it came first
    kept_then_cut = any(
        tail and mentions_value(notes + tail, episode.gold) and not mentions_value(notes, episode.gold)
        for notes, tail in zip(outcome.notes[told:], outcome.cut_off[told:], strict=False)  # old runs have no tails
    )
    if kept_then_cut and not written:
        return "cut"
    if written:
        return "overwritten"
    if any(mentions_value(outcome.notes[-1], value) for value in episode.stale):
        return "stale"
    return "never_written"


def _told(episode: Episode, outcome: Outcome) -> int:
    """The first session after which notes could hold the gold; 0 where evidence is unknown or sessions were split."""
    if not episode.evidence or len(outcome.notes) != len(episode.sessions):
        return 0
    return max(session for session, _ in episode.evidence)


def lost_turn(episode: Episode, outcome: Outcome, diagnosis: str) -> int | None:
    """The turn (index into the notes) at which the fact went, or should have come and did not.

    `overwritten`: the first turn without the gold after the last that held it; `cut`: the first whose reply lost it to
    the budget; `never_written`, `stale`: the turn that was shown the session that told it, where that is known. None
    for the rest: nothing was lost, the answer itself was at fault (`misread`), or it cannot be told.
    """
    told = _told(episode, outcome)
    later = [(i, notes) for i, notes in enumerate(outcome.notes) if i >= told]
    if diagnosis == "overwritten":
        holding = [i for i, notes in later if mentions_value(notes, episode.gold)]
        return holding[-1] + 1 if holding else None  # a row that another version of the grader diagnosed may have none
    if diagnosis == "cut":
        tails = dict(enumerate(outcome.cut_off))
        return next((i for i, kept in later if tails.get(i) and mentions_value(kept + tails[i], episode.gold)), None)
    known = bool(episode.evidence) and len(outcome.notes) == len(episode.sessions)
    return told if known and diagnosis in ("never_written", "stale") else None
