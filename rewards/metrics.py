"""Rates over graded rows, each with the rows that it leaves out and why.

A row is a mapping with ``id``, ``scored``, ``verdict``, ``abstain`` and ``stale`` (the superseded values of its
episode): the rows that the evaluator writes. Unscored rows are never counted in a numerator or a denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

UNSCORED, ABSTENTION, NO_STALE = "unscored", "abstention row", "no superseded value known"


@dataclass(frozen=True)
class Rate:
    """``hits`` of ``n`` rows; ``left_out`` maps a reason to the ids of the rows that were not looked at."""

    name: str
    hits: float
    n: int
    left_out: Mapping[str, tuple[str, ...]]

    @property
    def value(self) -> float | None:
        """The rate, or None when no row qualifies: an empty set has no rate."""
        return self.hits / self.n if self.n else None


def _split(rows: Sequence[Row], *, abstention: bool, stale_known: bool) -> tuple[list[Row], dict[str, tuple[str, ...]]]:
    """The rows that a rate looks at, and the others by reason."""
    kept: list[Row] = []
    out: dict[str, list[str]] = {}
    for row in rows:
        if not row["scored"]:
            reason = UNSCORED
        elif row["abstain"] and not abstention:
            reason = ABSTENTION
        elif stale_known and not row["stale"]:
            reason = NO_STALE
        else:
            kept.append(row)
            continue
        out.setdefault(reason, []).append(str(row["id"]))
    return kept, {reason: tuple(ids) for reason, ids in out.items()}


def _rate(name: str, rows: Sequence[Row], hit: Callable[[Row], bool], *, abstention: bool, stale_known: bool) -> Rate:
    kept, left_out = _split(rows, abstention=abstention, stale_known=stale_known)
    return Rate(name, sum(hit(row) for row in kept), len(kept), left_out)


def stale_rate(rows: Sequence[Row]) -> Rate:
    """Share of answers that commit to a superseded value, among rows that have one."""
    return _rate("stale rate", rows, lambda r: r["verdict"] == "stale", abstention=False, stale_known=True)


def hedge_rate(rows: Sequence[Row]) -> Rate:
    """Share of answers that do not commit to one value, among rows that have an answer."""
    return _rate("hedge rate", rows, lambda r: r["verdict"] == "hedged", abstention=False, stale_known=False)


def refusal_rate(rows: Sequence[Row]) -> Rate:
    """Share of answers that say they do not know: rightly on abstention rows (graded correct there), or wrongly."""
    return _rate("refusal rate", rows, _refuses, abstention=True, stale_known=False)


def _refuses(row: Row) -> bool:
    return row["verdict"] == ("correct" if row["abstain"] else "refused")


def false_abstention_rate(rows: Sequence[Row]) -> Rate:
    """Share of answers that refuse although the row has an answer."""
    return _rate("false-abstention rate", rows, _refuses, abstention=False, stale_known=False)


def fama(rows: Sequence[Row]) -> Rate:
    """Forgetting-aware memory accuracy, Memora (Uddin et al. 2026, arXiv 2604.20006, section 4.2):

        FAMA = max(0, MPA - lambda * (1 - FAA)),  lambda = N_forget / (N_presence + N_forget)

    MPA is the share of presence checks passed (here: the answer commits to the current value), FAA the share of
    forgetting checks passed (here: it does not rely on a superseded value: not stale, and not hedged with one). Every
    row is one presence check; a row with known superseded values is one forgetting check too. ``value`` is FAMA itself.
    """
    kept, left_out = _split(rows, abstention=False, stale_known=False)
    checked = [row for row in kept if row["stale"]]
    no_check = tuple(str(row["id"]) for row in kept if not row["stale"])
    if no_check:  # counted for presence, not for forgetting
        left_out = {**left_out, f"{NO_STALE} (forgetting check only)": no_check}
    if not kept:
        return Rate("FAMA", 0.0, 0, left_out)
    presence = sum(row["verdict"] == "correct" for row in kept) / len(kept)
    leaks = sum(row["r_stale"] == -1 for row in checked) / len(checked) if checked else 0.0
    weight = len(checked) / (len(kept) + len(checked))
    return Rate("FAMA", max(0.0, presence - weight * leaks) * len(kept), len(kept), left_out)


ALL = (stale_rate, hedge_rate, refusal_rate, false_abstention_rate, fama)
