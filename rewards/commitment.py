"""Which of the values that an answer mentions does it stand behind?

Every mention gets a standing from the cues around it: dead (negated, past, someone else's, an echo, corrected away,
only planned) or a rank. A statement ranks above a guess, "now" above a bare statement, a conclusion above what led to
it, a box above everything. The mentions at the top decide; when they disagree, the answer does not commit.
"""

from __future__ import annotations

from rewards.clauses import Clause, Sentence
from rewards.cues import Cue
from rewards.entities import asked_about, belongs_to_other
from rewards.lexicon import PLACES
from rewards.marks import GOTO, GUESS, LIGHT, WAS, ClauseRules
from rewards.shape import boxes, conclusions, corrections, headline
from rewards.standings import STATED, Standing
from rewards.units import MONTHS
from rewards.words import words

_THEN = 5.0
_TELLERS = words("you i we he she they it your")
_PRONOUNS = words("it that this which they those it's that's these")
_DENIED = words("right true correct current valid accurate the it yours anymore so up case your what where mine")
_HERE = words("and here there once first in one place note another")
_ENDINGS = words("took came left went became got")
_SIGNS = words("+ - × * x")
_ELSE = words("otherwise else")
_ADDRESSES = words("mean meant ask asking understand read reading remember recall want wondering")
_STRING = words(", ; ( ) : the a an your my maybe perhaps possibly also either even just - & . at in on to") | {"\n"}
"""What may stand between values that are strung together."""


