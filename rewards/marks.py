"""What a cue does to the mentions in its own clause."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from rewards.clauses import Clause, Sentence
from rewards.cues import Cue
from rewards.lexicon import CHANGE_VERBS, PLACES
from rewards.mentions import Mention
from rewards.standings import Standing, question_mode
from rewards.text import Text
from rewards.values import Question
from rewards.words import words

NOW, GOTO = 10.0, 6.0
"""Ranks that "now" and "switched to" add."""
GUESS, WAS, _ONCE_FIRST = -5.0, -6.0, -8.0
_PREVIOUS_ASKED = 10.0

_SWAPS = words(
    "swapped swap swapping traded trading exchanged exchanging replaced replace replacing ditched dropped left gave"
)
_CONTRASTS = words("instead rather as unlike")
_PARTED = words("gave give given giving threw let put")
_EQUALS = words("possible likely possibility option")
_WHEN = words("last in at back earlier")
_COMPARED = words("earlier older old prior first")
_VERBAL = words("was were is are came comes went has have no been got gave preceded predates predated anymore")
_LANDMARK = words("outside near suburb suburbs edge outskirts north south east west")
_BE = words("was were has have had got is been")
LIGHT = words("the a an your my at in about around just only some roughly their his her")
_GOT = words("you i we got bought switched moved changed joined took became adopted chose to into on with the")

Placed = tuple[int, int, Cue]
"""A cue and the words that it spans: the first, and the one after the last."""


class ClauseRules:
    """Holds one answer while its mentions are weighed; here, clause by clause."""

    def __init__(self, text: Text, mentions: list[Mention], sentences: list[Sentence], asked: Question) -> None:
        self.text, self.low, self.sentences, self.asked = text, text.lower, sentences, asked
        self.mode = question_mode(asked)
        self.clauses = [c for s in sentences for c in s.clauses]
        self.standings: list[Standing] = [Standing(m, i, -1, -1) for i, m in enumerate(mentions)]
        for number, clause in enumerate(self.clauses):
            for k in clause.mentions:
                self.standings[k].sentence, self.standings[k].clause = clause.sentence, number

    def kill(self, s: Standing, why: str) -> None:
        if not s.dead:
            s.dead = why

    def mark_past(self, s: Standing, why: str) -> None:
        if s.past:
            return
        s.past = True
        if self.mode.previous:
            s.rank += _PREVIOUS_ASKED
            s.notes.append(f"past ({why})")
            if s.dead.startswith("current"):
                s.dead = ""
        else:
            self.kill(s, f"past ({why})")

    def mark_now(self, s: Standing, why: str, bonus: float = NOW) -> None:
        if s.now or s.past:
            return
        s.now = True
        if self.mode.previous:
            self.kill(s, f"current ({why})")
        else:
            s.rank += bonus
            s.notes.append(f"current ({why})")

    def quote(self, cue: Placed) -> str:
        return self.text.quote(cue[0], cue[1])

    def cues_of(self, clause: Clause) -> None:
        here = [self.standings[k] for k in clause.mentions]
        if not here:
            return
        firsts = [s.mention.first for s in here]
        self.late: list[tuple[Standing, str]] = []
        for cue in clause.cues:
            at = bisect_left(firsts, cue[0])
            after = here[at] if at < len(here) else None
            before = here[at - 1] if at else None
            if before is not None and before.mention.last > cue[0]:
                wide = before
                if cue[2] is Cue.NEG:
                    self.kill(wide, f"one part negated ({self.quote(cue)})")
                continue
            self.apply(cue, clause, before, after)
        self.directions(clause, here)
        for s, why in self.late:
            if not s.now:
                self.mark_past(s, why)

    def apply(self, cue: Placed, clause: Clause, before: Standing | None, after: Standing | None) -> None:
        """One cue of the clause, between the mention before it and the one after it."""
        why = self.quote(cue)
        match cue[2]:
            case Cue.PAST:
                self.past(cue, clause, before, after)
            case Cue.CURRENT:
                self.current(cue, clause, before, after)
            case Cue.NEG:
                target = after if self.low[cue[0]] in _CONTRASTS else after or before
                if target and not self.negates_leaving(cue, clause):
                    self.kill(target, f"negated ({why})")
            case Cue.LEAVE:
                self.left(cue, clause, before, after)
            case Cue.GOTO:
                if after and after.mention.first - cue[1] <= 6:
                    self.mark_now(after, why, GOTO)
                elif before and after is None and self.low[cue[0]] in ("took", "takes"):  # "M took over"
                    self.mark_now(before, why, GOTO)
            case Cue.HEDGE:
                self.hedge(cue, before, after)
            case Cue.FUTURE if after and not self.mode.future:
                self.kill(after, f"only planned ({why})")
            case Cue.ECHO if after:
                self.kill(after, f"echo of the question ({why})")
            case Cue.WAS:
                near = before if before is not None and cue[0] - before.mention.last <= 1 else after or before
                if near:
                    near.rank += 3.0 if self.mode.previous else WAS
            case Cue.UNTIL:
                self.until(cue, before, after)
            case Cue.BEFORE:
                self.before(cue, clause, before, after)
            case Cue.AFTER:
                if after and self.verges(cue[1], after.mention.first):
                    self.mark_past(after, why)
                elif after and before is None:
                    self.mark_now(after, why, GOTO)
            case Cue.FIRST:
                first = after or before
                if first and "first" not in self.asked.words:
                    first.rank += _ONCE_FIRST
                    first.notes.append("first")

    def past(self, cue: Placed, clause: Clause, before: Standing | None, after: Standing | None) -> None:
        """ "M last year", "formerly M", "Before it was M it was N"."""
        word, why = self.low[cue[0]], self.quote(cue)
        if word in ("started", "began") and "before" in self.low[max(0, cue[0] - 3) : cue[0]]:
            return  # "A before you started with B"
        if word == "before" and self.low[cue[1] - 1 : cue[1] + 1] == ["it", "was"] and after:
            other = self.next_mention(after)
            if other is not None:  # "Before it was A it was B"
                self.mark_past(other, why)
            return
        if word == "superseded" and after and self.close(cue[1], after.mention.first):
            self.mark_past(after, why)
            return
        if self.asks_of_the_past(cue):
            return
        target = self.nearest(cue, clause, before, after)
        if target and word == "last":
            self.late.append((target, why))  # "switched to M last week" says when, not that it is over
        elif target:
            self.mark_past(target, why)

    def asks_of_the_past(self, cue: Placed) -> bool:
        """Whether a word of the past belongs to what was asked, and so tells no value apart."""
        word = self.low[cue[0]]
        if word == "what" and self.mode.event:
            return True  # "Soup is what you had" to "What did I have?"
        adjectives = {"old", "original", "former", "first"}.intersection(self.low[cue[0] : cue[1]])
        named = cue[1] >= len(self.low) or self.low[cue[1]] in self.asked.words  # "my old landlady"
        if adjectives & self.asked.words and named and not self.mode.previous:
            return True
        if self.mode.event and (word in _WHEN or self.low[cue[1] - 1] == "ago"):
            return True
        return cue[1] - cue[0] == 1 and word in _COMPARED and word in self.asked.words

    def current(self, cue: Placed, clause: Clause, before: Standing | None, after: Standing | None) -> None:
        """ "now M", "M these days", "A, ever since B broke down"."""
        word, why = self.low[cue[0]], self.quote(cue)
        if word in ("new", "later") and word in self.asked.words:
            return
        if word == "ever" and after and self.close(cue[1], after.mention.first) and self.goes_on(after):
            self.mark_past(after, why)  # "A, ever since B broke down"
            return
        target = self.nearest(cue, clause, before, after)
        if target and not (word == "still" and any(note.startswith("doubtful") for note in target.notes)):
            self.mark_now(target, why)

    def left(self, cue: Placed, clause: Clause, before: Standing | None, after: Standing | None) -> None:
        """ "left M", "M has been dropped", "M retired"."""
        word, why = self.low[cue[0]], self.quote(cue)
        asked = cue[1] - cue[0] == 1 and word in self.asked.words  # "What have I dropped?"
        if after and after.mention.first - cue[1] <= 8 and not asked:
            self.leave(cue, clause, after)
        elif before and after is None and self.low[cue[0] - 1] in _BE and word not in self.asked.words:
            if cue[0] - before.mention.last <= 3 and not self.mode.event:  # "M has been dropped"
                self.mark_past(before, why)
        elif before and after is None and before.mention.last == cue[0] and not self.mode.event:
            ends = cue[1] >= clause.last or not self.low[cue[1]].isalpha()
            if ends:  # "M retired"
                self.mark_past(before, why)

    def hedge(self, cue: Placed, before: Standing | None, after: Standing | None) -> None:
        """ "maybe M"; "M, but N is equally possible" doubts both."""
        target, why = after or before, self.quote(cue)
        if not target:
            return
        self.doubt(target, why)
        rival = self.standings[target.index - 1] if target.index and target is before else target
        if self.low[cue[1] - 1] in _EQUALS and rival.key != target.key and rival.sentence == target.sentence:
            self.doubt(rival, why)

    def doubt(self, s: Standing, why: str) -> None:
        if not any(note.startswith("doubtful") for note in s.notes):
            s.rank += GUESS
            s.notes.append(f"doubtful ({why})")

    def until(self, cue: Placed, before: Standing | None, after: Standing | None) -> None:
        """ "M until May", "until May it was M", "M, until you moved to N"."""
        why = self.quote(cue)
        if before is None and after is not None and after.index:
            earlier = self.standings[after.index - 1]
            if earlier.sentence == after.sentence and earlier.key != after.key and not earlier.past:
                self.mark_past(earlier, why)
                self.mark_now(after, why, GOTO)
                return
        target = before or after
        if target and not (before is None and after is not None and after.mention.first == cue[1]):
            self.mark_past(target, why)

    def leave(self, cue: Placed, clause: Clause, after: Standing) -> None:
        """ "left M", "swapped M for", "swapped it for M"; "haven't left M" keeps M."""
        if any(c[2] is Cue.NEG and 0 <= cue[0] - c[1] <= 2 for c in clause.cues):
            return
        between = self.low[cue[1] : after.mention.first]
        if between and (between[0] in ("to", "for", "onto") or (between[0] == "by" and self.low[cue[0] - 1] in _BE)):
            self.mark_now(after, f"{self.quote(cue)} {between[0]}", GOTO)
            return
        for k, w in enumerate(between):
            if w in ("for", "with", "by", "and", "to") and any(x not in LIGHT for x in between[:k]):
                if w in ("for", "with", "by"):
                    self.mark_now(after, f"{self.quote(cue)} ... {w}", GOTO)
                return
        if len(between) <= 5:
            self.mark_past(after, self.quote(cue))

    def close(self, a: int, b: int) -> bool:
        """Whether only articles and the like stand between two places."""
        return b - a <= 3 and all(not w[0].isalpha() or w in LIGHT or w in PLACES for w in self.low[a:b])

    def verges(self, a: int, b: int) -> bool:
        """Like close, and across "getting", "you bought" too: "before getting the M"."""
        words = self.low[a:b]
        foreign = [w for w in words if w not in LIGHT and w not in _GOT and not w.endswith("ing")]
        named = len(foreign) == 1 and any(w in ("to", "at", "in", "with", "on", "of") for w in words)
        return b - a <= 5 and (not foreign or named) and not any(w in _BE for w in words)

    def nearest(self, cue: Placed, clause: Clause, before: Standing | None, after: Standing | None) -> Standing | None:
        """A time word marks what follows it when it opens the clause or touches it, else what precedes it."""
        if before is None or after is None:
            return before or after
        gap_after, gap_before = after.mention.first - cue[1], cue[0] - before.mention.last
        if gap_before <= 1 and self.low[cue[0]] in _VERBAL:
            return before
        return after if gap_after <= gap_before else before

    def before(self, cue: Placed, clause: Clause, before: Standing | None, after: Standing | None) -> None:
        why = self.quote(cue)
        if after and self.verges(cue[1], after.mention.first):  # "before M": the other one is the earlier
            if before is not None:
                self.mark_past(before, f"{why} {self.said(after)}")
                self.mark_now(after, why, GOTO)
                return
            following = self.next_mention(after)
            if following is not None:
                self.mark_past(following, f"{why} {self.said(after)}")
            return
        target = before or after
        if target is not None and not (self.mode.event and before is not None and not self.mode.previous):
            self.mark_past(target, why)

    def goes_on(self, s: Standing) -> bool:
        """Whether a word follows the mention, and so something is said of it."""
        last = s.mention.last
        return last < len(self.low) and self.low[last][0].isalpha()

    def next_mention(self, s: Standing) -> Standing | None:
        """The next mention in the same sentence."""
        at = s.index + 1
        if at < len(self.standings) and self.standings[at].sentence == s.sentence:
            return self.standings[at]
        return None

    def said(self, s: Standing) -> str:
        return self.text.quote(s.mention.first, s.mention.last)

    def negates_leaving(self, cue: Placed, clause: Clause) -> bool:
        """ "You haven't left Leiden" keeps Leiden."""
        for other in clause.cues:
            if other[2] is Cue.LEAVE and cue[1] <= other[0] <= cue[1] + 2:
                for k in clause.mentions:
                    s = self.standings[k]
                    if s.dead.startswith("past"):
                        s.dead, s.past = "", False
                return True
        return False

    def directions(self, clause: Clause, here: list[Standing]) -> None:
        """from A to B, to B from A, A → B, swapped A for B, replaced A with B."""
        low = self.low
        change = any(w in CHANGE_VERBS for w in low[clause.first : here[-1].mention.first])
        origin = [c for c in clause.cues if c[2] is Cue.FROM]
        if any("any" in low[max(clause.first, c[0] - 3) : c[0]] for c in origin):
            for s in here:  # "any day from A to B"
                self.kill(s, "one of a span")
            return
        firsts = [s.mention.first for s in here]
        for cue in origin:
            at = bisect_left(firsts, cue[1])
            target = here[at] if at < len(here) else None
            if target is None:
                continue
            gap = self.low[cue[1] : target.mention.first]
            if len(gap) > 3 or not all(w in LIGHT or w.endswith("ing") or not w[0].isalpha() for w in gap):
                continue
            goal = any(w in ("to", "→", "into") for w in low[target.mention.last : target.mention.last + 8])
            opens = cue[0] == clause.first and low[target.mention.last : target.mention.last + 1] == ["to"]
            if change or (goal and (target.mention.quantity is not None or len(here) > 1)) or opens:
                self.mark_past(target, "from")
        for a, b in pairwise(here):
            between = low[a.mention.last : b.mention.first]
            if a.key == b.key or not between or len(between) > 6:
                continue
            bare = [w for w in between if w not in LIGHT and not w.endswith("ing")]
            passive = (
                len(bare) >= 3
                and bare[0] in _BE
                and bare[-1] in ("by", "with")
                and bare[-2][-2:] in ("ed", "en", "ne", "wn")
            )
            if bare == ["to"] or passive:
                self.mark_past(a, " ".join(bare))
                self.mark_now(b, " ".join(bare), GOTO)
        for s in here:
            parted = low[s.mention.last : s.mention.last + 1] in (["up"], ["away"], ["out"], ["go"])
            if parted and not _PARTED.isdisjoint(low[max(clause.first, s.mention.first - 3) : s.mention.first]):
                self.mark_past(s, "given up")  # "You gave M up"
            i = s.mention.first - 1
            while i >= clause.first and low[i] in ("the", "a", "an", "your", "my", "about", "just"):
                i -= 1
            if i < clause.first:
                continue
            if s is not here[0] and (low[i] in _LANDMARK or (low[i] == "of" and low[i - 1] in _LANDMARK)):
                if here[0].key != s.key and not here[0].dead:
                    self.kill(s, f"only a landmark ({low[i]})")
                continue
            if low[i] in ("to", "into") and (change or origin) and not s.past:
                self.mark_now(s, "to", GOTO)
            elif low[i] in ("for", "with", "by") and not s.past:
                swap = any(w in _SWAPS for w in low[max(clause.first, i - 12) : i])
                if swap and s is not here[0]:
                    self.mark_now(s, low[i], GOTO)
