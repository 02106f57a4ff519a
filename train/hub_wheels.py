"""What a wheel and its source archive must hold, looked at without installing them."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser as MailParser
from pathlib import Path

from train.hub_build import Built
from train.hub_sources import pyproject, third_party
from train.hub_spec import OPTIONAL, SHARED, WITH_VERIFIERS, Package, requirements

HEAVY = ("torch", "transformers", "vllm", "peft", "sentence-transformers")
"""Distributions that no plain installation may pull in."""

CARD = ("overview", "datasets", "task", "scoring", "quickstart", "arguments", "metrics", "evaluation reports", "limits")
"""Sections of a card, in this order."""

Check = tuple[str, str]
"""(what was looked at, what is wrong: empty when nothing)."""


def checks(package: Package, built: Built) -> Iterator[Check]:
    """Every check of one package's archives."""
    with zipfile.ZipFile(built.wheel) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        metadata = MailParser().parsestr(wheel.read(_info(names, "METADATA")).decode())
    yield "metadata", _metadata(package, metadata)
    yield "dependencies", _dependencies(package, metadata)
    yield "imports declared", _imports(package, built.folder)
    tops = {name.partition("/")[0] for name in names} - {_info(names, "METADATA").partition("/")[0]}
    yield "owns one package", "" if tops == {package.module} else f"top-level names: {', '.join(sorted(tops))}"
    wanted = (*package.data, "LICENSE", "pyproject.toml", "__init__.py", "taskset.py", "multiturn.py")
    missing = [name for name in wanted if f"{package.module}/{name}" not in names]
    yield "package data", f"missing: {', '.join(missing)}" if missing else ""
    yield "no stray imports", _stray(package, built.wheel)
    yield "card", card_problem((built.folder / "README.md").read_text("utf-8"))
    yield "source archive", _sdist(package, built, names)


def shared_files(first: Path, second: Path) -> set[str]:
    """Files that two wheels would both own."""
    owned = []
    for wheel in (first, second):
        with zipfile.ZipFile(wheel) as archive:
            owned.append({name for name in archive.namelist() if not name.endswith("/")})
    return owned[0] & owned[1]


def card_problem(card: str) -> str:
    """What a card lacks; empty when it has every section, in order."""
    headings = [line[3:].strip().lower() for line in card.splitlines() if line.startswith("## ")]
    missing = [name for name in CARD if name not in headings]
    if missing:
        return f"no section '{missing[0]}'"
    order = [name for name in headings if name in CARD]
    return "" if order == list(CARD) else f"sections in another order: {', '.join(order)}"


def _metadata(package: Package, metadata: Message) -> str:
    wanted = {
        "Name": package.name,
        "Version": package.version,
        "Summary": package.description,
        "License-Expression": "Apache-2.0",
        "Description-Content-Type": "text/markdown",
    }
    wrong = [f"{key} is {metadata[key]!r}" for key, value in wanted.items() if metadata[key] != value]
    tags = set((metadata["Keywords"] or "").split(","))
    if tags != set(package.tags):
        wrong.append(f"Keywords are {sorted(tags)}")
    if len(package.description) > 120:
        wrong.append("the description is longer than 120 characters")
    return "; ".join(wrong)


def _dependencies(package: Package, metadata: Message) -> str:
    lines = metadata.get_all("Requires-Dist") or []
    plain = {_name(line): line for line in lines if "extra ==" not in line}
    needed, _ = requirements(package)
    if set(plain) != {_name(line) for line in needed}:
        return f"requires {', '.join(sorted(plain))}"
    heavy = [name for name in HEAVY if name in plain]
    if heavy:
        return f"requires {heavy[0]}"
    limits = set(re.findall(r"[<>=!~]+[\w.]+", plain["verifiers"]))
    return "" if limits == {">=0.3.1.dev59", "<0.5"} else f"verifiers is limited by {sorted(limits)}"


def _imports(package: Package, folder: Path) -> str:
    """Third-party modules that no declared dependency brings, or optional ones that load at import time."""
    files = (folder / package.module).rglob("*.py")
    declared = {name.replace("-", "_") for name in package.needs} | WITH_VERIFIERS
    wrong = []
    for name, at_once in third_party(files, [package.module]).items():
        if name not in declared and name not in OPTIONAL:
            wrong.append(f"{name} is imported and not declared")
        elif name in OPTIONAL and at_once:
            wrong.append(f"{name} is optional and imported at once")
    return "; ".join(wrong)


def _stray(package: Package, wheel: Path) -> str:
    """Imports of a package that the wheel does not bring: the repository's other rooms, the other environment."""
    rooms = (*SHARED, "train", "eval", "configs", "tests", "benchmarks", "supersede_env", "lme_v2_env")
    foreign = "|".join(name for name in rooms if name != package.module)
    pattern = re.compile(rf"^\s*(?:from|import)\s+({foreign})\b", re.MULTILINE)
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".py") and (match := pattern.search(archive.read(name).decode())):
                return f"{name} imports {match[1]}"
    return ""


def _sdist(package: Package, built: Built, wheel_names: list[str]) -> str:
    """The archive must build the same wheel: every file of the package is in it, and the metadata file."""
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = [name for name in wheel_names if name.startswith(f"{package.module}/")]
    missing = [name for name in (*wanted, "README.md", "pyproject.toml") if name not in names]
    missing = [name for name in missing if name != f"{package.module}/pyproject.toml"]
    if missing:
        return f"missing: {missing[0]}"
    return "" if pyproject(package)["project"]["tags"] else "no tags for the Hub"


def _info(names: list[str], name: str) -> str:
    return next(path for path in names if path.endswith(f".dist-info/{name}"))


def _name(requirement: str) -> str:
    return re.split(r"[\s<>=!~\[;(]", requirement)[0].lower().replace("_", "-")
