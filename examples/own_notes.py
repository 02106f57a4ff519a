"""A memory of one's own for Supersede: the new notes, from the notes so far and the text of the latest session."""


def remember(notes: str, session: str) -> str:
    """What the user said, the newest first; what does not fit falls off the end."""
    said = [line.removeprefix("User: ") for line in session.splitlines() if line.startswith("User: ")]
    return "\n".join([*reversed(said), notes])[:300]
