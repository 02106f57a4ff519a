"""Where tests find real data, and what they say when it is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("SUPERSEDE_SHARED", ROOT.parent / "shared"))


def _folder(name: str, what: str) -> Path:
    folder = SHARED / "data" / name
    if not folder.is_dir():
        pytest.skip(f"{what} is not at ../shared/data/{name}: set SUPERSEDE_SHARED to a folder that holds data/{name}")
    return folder


@pytest.fixture(scope="session")
def oracle_dir() -> Path:
    return _folder("longmemeval_oracle", "LongMemEval (oracle)")


@pytest.fixture(scope="session")
def s_dir() -> Path:
    return _folder("longmemeval_s_knowledge_update", "LongMemEval-S")
