"""Metrics of the classic adapters (`MultiTurnEnv`): copied from a rollout's outcome, not asked of a function each.

Without verifiers: each environment's rubric is this in front of its `vf.Rubric`.
"""

from __future__ import annotations

from typing import Any


class CopiedMetrics:
    """Mixin in front of a verifiers rubric: its functions are the rewards, the unweighted metrics called `names` are
    copied from `state["outcome_metrics"]` in one pass; a rollout that failed before it had them gets 0.

    A function a metric, as `add_metric` takes them, cost as much as the grader: verifiers reads the signature of each
    three times a rollout.
    """

    names: tuple[str, ...] = ()

    async def score_rollout(self, state: Any) -> None:
        await super().score_rollout(state)  # ty: ignore[missing-attribute]
        self._copy(state)

    async def score_group(self, states: list[Any]) -> None:
        await super().score_group(states)  # ty: ignore[missing-attribute]
        for state in states:
            self._copy(state)

    def _get_reward_func_names(self) -> list[str]:
        """What an `EnvGroup` keeps of its environments' metrics."""
        return [*super()._get_reward_func_names(), *self.names]  # ty: ignore[missing-attribute]

    def _copy(self, state: Any) -> None:
        found = state.get("outcome_metrics", {})
        state["metrics"] |= {name: found.get(name, 0.0) for name in self.names}
