"""The fixed part of each split, by sha256: a change of any byte of it needs a new version."""

from __future__ import annotations

import hashlib
import json

from generators.webworld.config import SPLITS
from generators.webworld.dataset import bundle

DATASET_VERSION = 1
"""Raised whenever a seed's rows change; results on different versions are not comparable."""

WORLDS = 8
"""So many worlds of each split go into its fingerprint: enough to notice, and quick."""


def fingerprints() -> dict[str, str]:
    """`preset/split` -> sha256 over all rows of the first worlds."""
    found = {}
    for preset in ("easy", "standard"):
        for split, seeds in SPLITS.items():
            digest = hashlib.sha256()
            for seed in seeds[:WORLDS]:
                made = bundle(seed, preset)
                for row in (*made.trajectories, *made.questions, *made.evidence):
                    digest.update(json.dumps(row).encode())
            found[f"{preset}/{split}"] = digest.hexdigest()
    return found
