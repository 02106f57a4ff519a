"""Every command in README and docs is executed, or its options are read by the program's real parser.

The words of a command go through the real parser, so that a renamed option fails. tests/data/docs_commands.toml lists,
page by page, what gets more or less than that: `run` as written, in one scratch folder a page; `long` as written too,
but only by `make docs-check`; `skip` for what has no parser here or needs the network, a GPU or another program, with
the reason and what executes it instead. A new command whose program is not known here fails until it is listed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHARED
from tests.docs_commands import ROOT, Command, commands, pages, unmarked

LONG = os.environ.get("DOCS_COMMANDS") == "long"
REGISTRY = tomllib.loads((ROOT / "tests" / "data" / "docs_commands.toml").read_text("utf-8"))
TARGETS = re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"))
MAINS = {
    "eval": "eval.__main__",
    "generators": "generators.__main__",
    "benchmarks": "benchmarks.__main__",
    "generators.timelines": "generators.cli",
}
HOW = ("run", "long", "skip")
PAGES = [page.relative_to(ROOT).as_posix() for page in pages()]
PAGES = [name for name in PAGES if "tested_by" not in REGISTRY.get(name, {})]


def listed(name: str, how: str) -> list[str]:
    found = REGISTRY.get(name, {}).get(how, [])
    return [one["command"] for one in found] if how == "skip" else found


@pytest.mark.parametrize("name", PAGES)
def test_the_registry_is_up_to_date_and_no_command_hides(name: str) -> None:
    written = [command.key for command in commands(ROOT / name)]
    gone = [key for how in HOW for key in listed(name, how) if key not in written]
    assert not gone, f"tests/data/docs_commands.toml: no longer in {name}: {gone}"
    assert not unmarked(ROOT / name), "commands belong into ```bash blocks"


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    """Files and headings of this repository; addresses elsewhere are not asked."""
    page = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, heading = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), target
        if heading:
            titles = re.findall(r"(?m)^#+ (.+)$", found.read_text("utf-8"))
            assert heading in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}, target


def test_every_skipped_command_says_why_and_what_executes_it() -> None:
    skipped = [one for name in REGISTRY for one in REGISTRY[name].get("skip", [])]
    pages_of_others = [page["tested_by"] for page in REGISTRY.values() if isinstance(page.get("tested_by"), str)]
    assert all((ROOT / file).is_file() for file in pages_of_others)
    for one in [*skipped, *REGISTRY["programs"].values()]:
        by = one["by"]
        assert one["reason"]
        assert by == "nothing" or by.removeprefix("make ") in TARGETS or (ROOT / by.split("::")[0]).is_file(), by


class ParsedError(Exception):
    """The real parser took the words."""


@contextmanager
def parsing_only() -> Generator[None]:
    """Programs end with `ParsedError` once their parser has read the words."""
    original, depth = argparse.ArgumentParser.parse_known_args, 0

    def read(self: argparse.ArgumentParser, args: Any = None, namespace: Any = None) -> Any:
        nonlocal depth
        depth += 1
        try:
            found = original(self, args, namespace)
        finally:
            depth -= 1
        if depth == 0:
            raise ParsedError
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_known_args", read)
        yield


def accepted(words: list[str]) -> int:
    """0 when the program takes the words, else its exit status, with the reason on standard error."""
    if words[0] == "make":
        return 0 if all(word in TARGETS or "=" in word for word in words[1:]) else 2
    if words[:2] == ["python", "-m"] and words[2] == "pytest":
        return 0 if all((ROOT / word).exists() for word in words[3:] if not word.startswith("-")) else 2
    try:
        if words[0] == "prime-rl":
            return _trained(words[1:])
        assert words[0] == "python", f"no parser is known for {words[0]}: list it in tests/data/docs_commands.toml"
        name, rest = (words[2], words[3:]) if words[1] == "-m" else (words[1], words[2:])
        name = name.removesuffix(".py").replace("/", ".")
        with parsing_only():
            import_module(MAINS.get(name, name)).main(rest)
    except ParsedError:
        return 0
    except SystemExit as end:
        return int(end.code or 0)
    return 0  # an overview, which has no parser


def _trained(words: list[str]) -> int:
    """Its own dry run, since the keys of the configuration are no options; prime-rl itself is elsewhere."""
    if "--prime-rl" in words:
        place = words.index("--prime-rl")
        words = words[:place] + words[place + 2 :]
    return import_module("train.cli").main([*words, "--dry-run"])


def parsed(name: str) -> list[Command]:
    """The commands of a page that are neither run nor skipped."""
    others = {key for how in ("run", "skip") for key in listed(name, how)}
    others |= {key for key in listed(name, "long") if LONG or not key.startswith(("python ", "prime-rl ", "make "))}
    found = [command for command in commands(ROOT / name) if command.key not in others]
    return [command for command in found if command.words[0] not in REGISTRY["programs"]]


PARSED = [command for name in PAGES for command in parsed(name)]


@pytest.mark.parametrize("command", PARSED, ids=[f"{c.where}-{c.key[:40]}" for c in PARSED])
def test_the_options_are_those_of_the_program(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    # in a sentence "..." and [...] stand for what the reader knows, and the rest may be left out
    words = [word.strip("[]") for word in command.words if word != "..."] if command.inline else command.words
    status, said = accepted(words), capsys.readouterr().err
    assert status == 0 or (command.inline and ("required" in said or "expected" in said)), f"{command.where}: {said}"


@pytest.mark.parametrize(
    "line",
    [
        "python -m eval compare A B --resample 3",
        "prime-rl train --env supersede --engine local --warm_start.step 4",
        "python -m generators webworld write DIR --world 3",
        "python -m pytest benchmarks/test_gone.py",
        "make trian",
    ],
)
def test_a_renamed_option_would_be_found(line: str) -> None:
    assert accepted(line.split()) == 2


SCRIPT = """set -u
trap 'kill $(jobs -p) 2>/dev/null' EXIT
"""
WAIT = "for _ in $(seq 100); do (: < /dev/tcp/127.0.0.1/{port}) 2>/dev/null && break; sleep 0.2; done"


def run_page(name: str, keys: list[str], folder: Path) -> list[str]:
    """Run the commands in one bash, in order, as written; the lines of those that failed."""
    program = os.path.dirname(sys.executable)
    script = SCRIPT
    found = [command for command in commands(ROOT / name) if command.key in keys]
    for number, command in enumerate(found):
        # the environments of `make` may lie elsewhere; ports and long outputs stay as they are
        text = command.text.replace(".venv/bin/", f"{program}/").replace(".venv-v040/bin/", f"{ROOT}/.venv-v040/bin/")
        script += f'{text}\necho "== $? {number}"\n'
        port = re.search(r"--port (\d+)", text)
        if port and command.key.endswith("&"):
            script += WAIT.format(port=port[1]) + "\n"
    environment = {
        **os.environ,
        "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    passed = set(re.findall(r"(?m)^== 0 (\d+)$", done.stdout))
    wrong = [f"{c.where}: {c.key}" for number, c in enumerate(found) if str(number) not in passed]
    return [*wrong, done.stderr[-2000:]] if wrong else []


RUN = {name: [*listed(name, "run"), *(listed(name, "long") if LONG else [])] for name in PAGES}


@pytest.mark.parametrize("name", [name for name, keys in RUN.items() if keys])
def test_commands_run_as_written(name: str, tmp_path: Path) -> None:
    keys = RUN[name]
    if any("grader-report" in key for key in keys) and not (SHARED / "cases").is_dir():
        keys = [key for key in keys if "grader-report" not in key]
    for folder in ("docs", "benchmarks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tests").symlink_to(ROOT / "tests")  # README names a file of it
    assert run_page(name, keys, tmp_path) == []
