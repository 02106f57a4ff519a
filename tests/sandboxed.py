"""Whether a sandbox can be made here; tests that need one say what to install.

Where plain bubblewrap works, a sandbox that does not is a failure, not a reason to skip.
"""

from __future__ import annotations

import subprocess
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


PLAIN = "bwrap --unshare-all --unshare-user --disable-userns --ro-bind / / --proc /proc --dev /dev true"


def needs_sandbox() -> None:
    if _refusal().startswith("bubblewrap cannot"):
        assert subprocess.run(PLAIN.split(), check=False, capture_output=True).returncode != 0, _refusal()
    if _refusal():
        pytest.skip(_refusal())
