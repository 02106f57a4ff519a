"""The drawing library, loaded when something is drawn: commands that draw nothing start without it."""

from __future__ import annotations

from typing import Any

from rewards.errors import UserError


def load_pyplot(asked_by: str) -> Any:
    """matplotlib.pyplot, for files only. Raises `UserError` that names the option `asked_by` where it is missing."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise UserError(f"{asked_by} needs matplotlib: pip install 'supersede-envs[plots]'") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
