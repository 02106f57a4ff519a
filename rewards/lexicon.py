"""Word classes that several steps of the grader share."""

from __future__ import annotations

from rewards.words import words

CHANGE_VERBS = words(
    "raise rise increase decrease growth drop jump jumped leap leapt move switch transition moved went"
    " switched changed grew rose increased dropped shrank  fell upgraded transferred relocated jumped climbed"
    " downgraded shifted swapped converted gone risen grown  fallen shrunk decreased moving switching changing"
    " moves switches changes raised lowered reduced bumped  reassigned promoted demoted passed cut migrated"
    " turned extended shortened expanded rescheduled postponed  came return returned wechselt umgezogen gezogen"
)
SPEECH_VERBS = words(
    "said mentioned told noted stated asked wrote say mention tell note state ask write shared indicated reported"
    " described explained confirmed specified know recall remember added listed recorded gave wanted want need"
)
PERSONS = words(
    "mother mom mum mommy mama father dad daddy papa parent parents brother brothers sister sisters sibling"
    " siblings cousin cousins aunt uncle niece nephew grandma grandpa grandmother grandfather grandparents"
    " granddaughter grandson wife husband spouse girlfriend boyfriend fiance fiancee son sons daughter daughters"
    " kid kids child children friend friends colleague colleagues coworker coworkers boss manager supervisor"
    " neighbor neighbors neighbour neighbours roommate roommates flatmate flatmates housemate housemates landlord"
    " landlady teacher tutor coach guest guests visitor visitors teammate teammates classmate classmates ex client"
    " clients assistant everyone partner twin twins family stepdad stepmom stepbrother stepsister nanny baby"
    " mentor trainer therapist mother-in-law in-laws godmother godfather buddy pal tenant employer secretary"
    " intern captain"
)
PERSON_VERBS = words(
    "lives works drives prefers likes plays drinks eats owns pays wears studies rents collects teaches loves"
    " hates himself herself"
)
"""Verbs whose subject is somebody, whatever its name: "Omar drives"."""
PLACES = words("inside under behind beside below above over near outside beneath underneath")
"""Prepositions of place that may open a value ("under the mat") or stand outside its mention."""
STOP = words(
    "a an the my your his her their our its this that these those i you he she it we they me him them us is are"
    " was were be been being am do does did have has had having will would can could shall should may might must"
    " of in on at to for from by with about as and or but if so than then there here what which who whom whose"
    " when where why how not no yes just only also too very really quite still now currently right again ever"
    " already both all any some i'm i've i'd i'll you're you've you'd you'll he's she's it's we're we've they're"
    " they've that's there's what's who's because where's here's let's don't doesn't didn't isn't aren't wasn't"
    " weren't have haven't hasn't one ones up out off"
)
"""Function words: never the content of a value, never a neighbour that makes a value part of a longer name."""
