"""States as retrieval entries: annotated actions, lines without noise, windows to embed, words to count.

A slice is a state with its neighbours within a radius. Slices overlap, so windows belong to single states: the slice
around state i is found through the windows of i, each page is embedded once, and equal windows are embedded once too.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise

from lme_v2_env.trajectory import State

BID = re.compile(r"^\[([A-Za-z0-9_-]+)\] ")
"""The element id that begins a line of a flattened tree; BrowserGym gives out new ones at every step."""

BID_ARGUMENT = re.compile(r"^[A-Za-z]*\d+[A-Za-z0-9_-]*$")

NOISE = re.compile(
    r", (?:url|live|relevant|describedby|labelledby|controls|autocomplete)='[^']*'|, (?:atomic|focused)\b"
)
"""Properties that tell pages apart without saying anything about them."""

WORD = re.compile(r"[^\W\d_]+|\d+")

SYSTEM_CHARS = re.compile(r"\\u[ef][0-9a-f]{3}|[\ue000-\uf8ff]")
"""Icon-font glyphs, literal or escaped."""


def object_ids(action: str) -> tuple[str, ...]:
    """The element ids that an action names: the leading string argument, for `drag_and_drop` the leading two.

    A message to the user names none, even when it looks like an id (the published code takes `'3'` for one).
    """
    try:
        parsed = ast.parse(action.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ()
    if not isinstance(parsed, ast.Call):
        return ()
    name = parsed.func.attr if isinstance(parsed.func, ast.Attribute) else getattr(parsed.func, "id", "")
    found = []
    for argument in parsed.args[: 2 if name == "drag_and_drop" else 1]:
        value = argument.value if isinstance(argument, ast.Constant) else None
        if isinstance(value, str) and BID_ARGUMENT.match(value) and name != "send_msg_to_user":
            found.append(value)
    return tuple(found)


def elements(tree: str) -> dict[str, str]:
    """Lines of a tree by element id, white space stripped."""
    found = {}
    for line in tree.split("\n"):
        stripped = line.strip()
        match = BID.match(stripped)
        if match:
            found[match.group(1)] = stripped
    return found


def annotated_actions(states: Sequence[State]) -> list[str]:
    """The action of every transition, each with the lines of the elements that it names.

    The action from state i to i+1 is `states[i+1].action`, and its elements are those of state i (or an earlier one):
    the tree of the state that it led into may have given the id to something else.
    """
    known: dict[str, str] = {}
    annotated = []
    for before, after in pairwise(states):
        known |= elements(before.tree)
        action = (after.action or "").strip()
        lines = [known[name] for name in object_ids(action) if name in known]
        annotated.append(action + ("  # " + " | ".join(lines) if lines else ""))
    return annotated


def numbered(actions: Sequence[str]) -> str:
    """Actions as a numbered list, empty ones left out."""
    return "\n".join(f"{number}. {action}" for number, action in enumerate((a for a in actions if a), 1))


def plain_line(line: str) -> str:
    """A tree line without indentation, element id, icon glyphs and properties that say nothing."""
    stripped = BID.sub("", line.strip())
    return SYSTEM_CHARS.sub("", NOISE.sub("", stripped)).strip()


def plain_lines(state: State) -> list[str]:
    """The lines of a state that carry text: quoted names or values. `generic` containers and the like go."""
    return [line for line in map(plain_line, state.tree.split("\n")) if "'" in line and not line.endswith(" ''")]


def windows(lines: Sequence[str], size: int) -> list[str]:
    """Cut lines into windows of at most `size` characters (a longer line is cut).

    Cuts fall after lines that a checksum picks, not at fixed distances: a page that changed at the top keeps its
    windows further down, so that they need not be embedded again.
    """
    return list(_windows(lines, size))


def _windows(lines: Sequence[str], size: int) -> Iterator[str]:
    held: list[str] = []
    length = 0
    for line in lines:
        piece = line[:size]
        if held and length + len(piece) > size:
            yield "\n".join(held)
            held, length = [], 0
        held.append(piece)
        length += len(piece) + 1
        if length > size // 3 and zlib.crc32(piece.encode()) % 6 == 0:
            yield "\n".join(held)
            held, length = [], 0
    if held:
        yield "\n".join(held)


def page_title(state: State) -> str:
    """The title in the tree's root line, or nothing."""
    match = re.match(r"\s*RootWebArea '([^']*)'", state.tree)
    return match.group(1) if match else ""


def state_lines(state: State) -> list[str]:
    """What a state is searched by: its title and path, then its lines."""
    path = re.sub(r"^[a-z]+://[^/]*", "", state.url).split("?")[0]
    head = f"{page_title(state)} {path}".strip()
    return [head or "(no title)", *plain_lines(state)]  # embedders refuse an empty text


def words(text: str) -> list[str]:
    """Lower-cased runs of letters, and runs of digits: pages write `500 GB` where questions write `500GB`."""
    return WORD.findall(text.lower())
