"""Word lists written as running text: the closed vocabularies of the grader stay readable and diff line by line."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


def listed(text: str) -> list[str]:
    """The words of a text in order."""
    return text.split()


def groups(text: str) -> list[list[str]]:
    """Lists of words, separated by a bar."""
    return [part.split() for part in text.split("|")]


def phrases(text: str) -> list[str]:
    """Phrases, separated by a bar or a line break."""
    return [phrase.strip() for line in text.splitlines() for phrase in line.split("|") if phrase.strip()]
