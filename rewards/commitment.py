"""Which of the values that an answer mentions does it stand behind?

Every mention gets a standing from the cues around it: dead (negated, past, someone else's, an echo, corrected away,
only planned) or a rank. A statement ranks above a guess, "now" above a bare statement, a conclusion above what led to
it, a box above everything. The mentions at the top decide; when they disagree, the answer does not commit.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field

from rewards.clauses import Clause, Sentence
from rewards.entities import asked_about, belongs_to_other
from rewards.lexicon import CHANGE_VERBS, Cue
from rewards.mentions import Mention
from rewards.text import BOX_CLOSE, BOX_OPEN, Text
from rewards.values import Question

STATED = 30.0
_BOXED, _FINAL, _SO, _NOW, _GOTO, _HEADLINE, _THEN = 60.0, 20.0, 13.0, 10.0, 6.0, 7.0, 5.0
_GUESS, _WAS, _ASIDE, _ONCE_FIRST = -5.0, -6.0, -15.0, -8.0
_BONUS_PREVIOUS = 10.0

_SO_WORDS = frozenset("so therefore thus hence consequently accordingly ultimately overall meaning which".split())
_PRONOUNS = frozenset("it that this which they those it's that's these".split())
_EXPLAINERS = frozenset("reasoning explanation rationale justification why because details background context".split())
_SWAPS = frozenset(
    "swapped swap swapping traded trading exchanged exchanging replaced replace replacing ditched dropped left gave".split()
)
_WHEN = frozenset(("last", "in", "at", "back", "earlier"))
_COMPARED = frozenset(("earlier", "older", "old", "prior", "first"))
_DENIED = frozenset(
    "right true correct current valid accurate the it yours anymore so up case your what where mine".split()
)
_VERBAL = frozenset("was were is are came comes went has have no been got gave preceded predates predated anymore".split())
_LANDMARK = frozenset("outside near suburb suburbs edge outskirts north south east west".split())
_BE = frozenset("was were has have had got is been".split())
_LIGHT = frozenset("the a an your my at in about around just only some roughly their his her".split())
_GOT = frozenset("you i we got bought switched moved changed joined took became adopted chose to into on with the".split())


@dataclass(slots=True, eq=False)
class Standing:
    mention: Mention
    index: int
    """Its place among all mentions of the answer."""
    sentence: int
    clause: int
    rank: float = STATED
    dead: str = ""
    """Why the mention does not count, "" while it does."""
    notes: list[str] = field(default_factory=list)
    past: bool = False
    now: bool = False
    final: bool = False

    @property
    def key(self) -> str:
        return self.mention.key


@dataclass(frozen=True)
class Mode:
    previous: bool
    """The question asks for a value that no longer holds."""
    future: bool
    """The question asks about a plan."""
    event: bool
    """The question asks about something that happened: "last month" or "ago" say when, not that it is over."""


_PREVIOUS = frozenset("previous previously former formerly initially originally original prior earlier".split())
_FORMER_PERSON = re.compile(
    r"\b(?:former|previous|prior|old|earlier) (?:\w+ ){0,1}(?:manager|boss|colleague|company|employer|coworker|supervisor"
    r"|roommate|conversations?|chats?|discussions?|sessions?|messages?)\b"
)
_NOW_WORDS = frozenset("currently now current still latest nowadays today recent recently presently".split())


def question_mode(asked: Question) -> Mode:
    words = asked.words
    lowered = asked.text.lower()
    previous = "before" in words or "used to" in lowered or "until" in words
    if not words & _NOW_WORDS:
        previous = previous or (bool(words & _PREVIOUS) and not _FORMER_PERSON.search(lowered)) or "at first" in lowered or "to begin with" in lowered
        previous = previous or "start out" in lowered or "started out" in lowered or "switched from" in lowered
        previous = previous or ("old" in words and bool(words & {"was", "were", "did", "had"}))
        previous = previous or "was my first" in lowered or "change from" in lowered or "switch from" in lowered
    future = bool(words & {"plan", "planning", "planned", "going", "will", "upcoming", "next", "intend", "hoping", "want"})
    if "first" in words and ("or" in words or "earliest" in words):
        previous = True
    event = bool(words & {"did", "was", "were", "had", "ago"}) and not words & (_NOW_WORDS - {"recent", "latest"})
    return Mode(previous, future, event)


class Resolver:
    """Holds one answer while its mentions are weighed."""

    def __init__(self, text: Text, mentions: list[Mention], sentences: list[Sentence], asked: Question) -> None:
        self.text, self.low, self.sentences, self.asked = text, text.lower, sentences, asked
        self.mode = question_mode(asked)
        self.clauses = [c for s in sentences for c in s.clauses]
        self.standings: list[Standing] = [Standing(m, i, -1, -1) for i, m in enumerate(mentions)]
        for number, clause in enumerate(self.clauses):
            for k in clause.mentions:
                self.standings[k].sentence, self.standings[k].clause = clause.sentence, number
        self.boxed = BOX_OPEN in self.low

    def run(self) -> list[Standing]:
        if not self.standings:
            return []
        for clause in self.clauses:
            self.cues_of(clause)
        self.carry_over()
        self.sequence()
        self.coordinate()
        self.people()
        for sentence in self.sentences:
            self.sentence_wide(sentence)
        self.echoed_options()
        self.conclusions()
        self.boxes()
        self.headline()
        self.corrections()
        return self.standings

    # -- marks -------------------------------------------------------------------------------------------------------

    def kill(self, s: Standing, why: str) -> None:
        if not s.dead:
            s.dead = why

    def mark_past(self, s: Standing, why: str) -> None:
        if s.past:
            return
        s.past = True
        if self.mode.previous:
            s.rank += _BONUS_PREVIOUS
            s.notes.append(f"past ({why})")
            if s.dead.startswith("current"):
                s.dead = ""
        else:
            self.kill(s, f"past ({why})")

    def mark_now(self, s: Standing, why: str, bonus: float = _NOW) -> None:
        if s.now or s.past:
            return
        s.now = True
        if self.mode.previous:
            self.kill(s, f"current ({why})")
        else:
            s.rank += bonus
            s.notes.append(f"current ({why})")

    def quote(self, cue: tuple[int, int, Cue]) -> str:
        return self.text.quote(cue[0], cue[1])

    # -- cues within a clause ----------------------------------------------------------------------------------------

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

    def apply(self, cue: tuple[int, int, Cue], clause: Clause, before: Standing | None, after: Standing | None) -> None:
        kind, why = cue[2], self.quote(cue)
        word = self.low[cue[0]]
        if kind is Cue.PAST:
            adjectives = {"old", "original", "former", "first"}.intersection(self.low[cue[0] : cue[1]])
            if adjectives & self.asked.words and not self.mode.previous:
                return
            if self.mode.event and (word in _WHEN or self.low[cue[1] - 1] == "ago") or (
                cue[1] - cue[0] == 1 and word in _COMPARED and word in self.asked.words
            ):
                return
            target = self.nearest(cue, clause, before, after)
            if target and word == "last":
                self.late.append((target, why))  # "switched to M last week" says when, not that it is over
            elif target:
                self.mark_past(target, why)
        elif kind is Cue.CURRENT:
            if word in ("new", "later") and word in self.asked.words:
                return
            target = self.nearest(cue, clause, before, after)
            if target:
                self.mark_now(target, why)
        elif kind is Cue.NEG:
            target = after or before
            if target and not self.negates_leaving(cue, clause):
                self.kill(target, f"negated ({why})")
        elif kind is Cue.LEAVE:
            if after and after.mention.first - cue[1] <= 8 and word not in self.asked.words:
                self.leave(cue, clause, after)
            elif before and after is None and before.mention.last == cue[0] and not self.mode.event:
                if cue[1] >= clause.last or not self.low[cue[1]].isalpha():  # "M retired"
                    self.mark_past(before, why)
        elif kind is Cue.GOTO:
            if after and after.mention.first - cue[1] <= 6:
                self.mark_now(after, why, _GOTO)
            elif before and after is None and word in ("took", "takes"):  # "M took over"
                self.mark_now(before, why, _GOTO)
        elif kind is Cue.HEDGE:
            target = after or before
            if target:
                target.rank += _GUESS
                target.notes.append(f"doubtful ({why})")
        elif kind is Cue.FUTURE:
            if after and not self.mode.future:
                self.kill(after, f"only planned ({why})")
        elif kind is Cue.ECHO:
            if after:
                self.kill(after, f"echo of the question ({why})")
        elif kind is Cue.WAS:
            target = before if before is not None and cue[0] - before.mention.last <= 1 else after or before
            if target:
                if self.mode.previous:
                    target.rank += 3.0
                else:
                    target.rank += _WAS
        elif kind is Cue.UNTIL:
            self.until(cue, before, after)
        elif kind is Cue.BEFORE:
            self.before(cue, clause, before, after)
        elif kind is Cue.AFTER:
            if after and self.verges(cue[1], after.mention.first):
                self.mark_past(after, why)
            elif after and before is None:
                self.mark_now(after, why, _GOTO)
        elif kind is Cue.FIRST:
            target = after or before
            if target and "first" not in self.asked.words:
                target.rank += _ONCE_FIRST
                target.notes.append("first")

    def until(self, cue: tuple[int, int, Cue], before: Standing | None, after: Standing | None) -> None:
        """"M until May", "until May it was M", "M, until you moved to N"."""
        why = self.quote(cue)
        if before is None and after is not None and after.index:
            earlier = self.standings[after.index - 1]
            if earlier.sentence == after.sentence and earlier.key != after.key and not earlier.past:
                self.mark_past(earlier, why)
                self.mark_now(after, why, _GOTO)
                return
        target = before or after
        if target and not (before is None and after is not None and after.mention.first == cue[1]):
            self.mark_past(target, why)

    def leave(self, cue: tuple[int, int, Cue], clause: Clause, after: Standing) -> None:
        """"left M", "swapped M for", "swapped it for M"; "haven't left M" keeps M."""
        if any(c[2] is Cue.NEG and 0 <= cue[0] - c[1] <= 2 for c in clause.cues):
            return
        between = self.low[cue[1] : after.mention.first]
        if between and (between[0] in ("to", "for", "onto") or (between[0] == "by" and self.low[cue[0] - 1] in _BE)):
            self.mark_now(after, f"{self.quote(cue)} {between[0]}", _GOTO)
            return
        for k, w in enumerate(between):
            if w in ("for", "with", "by", "and", "to") and any(x not in _LIGHT for x in between[:k]):
                if w in ("for", "with", "by"):
                    self.mark_now(after, f"{self.quote(cue)} ... {w}", _GOTO)
                return
        if len(between) <= 5:
            self.mark_past(after, self.quote(cue))

    def close(self, a: int, b: int) -> bool:
        """Whether only articles and the like stand between two places."""
        return b - a <= 3 and all(not w[0].isalpha() or w in _LIGHT for w in self.low[a:b])

    def verges(self, a: int, b: int) -> bool:
        """Like close, and across "getting", "you bought" too: "before getting the M"."""
        words = self.low[a:b]
        foreign = [w for w in words if w not in _LIGHT and w not in _GOT and not w.endswith("ing")]
        named = len(foreign) == 1 and any(w in ("to", "at", "in", "with", "on", "of") for w in words)
        return b - a <= 5 and (not foreign or named) and not any(w in _BE for w in words)

    def nearest(self, cue: tuple[int, int, Cue], clause: Clause, before: Standing | None, after: Standing | None) -> Standing | None:
        """A time word marks what follows it when it opens the clause or touches it, else what precedes it."""
        if before is None or after is None:
            return before or after
        gap_after, gap_before = after.mention.first - cue[1], cue[0] - before.mention.last
        if gap_before <= 1 and self.low[cue[0]] in _VERBAL:
            return before
        return after if gap_after <= gap_before else before

    def before(self, cue: tuple[int, int, Cue], clause: Clause, before: Standing | None, after: Standing | None) -> None:
        why = self.quote(cue)
        if after and self.verges(cue[1], after.mention.first):  # "before M": the other one is the earlier
            if before is not None:
                self.mark_past(before, f"{why} {self.words(after)}")
                self.mark_now(after, why, _GOTO)
                return
            following = self.next_mention(after)
            if following is not None:
                self.mark_past(following, f"{why} {self.words(after)}")
            return
        target = before or after
        if target is not None and not (self.mode.event and before is not None and not self.mode.previous):
            self.mark_past(target, why)

    def next_mention(self, s: Standing) -> Standing | None:
        """The next mention in the same sentence."""
        at = s.index + 1
        if at < len(self.standings) and self.standings[at].sentence == s.sentence:
            return self.standings[at]
        return None

    def words(self, s: Standing) -> str:
        return self.text.quote(s.mention.first, s.mention.last)

    def negates_leaving(self, cue: tuple[int, int, Cue], clause: Clause) -> bool:
        """"You haven't left Porto" keeps Porto."""
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
        firsts = [s.mention.first for s in here]
        for cue in origin:
            at = bisect_left(firsts, cue[1])
            target = here[at] if at < len(here) else None
            if target is None or not self.close(cue[1], target.mention.first):
                continue
            goal = any(w in ("to", "→", "into") for w in low[target.mention.last : target.mention.last + 8])
            if change or goal and target.mention.quantity is not None or (goal and len(here) > 1):
                self.mark_past(target, "from")
        for a, b in zip(here, here[1:], strict=False):
            between = low[a.mention.last : b.mention.first]
            if a.key == b.key or not between or len(between) > 6:
                continue
            bare = [w for w in between if w not in _LIGHT]
            passive = len(bare) >= 3 and bare[0] in _BE and bare[-1] in ("by", "with") and bare[-2][-2:] in ("ed", "en", "ne", "wn")
            if bare == ["to"] or passive:
                self.mark_past(a, " ".join(bare))
                self.mark_now(b, " ".join(bare), _GOTO)
        for s in here:
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
                self.mark_now(s, "to", _GOTO)
            elif low[i] in ("for", "with", "by") and not s.past:
                swap = any(w in _SWAPS for w in low[max(clause.first, i - 12) : i])
                if swap and s is not here[0]:
                    self.mark_now(s, low[i], _GOTO)

    # -- between clauses ---------------------------------------------------------------------------------------------

    def carry_over(self) -> None:
        """A clause of cues alone colours its neighbour: "Earlier, M"; "M, but that is outdated"; A → B."""
        last: Standing | None = None
        for number, clause in enumerate(self.clauses):
            if clause.mentions:
                if clause.opener == "→" and number and self.clauses[number - 1].mentions:
                    self.mark_past(self.standings[self.clauses[number - 1].mentions[-1]], "→")
                    self.mark_now(self.standings[clause.mentions[0]], "→", _GOTO)
                last = self.standings[clause.mentions[-1]]
                continue
            if clause.opener == "→" and last is not None and last.clause == number - 1:
                self.mark_past(last, "→")
            if clause.opener == "(" and last is not None and last.clause >= number - 1:
                if self.remark(clause, last):
                    continue
            cue = next((c for c in clause.cues if c[2] in (Cue.PAST, Cue.CURRENT, Cue.NEG, Cue.UNTIL, Cue.BEFORE, Cue.AFTER, Cue.LEAVE)), None)
            if cue is None:
                continue
            pronoun = any(w in _PRONOUNS for w in self.low[max(clause.first, cue[0] - 3) : cue[0] + 1]) and (
                cue[0] - clause.first <= 4
            )
            if last is not None and pronoun and clause.sentence - last.sentence <= 1 and cue[2] is not Cue.CURRENT:
                if cue[2] is Cue.NEG:
                    rest = self.low[cue[1] : clause.last]
                    if any(c[2] is Cue.HEDGE for c in clause.cues) or (rest and rest[0] not in _DENIED):
                        continue
                    self.kill(last, f"negated ({self.text.quote(clause.first, clause.last)})")
                    continue
                if cue[2] in (Cue.PAST, Cue.UNTIL, Cue.LEAVE):
                    self.mark_past(last, self.text.quote(clause.first, clause.last))
                    continue
            following = self.clauses[number + 1] if number + 1 < len(self.clauses) else None
            if following is None or not following.mentions or following.sentence != clause.sentence:
                continue
            if following.opener not in (",", ":", "—", ")", "("):
                continue
            target = self.standings[following.mentions[0]]
            if cue[2] in (Cue.PAST, Cue.UNTIL, Cue.BEFORE):
                if not (target.now and not target.past):
                    self.mark_past(target, self.quote(cue))
            elif cue[2] in (Cue.CURRENT, Cue.AFTER):
                self.mark_now(target, self.quote(cue))

    def remark(self, clause: Clause, last: Standing) -> bool:
        """"M (old)", "M (until May)", "M (since 2022)"."""
        words = self.low[clause.first : clause.last]
        if words == ["old"] or words == ["older"]:
            self.mark_past(last, "old")
            return True
        for cue in clause.cues:
            if cue[2] in (Cue.PAST, Cue.UNTIL):
                self.mark_past(last, self.quote(cue))
                return True
            if cue[2] is Cue.CURRENT:
                self.mark_now(last, self.quote(cue))
                return True
        return False

    def sequence(self) -> None:
        """"A came first, then B": the later one, once the first is marked as such."""
        for clause in self.clauses:
            cue = next((c for c in clause.cues if c[2] is Cue.THEN), None)
            if cue is None or not clause.mentions:
                continue
            target = next((self.standings[k] for k in clause.mentions if self.standings[k].mention.first >= cue[1]), None)
            if target is None:
                continue
            earlier = self.standings[target.index - 1] if target.index else None
            if earlier is None or earlier.sentence != target.sentence:
                continue
            ordered = earlier.past or "first" in earlier.notes or earlier.rank < STATED or earlier.now
            if ordered:
                if self.mode.previous:
                    self.mark_past(earlier, "then")
                    self.mark_now(target, "then")
                else:
                    target.rank += _THEN + (_GOTO if earlier.now else 0.0)
                    target.notes.append("then")

    def joined(self, a: Standing, b: Standing) -> str:
        """How two neighbouring mentions are strung together: "or", "and", "," or "" when they are not."""
        between = self.low[a.mention.last : b.mention.first]
        if not between:
            return ","
        if len(between) > 6:
            return ""
        kind = ","
        for w in between:
            if w in ("or", "/", "|", "oder", "ou", "o"):
                kind = "or"
            elif w in ("and", "&", "nor", "und", "y", "et", "e", "plus"):
                kind = kind if kind == "or" else "and"
            elif w not in _STRING:
                return ""
        return kind

    def coordinate(self) -> None:
        """"not A or B", "used to be in A and B": what befalls the first befalls the mentions strung to it."""
        for a, b in zip(self.standings, self.standings[1:], strict=False):
            if "doubtful" in " ".join(a.notes) and not b.dead and self.joined(a, b):
                b.rank += _GUESS
                b.notes.append("doubtful")
            if a.dead and not b.dead and not b.now and self.joined(a, b) in ("or", "and"):
                if a.dead.startswith(("negated", "echo", "only planned")):
                    self.kill(b, a.dead)
                elif a.past and not self.mode.previous and "," not in self.low[a.mention.last : b.mention.first]:
                    self.mark_past(b, "with " + self.words(a))

    def people(self) -> None:
        asked = asked_about(self.asked.text)
        inherited = ""
        inside = {i for s in self.standings if s.mention.whole for i in range(s.mention.first, s.mention.last)}
        for clause in self.clauses:
            if not clause.mentions:
                continue
            for k in clause.mentions:
                s = self.standings[k]
                other, subject = belongs_to_other(self.text, clause, s.mention, asked, inherited, inside)
                if other:
                    self.kill(s, "about someone else")
                inherited = subject

    def sentence_wide(self, sentence: Sentence) -> None:
        """Questions and conditions hold for the whole sentence."""
        members = [self.standings[k] for c in sentence.clauses for k in c.mentions]
        if not members:
            return
        if sentence.is_question:
            for s in members:
                self.kill(s, "inside a question")
        for clause in sentence.clauses:
            if clause.mentions and any(c[2] is Cue.IF and c[0] <= clause.first + 1 for c in clause.cues):
                for s in members:
                    if s.clause >= self.standings[clause.mentions[0]].clause:
                        self.kill(s, "conditional")

    def echoed_options(self) -> None:
        """An either/or question said over at the start ("A or B: it is A") offers nothing."""
        if "or" not in self.asked.words or len(self.standings) < 3:
            return
        a, b = self.standings[0], self.standings[1]
        opening = self.low[: a.mention.first] + self.low[b.mention.last : self.clauses[b.clause].last]
        if a.key != b.key and self.joined(a, b) == "or" and all(w in _LIGHT or w in _STRING for w in opening):
            if any(not s.dead for s in self.standings[2:]):
                self.kill(a, "echo of the question")
                self.kill(b, "echo of the question")

    # -- the shape of the whole answer -------------------------------------------------------------------------------

    def conclusions(self) -> None:
        """Mentions in a conclusion outrank what led to it; those after "Reasoning:" only explain."""
        pending, count = 0.0, 0
        by_sentence: dict[int, list[Standing]] = {}
        for s in self.standings:
            by_sentence.setdefault(s.sentence, []).append(s)
        aside = -1
        for number, sentence in enumerate(self.sentences):
            first = self.low[sentence.first]
            if aside < 0 and first in _EXPLAINERS and number and sentence.first + 1 < len(self.low):
                if self.low[sentence.first + 1] in (":", "\n") and any(s.sentence < number for s in self.standings):
                    aside = number
            strength, start = pending, sentence.first
            for clause in sentence.clauses:
                for cue in clause.cues:
                    if cue[2] is Cue.FINAL:
                        opens = cue[0] <= clause.first + 1
                        weak = self.low[cue[0]] in _SO_WORDS or self.low[cue[1] - 1] in ("means", "appears", "seems", "like")
                        if (weak and opens) or not weak:
                            strength, start = max(strength, _SO if weak else _FINAL), cue[0]
                            count += 1
            members = by_sentence.get(number, ())
            hit = False
            for s in members:
                if strength and s.mention.first >= start:
                    s.rank += strength + 0.1 * count
                    s.final = True
                    hit = True
                elif aside >= 0 and number >= aside:
                    s.rank += _ASIDE
            refused = any(c[2] is Cue.REFUSAL and c[0] > start for cl in sentence.clauses for c in cl.cues)
            short = sentence.last - start <= 6 or self.low[sentence.last - 1] == ":" or sentence.end == "\n"
            pending = strength if strength and not hit and not refused and short else 0.0

    def boxes(self) -> None:
        if not self.boxed:
            return
        depth, spans, start = 0, [], 0
        for i, w in enumerate(self.low):
            if w == BOX_OPEN:
                depth, start = depth + 1, i if not depth else start
            elif w == BOX_CLOSE and depth:
                depth -= 1
                if not depth:
                    spans.append((start, i))
        at = 0
        for s in self.standings:
            while at < len(spans) and spans[at][1] < s.mention.first:
                at += 1
            if at < len(spans) and spans[at][0] <= s.mention.first:
                s.rank += _BOXED
                s.dead = "" if s.dead.startswith(("current", "inside", "about")) else s.dead

    def headline(self) -> None:
        """A first sentence that is a bare value is the answer, unless bare values are listed."""
        bare: list[Standing] = []
        for s in self.standings:
            sentence = self.sentences[s.sentence]
            extra = [
                w
                for i, w in enumerate(self.low[sentence.first : sentence.last], start=sentence.first)
                if not s.mention.first <= i < s.mention.last and w[0].isalnum() and w not in _FILLER
            ]
            if len(extra) <= (1 if s.mention.quantity is not None else 0):
                bare.append(s)
            elif len(bare) == 0:
                return
            if len(bare) > 1 and bare[-1].key != bare[0].key:
                return
            if len(bare) > 3:
                break
        if bare and bare[0] is self.standings[0] and not bare[0].dead and len({s.key for s in bare}) == 1:
            bare[0].rank += _HEADLINE
            bare[0].notes.append("headline")

    def corrections(self) -> None:
        """"A. Sorry, B": a live, different value after a correcting phrase replaces all before it."""
        places = [c[0] for clause in self.clauses for c in clause.cues if c[2] is Cue.CORRECTION]
        if not places:
            return
        places += [clause.first for clause in self.clauses if clause.last - clause.first == 1 and self.low[clause.first] == "no"]
        cut = -1
        for place in sorted(places):
            following = next((s for s in self.standings if s.mention.first > place and not s.dead), None)
            preceding = [s for s in self.standings if s.mention.last <= place]
            if following is not None and any(s.key != following.key for s in preceding):
                cut = max(cut, place)
        for s in self.standings:
            if s.mention.last <= cut:
                self.kill(s, "corrected away")


_FILLER = frozenset("the a an at in on it it's is its to your my about around of and by you're they are that's that".split())
_STRING = frozenset(
    ", ; \n ( ) : the a an your my maybe perhaps possibly also either even just - & . at in on to".split(" ")
) | {"\n"}
