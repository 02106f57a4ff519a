"""The type of an option that the `python -m eval` commands share; their parser is rewards/commands.py's."""

from __future__ import annotations

import argparse
from pathlib import Path

PICTURES = (".png", ".svg", ".pdf")


def picture(text: str) -> Path:
    """An option's value that names a picture to draw; checked before the work, not after it."""
    file = Path(text)
    if file.suffix.lower() not in PICTURES:
        raise argparse.ArgumentTypeError(f"'{text}' should end in one of {', '.join(PICTURES)}")
    return file
