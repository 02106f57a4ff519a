"""Supersede: keep a bounded memory current over many chat sessions.

Names load lazily: verifiers alone takes about three seconds to import, and the pure core does not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supersede_env.multiturn import load_environment as load_environment
    from supersede_env.taskset import SupersedeEnv, SupersedeHarness, SupersedeTaskset

# verifiers 0.3.1 wants exactly one Taskset, at most one Harness and one Env here; `load_environment` stays outside.
__all__ = ["SupersedeEnv", "SupersedeHarness", "SupersedeTaskset"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from supersede_env import taskset

        return getattr(taskset, name)
    if name == "load_environment":
        from supersede_env.multiturn import load_environment

        return load_environment
    raise AttributeError(f"module 'supersede_env' has no attribute '{name}'")
