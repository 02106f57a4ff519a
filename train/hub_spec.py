"""The two Hub packages: what each is called, says of itself and needs. A new version is one line here."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from rewards.errors import UserError, refuse_unknown

ROOT = Path(__file__).resolve().parents[1]
"""The checkout: packages are assembled from its sources."""

DEVELOPMENT = "supersede-envs"
"""The distribution of this repository; it owns the same modules and is never published."""

SHARED = ("rewards", "generators")
"""Top-level packages of the repository that are copied into an environment's own package, as `_rewards`..."""

BACKEND = "hatchling>=1.27"
"""Builds the packages: setuptools refuses `tags` under [project], which is where the Hub reads them."""

OPTIONAL = frozenset({"sentence_transformers", "tokenizers"})
"""Imported inside a function, for an option that is off by default and that says what to install."""

OF_EXTRA = {"openenv.py": frozenset({"openenv", "fastapi", "uvicorn"})}
"""Modules that nothing imports and that say what to install: file name -> what the extra of that name brings."""

WITH_VERIFIERS = frozenset({"pydantic", "openai", "huggingface_hub", "datasets"})
"""Third-party modules that verifiers brings itself; `datasets` 0.3 only, where alone `load_environment` needs it."""


@dataclass(frozen=True, slots=True)
class Package:
    """One environment of the Hub.

    Attributes:
        name: of the distribution and of the environment (`prime env install OWNER/name`).
        version: raised before every push that changes anything.
        tags: what the Hub lists it under.
        needs: names of the requirements taken over from the repository's pyproject.toml.
        extras: names of its optional dependencies taken over.
        data: package data that a wheel without would fail at, as paths in the package.
        try_options: a small task set that plays in seconds, as taskset options.
        plays: a scripted policy (hub_rollouts.played_by) that earns some reward on it from its prompts alone.
    """

    name: str
    version: str
    description: str
    tags: tuple[str, ...]
    needs: tuple[str, ...]
    extras: tuple[str, ...]
    data: tuple[str, ...]
    try_options: tuple[tuple[str, str], ...]
    plays: str

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")


PACKAGES = (
    Package(
        name="supersede-env",
        version="0.1.0",
        description="Keep bounded notes current while facts change over chat sessions, then answer (Supersede).",
        tags=("memory", "knowledge-update", "long-context", "multi-turn", "train", "eval"),
        needs=("verifiers", "rapidfuzz", "httpx"),
        extras=("openenv",),
        data=(
            "wordings.json",
            "longmemeval_stale.json",
            "longmemeval_exclusions.json",
            "_generators/language/attributes.json",
            "_generators/language/attributes_train.json",
            "_generators/language/attributes_validation.json",
            "_generators/language/chatter_train.json",
            "_generators/language/pools_train.json",
            "_generators/language/wrappers_train.json",
            "_generators/language/fixed_sets.json",
        ),
        try_options=(("data", "validation"), ("preset", "quick")),
        plays="echo",
    ),
    Package(
        name="lme-v2-env",
        version="0.1.0",
        description="Gather evidence from a memory of web-agent runs; a fixed reader answers (LongMemEval-V2).",
        tags=("memory", "retrieval", "search", "web-agents", "multi-turn", "train", "eval"),
        needs=("verifiers", "rapidfuzz", "httpx", "numpy"),
        extras=("embed", "openenv"),
        data=(
            "policy_prompts.json",
            "reader_prompts.json",
            "writer_prompts.json",
            "_generators/webworld/bank/words.json",
            "_generators/webworld/bank/kinds.json",
            "_generators/webworld/bank/questions.json",
        ),
        try_options=(("data", "heldout"), ("preset", "easy")),
        plays="search",
    ),
)


def chosen(names: list[str] | None) -> tuple[Package, ...]:
    """The packages called `names`; all without. Raises `UserError` with the nearest name."""
    if not names:
        return PACKAGES
    refuse_unknown(names, [package.name for package in PACKAGES], "package")
    return tuple(package for package in PACKAGES if package.name in names)


def requirements(package: Package) -> tuple[list[str], dict[str, list[str]]]:
    """(dependencies, optional dependencies), with the very limits of the repository's pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    by_name = {re.split(r"[\s<>=!~\[;]", line)[0]: line for line in project["dependencies"]}
    missing = [name for name in package.needs if name not in by_name]
    if missing:
        raise UserError(f"pyproject.toml has no dependency '{missing[0]}', which {package.name} takes over")
    extras = {name: project["optional-dependencies"][name] for name in package.extras}
    return [by_name[name] for name in package.needs], extras


def refuse_beside() -> None:
    """Raise `UserError` where the development distribution and a Hub package share an environment.

    Both own the same modules and no packaging standard can declare that, so it is the commands that look: with an
    editable checkout the Hub package would win, and edits would have no effect.
    """
    if not _installed(DEVELOPMENT):
        return
    for package in PACKAGES:
        if _installed(package.name):
            raise UserError(
                f"{DEVELOPMENT} and {package.name} are both installed and both own {package.module}: "
                f"pip uninstall {package.name} (or {DEVELOPMENT})"
            )


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
