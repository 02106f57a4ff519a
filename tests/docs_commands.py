"""Commands out of Markdown: those in fenced bash blocks, and those between backticks in running text and tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^ *```(\w*)$")
INLINE = re.compile(r"`((?:python -m|prime-rl train|make) [^`]*)`")
ASSIGNED = re.compile(r"^[A-Z_]+=")


@dataclass(frozen=True, slots=True)
class Command:
    """One command as written; `where` is file and line; an inline one may leave out what its sentence does not need."""

    file: str
    line: int
    text: str
    inline: bool = False

    @property
    def key(self) -> str:
        """The command on one line, without its comment: what the registry calls it."""
        return " ".join(_without_comment(self.text).replace("\\\n", " ").split())

    @property
    def words(self) -> list[str]:
        """The program and its arguments: without assignments before it, redirections and a closing `&`."""
        words = shlex.split(self.key.removesuffix("&"))
        while words and ASSIGNED.match(words[0]):
            words = words[1:]
        words = words[: words.index(">")] if ">" in words else words
        return ["python", *words[1:]] if words[0] == ".venv/bin/python" else words

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


def pages() -> list[Path]:
    """README.md, the Hub cards, docs/ and CONTRIBUTING.md; not the page of generated episodes."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("[a-z]*/README.md"), *ROOT.glob("docs/**/*.md")]
    return sorted({page for page in found if page.is_file() and page.name != "timelines_ten.md"})


def commands(page: Path) -> Iterator[Command]:
    """The commands of a page in order."""
    name = page.relative_to(ROOT).as_posix()
    fence: str | None = None
    parts: list[str] = []
    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        mark = FENCE.match(line)
        if mark:
            fence = (mark[1] or "text") if fence is None else None
        elif fence is None:
            yield from (Command(name, number, text, inline=True) for text in INLINE.findall(line))
        elif fence == "bash" and (parts or (line.strip() and not line.lstrip().startswith("#"))):
            parts.append(line.strip())
            if not line.endswith("\\"):
                yield Command(name, number - len(parts) + 1, "\n".join(parts))
                parts = []


def unmarked(page: Path) -> list[str]:
    """Commands in a block that is not marked as bash, or that is only indented: they would escape the test."""
    fence: str | None = None
    missed = []
    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        mark = FENCE.match(line)
        if mark:
            fence = (mark[1] or "text") if fence is None else None
        elif fence not in ("bash", "python") and re.match(r" *(python -m|prime-rl train) ", line):
            missed.append(f"{page.relative_to(ROOT)}:{number}: {line.strip()}")
    return missed


def _without_comment(text: str) -> str:
    """Comments begin at a `#` after white space; none of the commands has one in quotes."""
    return re.sub(r"(?m)\s#.*$", "", text)
