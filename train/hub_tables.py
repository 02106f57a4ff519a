"""The generated parts of a card: argument tables from the config classes, a worked rollout and a table from real runs.

A part stands between `<!-- generated:NAME -->` and `<!-- /generated:NAME -->`. It is made from sources and from the
protocol alone, without verifiers, so that it is the same on every machine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rewards.errors import UserError
from train.hub_rollouts import reports, worked
from train.hub_spec import ROOT, Package

_PART = re.compile(r"(<!-- generated:(\w+) -->\n)(.*?)(<!-- /generated:\2 -->)", re.DOTALL)

PREFIX = {"taskset": "--env.taskset.", "task": "--env.taskset.task.", "harness": "--env.agent.harness."}


@dataclass(frozen=True, slots=True)
class Field:
    """One setting of a config class, as its source has it."""

    name: str
    kind: str
    default: str
    meaning: str


def parts(package: Package, root: Path = ROOT) -> dict[str, str]:
    """Every generated part by name."""
    return {"arguments": arguments(package, root), "rollout": worked(package), "reports": reports(package)}


def stale(package: Package, root: Path = ROOT) -> str:
    """What is out of date in the card; empty when nothing is."""
    text = _card(package, root).read_text("utf-8")
    made = parts(package, root)
    found = {match[2]: match[3] for match in _PART.finditer(text)}
    missing = [name for name in made if name not in found]
    if missing:
        return f"the generated part '{missing[0]}' is missing (<!-- generated:{missing[0]} -->)"
    old = [name for name, body in made.items() if found[name] != body]
    return f"out of date: {', '.join(old)}" if old else ""


def rewrite(package: Package, root: Path = ROOT) -> None:
    """Put the generated parts between their marks."""
    file, made = _card(package, root), parts(package, root)

    def part(match: re.Match[str]) -> str:
        return match[1] + made[match[2]] + match[4] if match[2] in made else match[0]

    file.write_text(_PART.sub(part, file.read_text("utf-8")), "utf-8")
    problem = stale(package, root)
    if problem:
        raise UserError(f"{file.parent.name}/{file.name}: {problem}")


def arguments(package: Package, root: Path = ROOT) -> str:
    """Three tables for the v1 API, and the keywords of `load_environment`."""
    classes = config_fields(root / package.module / "taskset.py")
    lines: list[str] = []
    for place, prefix in PREFIX.items():
        lines += [f"**`{prefix}NAME`**", "", "| name | type | default | meaning |", "|---|---|---|---|"]
        lines += [f"| `{f.name}` | {f.kind} | `{f.default}` | {_cell(f.meaning)} |" for f in classes[place]]
        lines.append("")
    own, taken = keywords(package, root)
    lines += ["**`load_environment(NAME=...)`** (verifiers 0.3)", "", "| name | type | default | meaning |"]
    lines += ["|---|---|---|---|"]
    lines += [f"| `{f.name}` | {f.kind} | `{f.default}` | {_cell(f.meaning)} |" for f in own]
    v1 = [f.name for place in ("taskset", "task") for f in classes[place]]
    same = [f"`{name}`" for name in v1 if name in taken]
    lines += ["", f"and, with the defaults and meanings above: {', '.join(same)}."]
    other = sorted(taken - set(v1) - {f.name for f in own})
    missing = [name for name in v1 if name not in taken and name not in {f.name for f in own}]
    if other or missing:
        names = ", ".join(f"`{name}`" for name in other)
        lines += ["", f"Named differently here: {names} for {', '.join(f'`{name}`' for name in missing)}."]
    return "\n".join(lines) + "\n"


def config_fields(file: Path) -> dict[str, list[Field]]:
    """Fields of the taskset's, the task's and the harness's config class: name, type, default, attribute docstring."""
    found: dict[str, list[Field]] = {}
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name.endswith("Config"):
            base = ast.unparse(node.bases[0])
            place = {"vf.TasksetConfig": "taskset", "vf.TaskConfig": "task", "vf.HarnessConfig": "harness"}.get(base)
            if place:
                found[place] = list(_fields(node, file.name))
    if set(found) != set(PREFIX):
        raise UserError(f"{file.name} has config classes of {', '.join(found)} only")
    return found


def keywords(package: Package, root: Path = ROOT) -> tuple[list[Field], set[str]]:
    """(own keywords of load_environment, names of the options that it hands to config dataclasses)."""
    home = root / package.module
    tree = ast.parse((home / "multiturn.py").read_text("utf-8"))
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "load_environment")
    text = ast.get_docstring(function) or ""
    entries = {
        name: " ".join(said.split())
        for name, said in re.findall(r"^    (\w+): (.*?)(?=^    \*{0,2}\w+:|\Z)", text, re.M | re.S)
    }
    arguments = function.args.args
    own = [
        Field(argument.arg, _kind(argument.annotation), ast.unparse(default), entries[argument.arg])
        for argument, default in zip(arguments, function.args.defaults, strict=True)
    ]
    dataclasses = {
        node.name: [
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        ]
        for name in ("data.py", "protocol.py", "reading.py", "scoring.py")
        if (home / name).is_file()
        for node in ast.parse((home / name).read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Config")
    }
    return own, {name for names in dataclasses.values() for name in names}


def _fields(node: ast.ClassDef, where: str) -> Iterator[Field]:
    for item, after in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name) or item.target.id == "task":
            continue
        said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        if not isinstance(said, str) or item.value is None:
            raise UserError(f"{where}, line {item.lineno}: {item.target.id} has no docstring or no default")
        yield Field(item.target.id, _kind(item.annotation), ast.unparse(item.value).strip("'"), " ".join(said.split()))


def _kind(annotation: ast.expr | None) -> str:
    """A type as a table says it: `str or none`, `bounded, full`."""
    if annotation is None:
        return ""
    if isinstance(annotation, ast.Name) and annotation.id == "Search":
        return "bm25, hybrid"
    text = ast.unparse(annotation)
    literal = re.fullmatch(r"Literal\[(.*)\]", text)
    if literal:
        return literal[1].replace("'", "")
    return text.replace(" | ", " or ").replace("None", "none")


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _card(package: Package, root: Path) -> Path:
    return root / package.module / "README.md"
