"""Ids of rows: 8 hex digits like the published ones, different for every row of every world, and telling nothing."""

from __future__ import annotations

PER_WORLD = 512
"""Rows of a world, trajectories and questions together."""

TRAJECTORY, QUESTION = 0, 256


def row_id(seed: int, number: int, kind: int) -> str:
    """The id of a world's n-th trajectory or question. Distinct for seeds below 2**23: each step is a bijection."""
    assert number < 256
    value = seed * PER_WORLD + kind + number
    assert value < 1 << 32
    for _ in range(2):
        value = (value ^ (value >> 15)) * 0x2C1B3C6D & 0xFFFFFFFF
        value ^= value >> 12
    return f"{value:08x}"
