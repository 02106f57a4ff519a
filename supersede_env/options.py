"""See `rewards.options`: both environments check their options the same way."""

from rewards.options import build

__all__ = ["build"]
