"""What the `python -m eval` commands share besides the parser (rewards/commands.py): the type of an option."""

from __future__ import annotations

import argparse
from pathlib import Path

from rewards.commands import INTERRUPTED, Parser, answered, usage

__all__ = ["INTERRUPTED", "Parser", "answered", "picture", "usage"]

PICTURES = (".png", ".svg", ".pdf")


def picture(text: str) -> Path:
    """An option's value that names a picture to draw; checked before the work, not after it."""
    file = Path(text)
    if file.suffix.lower() not in PICTURES:
        raise argparse.ArgumentTypeError(f"'{text}' should end in one of {', '.join(PICTURES)}")
    return file
