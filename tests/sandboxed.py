"""Whether a sandbox can be made here; tests that need one say what to install."""

from __future__ import annotations

from functools import cache

import pytest

from eval.baselines.coding.sandbox import require
from rewards.errors import UserError


@cache
def _refusal() -> str:
    try:
        require()
    except UserError as error:
        return str(error)
    return ""


def needs_sandbox() -> None:
    if _refusal():
        pytest.skip(_refusal())
