"""The word banks of `bank/`, read once. They are ASCII without quotes or commas, which graders cut answers at."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def bank(name: str) -> Any:
    """The content of `bank/<name>.json`; not to be changed."""
    return json.loads(Path(__file__).with_name("bank").joinpath(f"{name}.json").read_text(encoding="utf-8"))
