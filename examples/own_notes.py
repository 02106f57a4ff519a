"""A memory of one's own for Supersede: after each session, the new notes from the old ones and the session's text.

python -m eval supersede --model none --data validation --preset quick --n 60 --system examples.own_notes:remember --out runs/own
"""

BUDGET = 300


def remember(notes: str, session: str) -> str:
    """Keep what the user said, the newest first; the oldest falls off the end."""
    said = [line.removeprefix("User: ") for line in session.splitlines() if line.startswith("User: ")]
    return "\n".join([*reversed(said), notes])[:BUDGET]
