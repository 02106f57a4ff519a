"""LME-V2: a memory over web-agent trajectories, and questions about the environments that they explored.

The core (`trajectory`, `dataset`, `memory`, `reader`, `protocol`) imports numpy at most; everything heavier loads when
it is used. Names below load lazily: verifiers alone takes about three seconds to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lme_v2_env.multiturn import load_environment as load_environment
    from lme_v2_env.taskset import LmeV2Env, LmeV2Harness, LmeV2Taskset

# verifiers 0.3.1 wants exactly one Taskset, at most one Harness and one Env here; `load_environment` stays outside.
__all__ = ["LmeV2Env", "LmeV2Harness", "LmeV2Taskset"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from lme_v2_env import taskset

        return getattr(taskset, name)
    if name == "load_environment":
        from lme_v2_env.multiturn import load_environment

        return load_environment
    raise AttributeError(f"module 'lme_v2_env' has no attribute '{name}'")
