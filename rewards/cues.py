"""Cue phrases of commitment, as data: what marks a value as past, current, negated, doubtful, corrected, refused.

Every entry is a general phrase of English (with the commonest forms of German, Spanish, French, Italian, Portuguese and
Dutch, accents folded); none is taken from a case.
"""

from __future__ import annotations

from enum import IntEnum

from rewards.text import TOKEN
from rewards.words import phrases


class Cue(IntEnum):
    """What a phrase says about a value near it."""

    NONE = 0
    """Looks like a cue and is none ("no doubt"); consumed so that its words do not count."""
    NEG = 1
    PAST = 2
    CURRENT = 3
    LEAVE = 4
    """The value after it was given up ("left", "swapped ... for")."""
    HEDGE = 5
    FUTURE = 6
    ECHO = 7
    IF = 8
    FINAL = 9
    CORRECTION = 10
    REFUSAL = 11
    FROM = 12
    BEFORE = 13
    AFTER = 14
    UNTIL = 15
    THEN = 16
    FIRST = 17
    WAS = 18
    """A weak past: outranked by a present statement, but an answer when it stands alone."""
    GOTO = 19
    """A change whose target follows ("switched to")."""


PHRASES: dict[Cue, str] = {
    Cue.NONE: """
        no doubt | no question | without a doubt | without doubt | without question | not joking | not kidding
        nothing other than | no one other than | none other than | not far from
        not only | not just | not mistaken | don't forget | do not forget | don't worry | no worries | no problem
        not a problem | no change | no changes | hasn't changed | haven't changed | has not changed
        have not changed | didn't change | nothing has changed | not changed | doesn't change | never changed
        not wrong | can't go wrong | why not | if i remember correctly | if i recall correctly | if i'm not mistaken
        if i am not mistaken | if not mistaken | if memory serves | if you have any | if you need
        if there's anything | if there is anything | if you want | if you'd like | if you would like
        if anything has changed | if anything changes | if anything changed | if that is still the case
        if this is still accurate | not to mention | so far | so much | so many | so that | from your notes
        from the notes | from my notes | from our | from the chat | from previous | from session | from what
        from all | from this | from memory | from everything | from the information | from the conversation
        no further information | no other information | any other information | any further information
        any more information | any additional information | no additional information | no more information
        no specific mention of a change | no need | not far | not long | not yet known to have changed
        according to | in addition to | be sure to | feel free to | let me know if | up to date | up-to-date
        not until | which one | from scratch | first name | first of all | at least | at most | thank you
        thanks for | while i | while i don't | while i do not | as of now | as i know | after all | afterwards
        before long | before tax | not including | not counting | before and after | after work | before work
        after school | after dinner | in the past few | in the past couple | in the past week | in the past month
        in the past year | in the past two | in the past three | in the past several | over the past
        no mention of any change | no mention of a change | does not mention any change | doesn't mention any change
        no mention of any update | no indication of any | no indication that | no mention of any further
        no mention of any other | no mention of any new | no new | years old | year old | months old | weeks old
        days old | nothing else | no one else | nobody else | not surprising | not surprisingly | cannot be clearer
    """,
    Cue.NEG: """
        i doubt | the opposite of | opposite of | contrary to | nobody said | no one said | nobody mentioned
        you rejected | you declined | turned down | decided against | cancelled plans for | canceled plans for
        backed out of | opted out of | opted against | chose against | wish it were | wish it was | if only
        refuse to | refuses to | refused to | anything but | anyone but | anybody but | anywhere but | everything but
        everyone but | other than | far from
        not | never | neither | nor | without | rather than | instead of | as opposed to | isn't | aren't | wasn't
        weren't | don't | doesn't | didn't | haven't | hasn't | hadn't | won't | wouldn't | can't | cannot
        couldn't | shouldn't | dont | doesnt | isnt | ain't | incorrect | not in | nicht | kein | keine | keinen
        nie | ne | pas | niet | geen | nunca | jamais | mai | wrong | false | impossible | hardly | excluding
        except | excludes | definitely not | ruled out | rule out | nothing to do with | unlike
    """,
    Cue.PAST: """
        was considered | were considered | was an option | is closed | has closed | is shut | ceased to be
        stopped being | a thing of the past | thing of the past | things of the past | having been
        is behind you
        is out | are out | stepped down | stepped aside | back in | are over | no longer | not anymore
        what you had | the one you had | not any more | anymore | any longer | used to | formerly | previously
        once had | once lived | once was
        once were | once worked | once used | once owned | once kept | once went | you once | originally | initially
        in the past | back then | back in the day | at one time | at one point | in the old days | earlier
        outdated | out of date | obsolete | superseded | stale | the old | your old | my old | his old | her old
        their old | old | former | previous | ex | prior | expired | historic | historically | was replaced
        were replaced | been replaced | is replaced | got replaced | came first | was first | were first
        went first | comes first | is gone | are gone | is history | has ended | first note | first message
        first entry | first session | first mention | earliest | early note | first thought | first said
        first assumed | first believed | initially thought | initially said | originally thought | i first
        started out | started off | started with | started at | started as | began with | began as | began at
        to begin with | to start with | at the start | in the beginning | at the beginning | gave way to | preceded
        predates | predated | until recently | until lately | till recently | up until | before that | before then
        before this | prior to that | before it | beforehand | last known | years ago | months ago | weeks ago
        ages ago | a while ago | long ago | some time ago | last year | last month | last week | last season
        last spring | last summer | last autumn | last fall | last winter | in those days | at that time
        at the time | nicht mehr | kein mehr | fruher | vorher | ehemals | damals | ya no | antes | anteriormente
        ne plus | n'est plus | n'habite plus | n'habites plus | ne vis plus | n'es plus | auparavant | avant
        non piu | prima | nao mais | antigamente | niet meer | vroeger | was made redundant | has since changed
        since changed | changed since | no longer valid | no longer true | no longer current | no longer the case
        used to be | is the former | was the former | your ex | was the original | older one | older note
        older entry | older message | older value | older session | older record | is older | was older | the older
        an older | the original | original | the first one | was earlier | was before | in your previous
        in the previous | it was once
    """,
    Cue.CURRENT: """
        since | now | currently | presently | nowadays | these days | today | at present | at the moment | right now
        as of today | for now | latest | newest | newer | most recent | most recently | more recent | more recently
        current | present | updated | update | up to date value | settled on | settled for | settled in
        settled into | ended up | ends up | since then | ever since | later | finally | eventually | last note
        last message | last entry | last mention | latest note | new | your new | replacing | replaces | supersedes
        superseding | at last | still | remains | instead | is yours | as of | up to date with | from then on
        from that point | from that point on | onwards | ever after | from now on | jetzt | nun | inzwischen
        mittlerweile | heute | aktuell | derzeit | sondern | ahora | actualmente | hoy | sino | ya | maintenant
        actuellement | desormais | aujourd'hui | mais | adesso | ora | attualmente | oggi | agora | atualmente
        hoje | nu | tegenwoordig | momenteel | in the end | the update | after which | going forward | active
        in force | in effect | is home | wins | prevails | takes precedence | nothing has changed since
    """,
    Cue.LEAVE: """
        refused | declined | preferred to | disregard | disregarding | ignore | ignoring | forget | forget about
        updated from | revised from | amended from | you're over | you are over | bored of | bored with
        had enough of | weary of
        who followed | which followed | that followed | who succeeded | who replaced
        closed | shut down | let lapse | moved your things out of | checked out of | signed off from
        left | leaving | quit | quitting | dropped | dropping | ditched | ditching | gave up | given up | giving up
        got rid of | get rid of | gotten rid of | gone off | went off | gone away from | moved away from
        moved out of | moved on from | moving away from | moved off | abandoned | abandoning | swapped | swapped out
        swap | swapping | traded | traded in | trading | exchanged | exchanging | replaced | replacing the | replace
        retired | stopped | stopped using | stopped going to | stopped buying | stopped drinking | stopped eating
        stopped taking | sold | selling | sold off | cancelled | canceled | resigned from | parted with
        parted ways with | said goodbye to | fell out of love with | unsubscribed from | lost interest in
        succeeded | supplanted | displaced | dethroned | ousted | overtook | took over from | took the place of
        said farewell to | walked away from | ended things with | tired of | got tired of | sick of | outgrew
        outgrown | departed | withdrew from | phased out | discontinued | up from | down from | increase from
        decrease from | away from | switched away from | no more | stepped down from | grew out of | grown out of
        let go of | put aside | set aside | turned away from | fed up with | done with | finished with
        through with | broke up with | split up with | split from | gave away | given away | got over
        instead of your old | discarded | threw out | thrown out | scrapped | transferred out of | transferred from
        fell out with | moved out from | turned your back on | weaned off | cut out | retired from | over from
    """,
    Cue.GOTO: """
        ordered from | decided on | booked with | signed with | gave you | gives you | assigned you | moved you to
        been replaced by | was replaced by | were replaced by | is replaced by | got replaced by | been replaced with
        was replaced with | were replaced with | is replaced with
        opened one with | opened one at | signed up with | signed up for | signed on with | enrolled in | settled into
        switched to | switched over to | changed to | moved to | moved over to | moved into | moved on to
        moved up to | moved in to | moved back to | went to | went back to | went over to | gone to | gone back to
        upgraded to | downgraded to | transferred to | relocated to | raised to | rose to | risen to | grew to
        grown to | increased to | jumped to | climbed to | went up to | gone up to | went down to | dropped to
        fell to | decreased to | shrank to | shrunk to | reduced to | lowered to | cut to | bumped to | bumped up to
        bumped it to | turned to | took up | taken up | converted to | returned to | came to | shifted to
        swapped to | replaced by | replaced with | became | become | has become | turned into | joined | promoted to
        rescheduled to | postponed to | pushed to | pushed back to | moved it to | changed it to | switched it to
        brought to | expanded to | extended to | renamed to | renamed | updated to | corrected to | revised to
        moving to | switching to | changing to | went with | gone with | went for | picked up | opted for | chose
        superseded by | followed by | succeeded by | gave way to | handed over to | handed it to | made way for
        passed to | passed on to | passed it to | and went to | set to | in favor of | in favour of | took over
        takes over | got instead | have instead | came | moved down to
    """,
    Cue.HEDGE: """
        options are | options were | choices are | choices were | candidates are | candidates were
        possibilities are | possible values are | values are
        most likely | likely | probably | is also possible | also possible | is possible | is another possibility
        is equally possible | equally likely
        just as likely | possible answers | possible answer | is another option | another option
        maybe | perhaps | possibly | might | may | could | could be | might be | may be | either | unsure
        uncertain | not certain | not entirely sure | not completely sure | depending | depends | it's a toss-up
        one of | one or the other | potentially | conceivably | unclear which | not clear which | i guess | guess
        vielleicht | oder | quizas | tal vez | peut-etre | forse | talvez | misschien | not sure which
        don't know which | can't tell which | can't say which | cannot tell which | can't decide | hard to say
        both | any of | whichever | whatever
    """,
    Cue.FUTURE: """
        planned on | plan to | plans to | planning to | planned to | planning on | plan on | are planning | is planning
        going to | about to | intend to | intends to | intending to | hope to | hoping to | hopes to | want to
        wants to | thinking of | thinking about | thought about | thought of | considering | considered | consider
        looking to | looking at | looking into | would like to | would love to | dream of | dreaming of | next year
        next month | next week | next spring | next summer | next autumn | next fall | next winter | in the future
        someday | one day | aim to | aiming to | will move | will switch | will be moving | will change | will start
        will soon | will become | toying with | tempted by | tempted to | may move | might move | could move
        eventually want | debating | applied to | applied for | hope for | wish for | wished for | saving for
        saving up for
    """,
    Cue.ECHO: """
        you asked | you are asking | you're asking | your question | you want to know | you wanted to know
        the question is | the question was | the question asks | question asks | asked whether | asking whether
        whether | wondering | you wonder | asked if | asking if | asked about | asking about | you'd like to know
        to the question | as for whether | regarding whether
    """,
    Cue.IF: """
        in the case of | in case of | failing that | failing this | if | in case | assuming | unless | supposing
        suppose | provided that
        in the event
    """,
    Cue.FINAL: """
        that makes | so | therefore | thus | hence | consequently | accordingly | in conclusion | to conclude
        in summary
        to summarize | to summarise | in short | to sum up | all in all | overall | the answer is | my answer is
        the answer would be | my answer would be | the answer to the question is | the answer to your question is
        correct answer is | final answer | the final answer | i conclude | we can conclude | i can conclude
        i will conclude | i would conclude | i'd conclude | we conclude | taking everything together
        taken together | putting it together | putting this together | i'll go with | i will go with
        i would go with | i'd go with | going with | my final | bottom line | conclusion | ultimately | which means
        it appears | it seems | it looks like | meaning | that means | this means | it follows | also gilt
        por lo tanto | donc | quindi | portanto | dus | by process of elimination | my best answer | i'd say
        i would say | taking all of | taking all | taking everything | after going over | having gone through
    """,
    Cue.CORRECTION: """
        sorry | wait | scratch that | strike that | correction | i mean | i meant | actually | oops | whoops
        make that | my mistake | my bad | my error | my apologies | apologies | on second thought
        on second thoughts | on reflection | on rereading | on re-reading | rather | let me correct
        let me rephrase | i misread | i misspoke | i misremembered | i mixed up | i was wrong | i stand corrected
        that's wrong | that is wrong | that was wrong | that's not right | that is not right | that isn't right
        not quite | hold on | hang on | hmm | hm | er | erm | uh | excuse me | pardon | to be precise
        to correct myself | correcting myself | check that | disregard that | ignore that | forget that | never mind
        nevermind | no wait | ah no | oh no | nope | let me fix that | edit | looking again | reading again
        checking again | double-checking | upon review | come to think of it | i take that back | take that back
        that was a slip | slip of the tongue | i should say | that should be | should read | or better | better said
        or no | let me check again | let me recheck | i got that wrong | i had that wrong
    """,
    Cue.REFUSAL: """
        not something you've | isn't something you've | i don't have your | i do not have your | i don't have a
        only ever mentioned | only ever told | only ever said | only ever talked
        only know | only have | only got
        but not how | but not what | but not which | but not when | but not where | but not who | not the new
        not your new | not the current amount | no figure | no amount | no number was | need more information
        need more details | all i know is | do not contain | don't contain | doesn't contain | does not contain
        do not list | don't list | doesn't list | does not list | dunno | beats me | hard to know
        nowhere to be found | not in there | can't make out | never came across | don't know | do not know
        doesn't know | does not know | dont know | didn't know | not know | no idea | no clue | not sure
        i'm not certain | am not certain | don't have any information | don't have information
        do not have any information | do not have information | don't have enough | do not have enough
        don't have that information | do not have that information | don't have the information | don't have access
        do not have access | don't have any record | do not have any record | don't have a record
        do not have a record | don't have any record of | don't have any details | do not have any details
        don't have details | don't have the details | don't have that | do not have that | don't have this
        do not have this | don't have it | don't have the | don't have a note | don't have any | do not have any
        don't have specific | do not have specific | do not have the | have no | has no | haven't any
        no information | no record | no records | no mention | no note | no notes | no data | no details | no memory
        no specific information | no specific mention | no explicit mention | no direct information | no evidence
        don't cover | doesn't cover | do not cover | does not cover | have to remind me | need to remind me
        only be guessing | just be guessing | would be guessing | be a guess | drawing a blank | draw a blank
        none of my | none of your notes | none of the notes | not something i | isn't something i | nothing for
        nothing that | not something you | no one knows | nobody knows | no indication | no relevant information
        no clear indication | no reference | no way to know | no way of knowing | no entry | no trace
        nothing about | nothing in | nothing on | nothing regarding | only mentioned | only told | only said
        only talked | nothing that says | nothing recorded | not enough information | not enough detail
        not enough details | not enough relevant information | not enough data | not enough to
        isn't enough information | is not enough | isn't enough | insufficient information | insufficient
        lack of information | lacks information | lacking | not mentioned | never mentioned | wasn't mentioned
        was not mentioned | isn't mentioned | is not mentioned | hasn't been mentioned | has not been mentioned
        haven't mentioned | have not mentioned | hasn't mentioned | has not mentioned | didn't mention
        did not mention | don't mention | do not mention | doesn't mention | does not mention | weren't mentioned
        were not mentioned | aren't mentioned | are not mentioned | without mentioning | not been mentioned
        no one mentioned | didn't tell | did not tell | haven't told | have not told | hasn't told | has not told
        never told | not told | isn't something you | is not something you | wasn't something you | never said
        didn't say | did not say | haven't said | have not said | don't say | do not say | doesn't say
        does not say | not said | never came up | hasn't come up | has not come up | didn't come up
        did not come up | never shared | haven't shared | have not shared | didn't share | did not share
        hasn't shared | not shared | didn't specify | did not specify | haven't specified | have not specified
        hasn't specified | not specified | isn't specified | is not specified | wasn't specified | doesn't specify
        does not specify | never specified | unspecified | not stated | isn't stated | is not stated | never stated
        doesn't state | does not state | don't state | didn't state | did not state | haven't stated | not provided
        isn't provided | is not provided | wasn't provided | haven't provided | have not provided | didn't provide
        did not provide | hasn't provided | doesn't provide | does not provide | not given | wasn't given
        haven't given | didn't give | not recorded | isn't recorded | wasn't recorded | never recorded | not listed
        isn't listed | not included | isn't included | not available | isn't available | is not available
        unavailable | unknown | not known | isn't known | is not known | undetermined | indeterminate | unanswerable
        not clear | isn't clear | is not clear | unclear | can't find | cannot find | couldn't find | could not find
        can not find | can't see | cannot see | can't tell | cannot tell | can't say | cannot say | can't determine
        cannot determine | can't be determined | cannot be determined | couldn't determine | could not determine
        can't answer | cannot answer | can't be answered | cannot be answered | unable to | not able to
        can't recall | cannot recall | don't recall | do not recall | don't remember | do not remember
        can't remember | cannot remember | couldn't tell you | can't tell you | can't be sure | cannot be sure
        can't provide | cannot provide | can't confirm | cannot confirm | can't give | cannot give | couldn't say
        can't help | cannot help | don't see | do not see | didn't find | did not find | haven't found | found no
        find no | see no | found nothing | find nothing | says nothing | say nothing | said nothing | silent on
        no answer | n/a | not applicable | not in the notes | not in my notes | not in our | isn't in the notes
        isn't in my notes | not in your notes | not anywhere in | nowhere in | haven't discussed
        have not discussed | didn't discuss | did not discuss | never discussed | not discussed | never talked about
        haven't talked about | didn't talk about | never brought up | haven't brought up | hasn't been discussed
        has not been discussed | wasn't discussed | hasn't been shared | hasn't been told | hasn't been stated
        has not been specified | hasn't been specified | hasn't been provided | has not been provided
        hasn't been recorded | not been told | not been given | escapes me | beyond me | your guess is as good
        wish i knew | would need to check | would have to check | you would need to tell | please provide
        could you tell me | can you tell me | could you remind me | please clarify | could you clarify | no se
        weiss nicht | weiss ich nicht | je ne sais pas | non lo so | nao sei | nothing to go on | haven't recorded
        have not recorded | doesn't appear | does not appear | don't appear | not appear | doesn't exist
        does not exist | haven't got that | haven't got any | left out | weren't told | wasn't told | not aware
        unaware | never gave | not found | none found | not present | isn't there | absent | missing | never learned
        no knowledge | you haven't started | haven't started | not started | didn't have any | didn't describe
        never described
    """,
    Cue.FROM: """
        from | von | desde | de chez
    """,
    Cue.BEFORE: """
        before | prior to | ahead of | bevor | antes de
    """,
    Cue.AFTER: """
        after | following | nach | despues de
    """,
    Cue.UNTIL: """
        until | till | til | up to when | hasta | jusqu'a
    """,
    Cue.THEN: """
        then | and then | next | afterward | subsequently | after that | thereafter
    """,
    Cue.FIRST: """
        first | firstly | at first
    """,
    Cue.WAS: """
        i thought | i assumed | was | were | had | had been | it'd been | gives | gave | said | says | tried | war
        warst | era
    """,
}


def _index() -> dict[str, list[tuple[tuple[str, ...], Cue]]]:
    table: dict[str, list[tuple[tuple[str, ...], Cue]]] = {}
    for cue, block in PHRASES.items():
        for phrase in phrases(block):
            first, *rest = (m[0] for m in TOKEN.finditer(phrase))
            table.setdefault(first, []).append((tuple(rest), cue))
    for entries in table.values():
        entries.sort(key=lambda e: -len(e[0]))
    return table


CUES = _index()
"""First word -> [(the other words, cue)], longest first; built once from the lists above (about 1 ms)."""