class Resolver(ClauseRules):
    """Weighs every mention of one answer: within clauses, between them, over the whole."""

    def run(self) -> list[Standing]:
        if not self.standings:
            return []
        self.sums()
        for clause in self.clauses:
            self.cues_of(clause)
        self.carry_over()
        self.sequence()
        self.chronology()
        self.coordinate()
        self.people()
        for sentence in self.sentences:
            self.sentence_wide(sentence)
        self.conditions()
        self.echoed_options()
        conclusions(self.low, self.sentences, self.standings)
        boxes(self.low, self.standings)
        headline(self.low, self.sentences, self.standings)
        corrections(self.low, self.clauses, self.standings)
        return self.standings

    def sums(self) -> None:
        """ "9 + 2 = 11" states its result only."""
        if "=" not in self.low:
            return
        for s in self.standings:
            after = self.low[s.mention.last : s.mention.last + 8]
            added = bool(after) and (
                after[0] in _SIGNS or (after[0] == "=" and self.low[s.mention.first - 1] in _SIGNS)
            )
            if s.mention.quantity is not None and "=" in after and added:
                self.kill(s, "a term of a sum")

    def carry_over(self) -> None:
        """A clause of cues alone colours its neighbour: "Earlier, M"; "M, but that is outdated"; A → B."""
        last: Standing | None = None
        for number, clause in enumerate(self.clauses):
            if clause.mentions:
                if clause.opener == "→" and number and self.clauses[number - 1].mentions:
                    self.mark_past(self.standings[self.clauses[number - 1].mentions[-1]], "→")
                    self.mark_now(self.standings[clause.mentions[0]], "→", GOTO)
                last = self.standings[clause.mentions[-1]]
                continue
            if clause.opener == "→" and last is not None and last.clause == number - 1:
                self.mark_past(last, "→")
            led = number + 1 < len(self.clauses) and self.clauses[number + 1].opener == ":"
            bracketed = clause.opener == "(" and not led and last is not None and last.clause >= number - 1
            if bracketed and last is not None and self.remark(clause, last):
                continue
            cue = next(
                (
                    c
                    for c in clause.cues
                    if c[2] in (Cue.PAST, Cue.CURRENT, Cue.NEG, Cue.UNTIL, Cue.BEFORE, Cue.AFTER, Cue.LEAVE)
                ),
                None,
            )
            if cue is None:
                continue
            pronoun = any(w in _PRONOUNS for w in self.low[max(clause.first, cue[0] - 3) : cue[0] + 1]) and (
                cue[0] - clause.first <= 4
            )
            turned_down = cue[2] is Cue.LEAVE and self.low[cue[0]] in ("refused", "declined")
            pronoun = pronoun or (turned_down and bool({"he", "she"} & set(self.low[clause.first : cue[0]])))
            if cue[2] is Cue.UNTIL and last is not None and last.clause == number - 1 and self.over(clause, last):
                self.mark_past(last, self.text.quote(clause.first, clause.last))  # "M did, until someone took over"
                continue
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
            if following.opener not in (",", ":", "—", ")", "(", "|"):
                continue
            target = self.standings[following.mentions[0]]
            if cue[2] is Cue.NEG and following.opener == ":" and clause.last - clause.first <= 4:
                self.kill(target, f"negated ({self.text.quote(clause.first, clause.last)})")  # "Wrong answer: M"
            elif cue[2] in (Cue.PAST, Cue.UNTIL, Cue.BEFORE):
                if not (target.now and not target.past):
                    self.mark_past(target, self.quote(cue))
            elif cue[2] in (Cue.CURRENT, Cue.AFTER):
                self.mark_now(target, self.quote(cue))

    def over(self, clause: Clause, last: Standing) -> bool:
        verbs = (w for w in self.low[clause.first : clause.last] if w.endswith("ed") or w in _ENDINGS)
        return clause.sentence == last.sentence and any(verbs)

    def remark(self, clause: Clause, last: Standing) -> bool:
        """ "M (old)", "M (until May)", "M (since 2022)"."""
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
        """ "A came first, then B": the later one, once the first is marked as such."""
        for clause in self.clauses:
            cue = next((c for c in clause.cues if c[2] is Cue.THEN), None)
            if cue is None or not clause.mentions:
                continue
            target = next(
                (self.standings[k] for k in clause.mentions if self.standings[k].mention.first >= cue[1]), None
            )
            if target is None:
                continue
            earlier = self.standings[target.index - 1] if target.index else None
            told = self.low[cue[1]] in _TELLERS if cue[1] < len(self.low) else False  # "then you bought M"
            if earlier is None or target.sentence - earlier.sentence > (1 if told else 0):
                continue
            ordered = told or earlier.past or "first" in earlier.notes or earlier.rank < STATED or earlier.now
            if ordered:
                if self.mode.previous:
                    self.mark_past(earlier, "then")
                    self.mark_now(target, "then")
                else:
                    target.rank += _THEN + (GOTO if earlier.now else 0.0)
                    target.notes.append("then")

    def chronology(self) -> None:
        """ "M in 2020, N from 2023": where every clause with a value has its own date, the latest is current."""
        live = [s for s in self.standings if not s.dead]
        if len({s.key for s in live}) < 2 or len(live) > 8:
            return
        dates: list[tuple[int, ...]] = []
        for s in live:
            clause = self.clauses[s.clause]
            after = self.clauses[s.clause + 1] if s.clause + 1 < len(self.clauses) else clause
            last = after.last if after.opener == "(" and not after.mentions else clause.last
            found = [
                d
                for i in range(clause.first, last)
                if (d := self.dated(i)) and not s.mention.first <= i < s.mention.last
            ]
            if len(found) != 1:
                return
            dates.append(found[0])
        if len({len(d) for d in dates}) != 1 or len(set(dates)) < len(live):
            return
        newest = max(zip(dates, live, strict=True), key=lambda pair: pair[0])[1]
        for s in live:
            if s is newest:
                self.mark_now(s, "the latest date")
            elif s.key != newest.key:
                self.mark_past(s, "an earlier date")

    def dated(self, i: int) -> tuple[int, ...] | None:
        """A year, or a month, named at token i."""
        word = self.low[i]
        if len(word) == 4 and word.isdigit() and 1900 <= int(word) <= 2199:
            return (int(word), 0)
        if (
            word in MONTHS
            and len(word) > 2
            and i
            and self.low[i - 1] in ("in", "since", "from", "(", "last", "until", "by")
        ):
            return (MONTHS[word],)
        return None

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
            elif w not in _STRING and w not in PLACES:
                return ""
        return kind

    def coordinate(self) -> None:
        """ "not A or B", "used to be in A and B": what befalls the first befalls the mentions strung to it."""
        for a, b in zip(self.standings, self.standings[1:], strict=False):
            if (
                "doubtful" in " ".join(a.notes)
                and not b.dead
                and self.joined(a, b)
                and "doubtful" not in " ".join(b.notes)
            ):
                b.rank += GUESS
                b.notes.append("doubtful")
            reported = a.rank == STATED + WAS and b.rank == STATED and a.clause == b.clause and not (b.now or b.past)
            if reported and self.low[a.mention.last : b.mention.first].count("and") and self.joined_by_place(a, b):
                b.rank = a.rank  # "it says A here and B there"
            if a.dead and not b.dead and not b.now and self.joined(a, b) in ("or", "and"):
                if a.dead.startswith(("negated", "echo", "only planned")):
                    self.kill(b, a.dead)
                elif a.past and not self.mode.previous and "," not in self.low[a.mention.last : b.mention.first]:
                    self.mark_past(b, "with " + self.said(a))

    def joined_by_place(self, a: Standing, b: Standing) -> bool:
        between = self.low[a.mention.last : b.mention.first]
        return len(between) <= 5 and all(w in _STRING or w in _HERE for w in between)

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

    def conditions(self) -> None:
        """ "If it changed, A; if not, B", "A unless it is B", "A if ..., and B if ...": a value for every case."""
        group: list[Sentence] = []
        for sentence in self.sentences:
            turns = self.has_if(sentence) or self.low[sentence.first] in _ELSE
            if group and not (group[-1].end == ";" or (turns and self.has_if(group[-1]))):
                self.weigh_conditions(group)
                group = []
            group.append(sentence)
        if group:
            self.weigh_conditions(group)

    def has_if(self, sentence: Sentence) -> bool:
        return any(c[2] is Cue.IF for clause in sentence.clauses for c in clause.cues)

    def opens_if(self, sentence: Sentence) -> bool:
        clause = sentence.clauses[0]
        return any(c[2] is Cue.IF and c[0] <= clause.first + 1 for c in clause.cues)

    def weigh_conditions(self, group: list[Sentence]) -> None:
        clauses = [c for s in group for c in s.clauses]
        ifs = [c for clause in clauses for c in clause.cues if c[2] is Cue.IF]
        if not ifs:
            return
        members = [self.standings[k] for c in clauses for k in c.mentions]
        unless = [c[0] for c in ifs if self.low[c[0]] in ("unless", "except", "failing")]
        cases = len(ifs) + sum(self.low[i] in _ELSE for i in range(clauses[0].first, clauses[-1].last))
        several = len({s.key for s in members}) > 1
        opened = self.opens_if(group[0]) and not clauses[0].mentions and not self.addresses(ifs[0])
        excepted = any(s.mention.first > at for at in unless for s in members)
        if several and (cases > 1 or opened or excepted):
            for s in members:
                self.kill(s, "conditional")
                s.dead = "conditional"

    def addresses(self, cue: tuple[int, int, Cue]) -> bool:
        """ "If you mean ...", "if I understand ...": says what is answered, not on which condition."""
        return any(w in _ADDRESSES for w in self.low[cue[1] : cue[1] + 4])

    def echoed_options(self) -> None:
        """An either/or question said over at the start ("A or B: it is A") offers nothing."""
        if "or" not in self.asked.words or len(self.standings) < 3:
            return
        a, b = self.standings[0], self.standings[1]
        opening = self.low[: a.mention.first] + self.low[b.mention.last : self.clauses[b.clause].last]
        echo = a.key != b.key and self.joined(a, b) == "or" and all(w in LIGHT or w in _STRING for w in opening)
        if echo and any(not s.dead for s in self.standings[2:]):
            self.kill(a, "echo of the question")
            self.kill(b, "echo of the question")
