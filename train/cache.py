"""Keys and values for sampling in lock-step: one preallocated block a layer, filled column by column.

transformers' attention layers call only `update` when mask and positions are given, so no other part of its cache
interface is needed, and a row can leave the block when its reply has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Layers = list[tuple[Tensor, Tensor]]


class LockstepCache:
    """`rows` sequences whose next token lies in the same column. Prompts are right-aligned before column `filled`."""

    is_compileable = False

    def __init__(self, rows: int, filled: int, size: int) -> None:
        self.rows, self.filled, self.size = rows, filled, size
        self.layers: Layers = []

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Called by each attention layer in turn with its new [rows, heads, tokens, dim]."""
        all_keys, all_values = self.layers[layer]
        end = self.filled + keys.shape[2]
        all_keys[:, :, self.filled : end] = keys
        all_values[:, :, self.filled : end] = values
        if layer == len(self.layers) - 1:
            self.filled = end
        return all_keys[:, :, :end], all_values[:, :, :end]

    def place(self, prompts: Layers, source: int, rows: Sequence[int], length: int) -> None:
        """Lay one read prompt (row `source`, its first `length` columns) before column `filled` of `rows`."""
        if not self.layers:
            for keys, values in prompts:
                shapes = [(self.rows, part.shape[1], self.size, part.shape[3]) for part in (keys, values)]
                # zeros, not empty: masked columns are still multiplied by zero, and garbage may be NaN
                self.layers.append((keys.new_zeros(shapes[0]), values.new_zeros(shapes[1])))
        target = torch.tensor(rows, device=self.layers[0][0].device)
        for (all_keys, all_values), (keys, values) in zip(self.layers, prompts, strict=True):
            all_keys[target, :, self.filled - length : self.filled] = keys[source, :, :length]
            all_values[target, :, self.filled - length : self.filled] = values[source, :, :length]

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.layers = [(keys[rows], values[rows]) for keys, values in self.layers]
        self.rows = len(rows)
