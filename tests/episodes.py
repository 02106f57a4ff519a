"""Small hand-made episodes for tests; every value is told apart by its spelling."""

from __future__ import annotations

from typing import Any


def record(number: int = 0, count: int = 3, **changes: Any) -> dict[str, Any]:
    """An episode whose value changes in each session: city-<number>-0, city-<number>-1, ..."""
    values = [f"Harbour{number}x{i}" for i in range(count)]
    return {
        "id": f"secret-id-{number}",
        "sessions": [
            {
                "date": f"2024/0{i + 1}/11 (Mon) 09:30",
                "turns": [
                    {"role": "user", "content": f"Told in session {i}: I live in {value} now. Any {{notes}} tips?"},
                    {"role": "assistant", "content": f"Enjoy it. <dated>Reply {number}.{i}</dated>"},
                ],
            }
            for i, value in enumerate(values)
        ],
        "question": f"Where do I live, traveller {number}?",
        "question_date": "2024/10/01 (Tue) 08:00",
        "gold": values[-1],
        "stale": values[:-1],
        "asks": "current",
        "abstain": False,
        "evidence": [[count - 1, 0]],
        "source": "hand-made",
        "tags": {"type-tag": "hidden"},
        **changes,
    }
