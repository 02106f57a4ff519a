"""The words that may stand around an answer without being a second one. Lower case, accents and apostrophes removed."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION = _words(
    "the a an this that these those there here it its is are was were be been would should will shall do does did "
    "you we i he she they your my our me as of for to on and then also both so namely respectively yes sure indeed "
    "ie answer answers final finally correct think believe probably likely "
    "first firstly second secondly third thirdly fourth fifth next lastly only just exactly simply total "
    "called named labeled labelled titled marked following "
    "go goes click clicks clicking select selecting selected choose press use using open opens opening navigate "
    "itself"
)
"""Words that add nothing, wherever they stand."""

NOUNS = _words(
    "name names label labels value values field fields button buttons link links tab tabs column columns section "
    "sections page pages menu menus item items form forms option options choice choices action actions icon icons "
    "dropdown dropdowns box boxes textbox checkbox checkboxes module modules entry entries row rows list lists "
    "view views window dialog header headers banner text message title titles control controls element elements "
    "table tables area panel bar toolbar sidebar toolbox step steps letter letters statement claim number amount "
    "symbol state status prefix category type drop down check usd forum"
)
"""What is being named. Beside an answer they say its kind ("Bans link"); as an item of a list they are one more."""

MODIFIERS = _words(
    "total final only first second third last next type number amount status state category title name value prefix "
    "message"
)
"""Directly before a label they make another label of it, unless the question says them: "Total amount"."""

VERBS = _words(
    "is are was were be has have had shows show shown displays display displayed appears appear appearing contains "
    "contain lists includes include sits sit says say reads read becomes become changes change supports support "
    "needs need takes take requires require remains remain gives give exists exist means stays located listed "
    "found placed visible shown marked used uses equals provides enables allows opens leads can"
)

LINKS = _words(
    "is are was were be called named titled labeled labelled says say reads read shows show displays display to as "
    "takes take has have requires require need needs becomes equals contains lists includes click clicks select "
    "choose press use open namely total of ie"
)
"""What a lead-in ends with: "the default sort field IS", "it changes TO"."""

PLACES = _words(
    "in on at among from under within inside below beneath above after before between beside by near next during when "
    "where which that who whose with located listed found shown displayed visible placed of for via upon once while "
    "because since"
)
"""What opens a phrase that says where or when: "Bans, in the toolbox"."""

PLACE_WORDS = _words(
    "top bottom left right upper lower middle center centre corner side end start main default "
    "immediately directly adjacent row page screen website site portal menu home current currently already "
    "same each every all any"
)

UNITS = _words("usd dollar dollars characters results records days day times in more additional different")
"""What a bare number may count besides the question's own words."""

AGAINST = _words(
    "or not no nor neither never either maybe might possibly perhaps could but except excluding without instead "
    "rather versus vs plus alongside along besides addition additionally including together unless if whether "
    "unknown unsure uncertain cannot cant isnt arent doesnt dont didnt wasnt werent wont nt actually wait "
    "alternatively otherwise unlike other others another wrong incorrect untrue false well etc"
)
"""Words that make a second answer, a doubt or a denial out of what surrounds a gold phrase."""

DOUBTS = _words(
    "sure certain confident positive known clear guaranteed verified guess doubt unsure uncertain right correct it "
    "that this true really quite exactly available applicable present there"
)
"""Behind "not" they take the answer back instead of naming what it is not: "(not sure)"."""

TAKES_BACK = _words(
    "true false or maybe perhaps possibly unless but however although depends guess sure unsure uncertain doubt wait "
    "opposite wrong incorrect"
)
"""In a sentence behind "true" or "false" they make more than a reason of it."""

INEXACT = _words(
    "about approximately around roughly almost nearly over under up than fewer less least most minimum maximum "
    "between half hundred thousand million k percent per minus"
)
"""Beside a number: not that number."""

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"

NUMBERS: dict[str, int] = {
    **{word: number for number, word in enumerate(_SMALL.split())},
    **{word: 10 * (place + 2) for place, word in enumerate(_TENS.split())},
}
"""Number words below a hundred, as far as they are one word."""
