"""Assemble a Hub package's sources: the environment, what it uses of `rewards` and `generators`, and its metadata.

Used modules are found by following imports. They are copied to `<package>._rewards` and `<package>._generators` with
their imports rewritten, so that a wheel owns its own top-level package only and two wheels share no file.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import tomli_w

from rewards.errors import UserError
from train.hub_spec import BACKEND, OF_EXTRA, ROOT, SHARED, Package, requirements

_COMMAND = re.compile(rf"python -m ({'|'.join(SHARED)})\b")
"""How help texts call a copied module's command line."""


def assemble(package: Package, out: Path, root: Path = ROOT) -> Path:
    """Write OUT/<name>: pyproject.toml, README.md, LICENSE and the package. Returns that folder."""
    folder = out / package.name
    if folder.exists():
        raise UserError(f"{folder} is there already: remove it or choose another --out")
    home = folder / package.module
    for source in sorted((root / package.module).rglob("*")):
        inside = source.relative_to(root / package.module)
        if source.is_file() and "__pycache__" not in inside.parts and inside.name != "README.md":
            _copy(source, home / inside, package.module)
    for source in sorted(used_files(package, root)):
        top, *rest = source.relative_to(root).parts
        _copy(source, home.joinpath(f"_{top}", *rest), package.module)
    for top in SHARED:
        if (home / f"_{top}").is_dir():
            (home / f"_{top}" / "__init__.py").touch()
    # `prime env push` archives README.md, pyproject.toml and folders: the licence is kept in the package, too.
    for licence in (folder / "LICENSE", home / "LICENSE"):
        shutil.copyfile(root / "LICENSE", licence)
    shutil.copyfile(root / package.module / "README.md", folder / "README.md")
    (folder / "pyproject.toml").write_text(tomli_w.dumps(pyproject(package)), "utf-8")
    return folder


def pyproject(package: Package) -> dict[str, Any]:
    dependencies, extras = requirements(package)
    return {
        "build-system": {"requires": [BACKEND], "build-backend": "hatchling.build"},
        "project": {
            "name": package.name,
            "version": package.version,
            "description": package.description,
            "readme": "README.md",
            "requires-python": ">=3.11,<3.14",
            "license": "Apache-2.0",
            "license-files": [f"{package.module}/LICENSE"],
            "tags": list(package.tags),
            "keywords": list(package.tags),
            "dependencies": dependencies,
            **({"optional-dependencies": extras} if extras else {}),
        },
        "tool": {
            "hatch": {
                "build": {
                    "targets": {
                        # `vf-eval` of verifiers 0.3 reads its defaults from a pyproject.toml in the package.
                        "wheel": {
                            "packages": [package.module],
                            "force-include": {"pyproject.toml": f"{package.module}/pyproject.toml"},
                        },
                        "sdist": {"include": [package.module, "README.md", "LICENSE", "pyproject.toml"]},
                    }
                }
            },
            "verifiers": {"eval": {"num_examples": 5, "rollouts_per_example": 3}},
        },
    }


def used_files(package: Package, root: Path = ROOT) -> set[Path]:
    """The files of `rewards` and `generators` that the package needs: modules it imports at any depth, their data.

    Data of a module lie in the folder beside it that has its name (language.py, language/).
    """
    waiting = [path for path in (root / package.module).rglob("*.py") if "__pycache__" not in path.parts]
    used: set[Path] = set()
    while waiting:
        for name in _shared_imports(waiting.pop(), root):
            for file in _module_files(name, root):
                if file not in used:
                    used.add(file)
                    if file.suffix == ".py":
                        waiting.append(file)
    return used


def third_party(files: Iterable[Path], own: Iterable[str]) -> dict[str, bool]:
    """Top-level modules that the files import, beside the standard library and `own` -> at import time of any file?"""
    import sys

    known = {*own, *sys.stdlib_module_names}
    found: dict[str, bool] = {}
    for file in files:
        tree = ast.parse(file.read_text("utf-8"))
        at_once = {id(node) for node in _outer_statements(tree)}
        for node in ast.walk(tree):
            for name in _imported(node):
                top = name.partition(".")[0]
                if top not in known and top not in OF_EXTRA.get(file.name, ()):
                    found[top] = found.get(top, False) or id(node) in at_once
    return found


def rewrite(text: str, module: str, where: str) -> str:
    """The source with imports of `rewards` and `generators` turned to `<module>._rewards`, `<module>._generators`.

    Only import statements change, and how texts call the copied commands. An import that would bind the bare name
    (`import rewards.text`) is refused: its uses could not be found reliably.
    """
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            if any(alias.name.partition(".")[0] in SHARED for alias in node.names):
                raise UserError(f"{where}, line {node.lineno}: write `from {node.names[0].name} import ...`")
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            top = node.module.partition(".")[0]
            if top in SHARED:
                line = lines[node.lineno - 1]
                # col_offset counts bytes, but nothing but white space stands before an import of ours
                head, tail = line[: node.col_offset], line[node.col_offset :]
                new = re.sub(rf"^from\s+{top}\b", f"from {module}._{top}", tail)
                if new == tail:
                    raise UserError(f"{where}, line {node.lineno}: this import cannot be rewritten")
                lines[node.lineno - 1] = head + new
    return _COMMAND.sub(rf"python -m {module}._\1", "".join(lines))


def _copy(source: Path, target: Path, module: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".py":
        target.write_text(rewrite(source.read_text("utf-8"), module, str(source)), "utf-8")
    else:
        shutil.copyfile(source, target)


def _shared_imports(file: Path, root: Path) -> Iterator[str]:
    """Dotted names of shared modules that a file imports, lazily or not."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        for name in _imported(node):
            if name.partition(".")[0] in SHARED:
                yield name
                if isinstance(node, ast.ImportFrom):
                    yield from (f"{name}.{alias.name}" for alias in node.names if _path(f"{name}.{alias.name}", root))


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
        yield node.module


def _outer_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """What runs when the module is imported: everything outside functions and `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        yield node
        yield from _outer_statements(node)


def _path(name: str, root: Path) -> Path | None:
    base = root.joinpath(*name.split("."))
    for file in (base.with_suffix(".py"), base / "__init__.py"):
        if file.is_file():
            return file
    return None


def _module_files(name: str, root: Path) -> Iterator[Path]:
    """The module's file, the packages around it, and its data."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        file = _path(".".join(parts[:length]), root)
        if file is None:
            raise UserError(f"there is no module {name}")
        yield file
        data = file.with_suffix("")
        if file.name != "__init__.py" and data.is_dir():
            yield from (path for path in data.iterdir() if path.is_file())
