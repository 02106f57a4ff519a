"""A user's own memory: the commands of docs/own_memory.md, what such code may see, and what happens when it fails."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eval import __main__ as evaluation
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig, render_turns
from tests.conftest import ROOT
from tests.episodes import record
from tests.lme_world import trajectory, write
from tests.scripted_endpoint import ScriptedEndpoint, echo

PAGE = ROOT / "docs" / "own_memory.md"
COUNT = 4


def commands() -> list[str]:
    """The page's commands, continued lines joined."""
    text = PAGE.read_text("utf-8").replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.startswith("    python -m eval ")]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text("utf-8").splitlines()]


def written(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module `mine` in a folder from which the command is started."""
    (folder / "mine.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)


def episodes(folder: Path) -> str:
    file = folder / "own.jsonl"
    file.write_text("".join(json.dumps(record(number)) + "\n" for number in range(COUNT)), encoding="utf-8")
    return str(file)


def test_the_pages_commands_run_and_print_what_it_shows(tmp_path: Path) -> None:
    shown, world = PAGE.read_text("utf-8"), write(tmp_path / "world", [trajectory(number) for number in range(4)])
    with ScriptedEndpoint(echo) as model:
        for command in commands():
            for name, value in (("URL", model.url), ("FOLDER", str(world)), ("runs/", f"{tmp_path}/")):
                command = command.replace(name, value)
            program = [sys.executable, *shlex.split(command)[1:]]
            environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
            done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            if "remember" in command and "--model none" in command:
                assert "".join(f"    {line}\n" for line in done.stdout.splitlines()[1:3]) in shown
    assert all(row["scored"] for row in rows_of(tmp_path / "own" / "remember"))
    assert any(row["correct"] for row in rows_of(tmp_path / "lme" / "Words"))
    for example in ("own_notes.py", "own_memory.py"):
        assert len((ROOT / "examples" / example).read_text("utf-8").splitlines()) <= 20


SPY = """
import json
def keep(notes, session):
    with open("seen.jsonl", "a") as file:
        file.write(json.dumps([notes, session]) + "\\n")
    return session + "\\ud800"
"""


@pytest.mark.parametrize("flags", [[], ["--no-dates"]])
def test_the_function_sees_notes_and_sessions_alone_and_its_notes_are_the_protocols(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, SPY, monkeypatch)
    config = ProtocolConfig(budget=90, show_dates=not flags)
    with ScriptedEndpoint(lambda messages: "Harbour0x2") as model:
        command = ["supersede", "--model", "m", "--base-url", model.url, "--data", episodes(tmp_path), "--n", "1"]
        assert evaluation.main([*command, "--system", "mine:keep", "--budget", "90", "--out", "runs", *flags]) == 0
        requests = model.requests
    episode = Episode.from_record(record(0))
    expected, seen = NotesRollout(episode.view, config), []
    for session in episode.sessions:
        text = ("" if flags else f"[{session.date}]\n") + render_turns(session)
        seen.append([expected.notes, text])
        expected.step(text + "\ufffd")
    assert [json.loads(line) for line in Path("seen.jsonl").read_text().splitlines()] == seen
    assert requests == [tuple((m["role"], m["content"]) for m in expected.prompt())]
    (row,) = rows_of(Path("runs/keep"))
    assert (row["verdict"], row["overflows"], len(row["memory_seconds"])) == ("correct", 3, 3)


FAILING = """
def fussy(notes, session):
    if "Harbour2x1" in session:
        return 1 / 0
    return None if "Harbour3x0" in session else session
"""


@pytest.mark.parametrize("answered_by", ["endpoint", "none", "local"])
def test_what_the_function_raises_leaves_that_row_unscored_with_its_traceback(
    answered_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, FAILING, monkeypatch)
    command = ["supersede", "--data", episodes(tmp_path), "--system", "mine:fussy", "--out", "runs", "--model"]
    if answered_by == "local":
        pytest.importorskip("torch")
        from eval import local_model
        from tests.tiny import tiny_policy

        policy = tiny_policy(["Harbour0x2"], window=2048)
        monkeypatch.setattr(local_model, "load_policy", lambda options: policy)
    with ScriptedEndpoint(echo) as model:
        more = {"endpoint": ["m", "--base-url", model.url], "none": ["none"], "local": ["tiny", "--max-tokens", "8"]}
        command += more[answered_by]
        assert evaluation.main(command) == 3
        assert evaluation.main(command) == 3  # two of four rows: INVALID, and asked again
    rows = {row["id"]: row for row in rows_of(Path("runs/fussy"))}
    assert [row["scored"] for row in rows.values()] == [True, True, False, False]
    raised, typed = rows["secret-id-2"], rows["secret-id-3"]
    assert raised["unscored_reason"] == "memory: session 2: ZeroDivisionError: division by zero (mine.py, line 4)"
    assert "return 1 / 0" in raised["traceback"]
    assert typed["unscored_reason"] == "memory: session 1: the notes are of type NoneType, not a text"
    (tmp_path / "mine.py").write_text(FAILING.replace("1 / 0", "session"), encoding="utf-8")
    assert evaluation.main(command) == 2  # other code is another run


WRONG = """
class NoQuery:
    def insert(self, trajectory): ...
class Picky:
    def __init__(self, model): ...
class Torn:
    def __init__(self): raise KeyError("weights")
class Bad:
    def insert(self, trajectory): trajectory.steps
    def query(self, question, image=None): ...
def one(notes): ...
LIMIT = 3
async def later(notes, session): ...
class Later:
    async def insert(self, trajectory): ...
    def query(self, question, image=None): ...
class Leaving(Bad):
    def insert(self, trajectory): raise SystemExit
class Strange(Bad):
    settings = {"weights": object()}
class Listed(Bad):
    settings = 5
"""


@pytest.mark.parametrize(
    ("command", "system", "message"),
    [
        ("supersede", "nosuch.module:f", "cannot be had: No module named 'nosuch'"),
        ("supersede", "mine:nope", "cannot be had: module 'mine' has no attribute 'nope'"),
        ("supersede", "broken:f", "cannot be had: SyntaxError: invalid syntax (broken.py, line 1)\n"),
        ("supersede", "mine:one", "takes (notes), but is called with (notes, session)"),
        ("supersede", "mine:LIMIT", "is a int: give a class or a function"),
        ("supersede", "coppy_last", "unknown system 'coppy_last'; did you mean 'copy_last'?"),
        ("supersede", "facts", "--system facts needs one to keep the notes"),
        ("lme-v2", "mine:Picky", "takes (model), but is called with ()"),
        ("lme-v2", "mine:NoQuery", "makes a NoQuery without query()"),
        ("lme-v2", "mine:Torn", "makes no memory: KeyError: 'weights' (mine.py, line 7)"),
        ("supersede", "leaving:f", "cannot be had: SystemExit: 0 (leaving.py, line 1)"),
        ("supersede", "mine:later", "is async, and nobody would await it: give a plain function"),
        ("lme-v2", "mine:Later", "insert() is async"),
        ("lme-v2", "mine:Leaving", "SystemExit (mine.py, line 18)"),
        ("lme-v2", "mine:Strange", "settings cannot be recorded as JSON: Object of type object"),
        ("lme-v2", "mine:Listed", "settings cannot be recorded as JSON: it is no dict"),
        ("lme-v2", "mine:Bad", "AttributeError: 'Trajectory' object has no attribute 'steps' (mine.py, line 9)"),
    ],
)
def test_what_cannot_work_gets_one_line(
    command: str,
    system: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    written(tmp_path, WRONG, monkeypatch)
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "leaving.py").write_text("raise SystemExit(0)\n")
    if command == "supersede":
        rest = ["--model", "none", "--data", episodes(tmp_path)]
    else:
        world = write(tmp_path / "world", [trajectory(number) for number in range(2)])
        rest = ["--data", str(world), "--reader", "extractive", "--no-judge", "--cache", str(tmp_path)]
    assert evaluation.main([command, "--system", system, "--out", "runs", *rest]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    if system == "mine:Bad":
        assert "trajectory.steps" in Path("runs/Bad/memory_error.txt").read_text()


UNUSUAL = """
import functools
class Counting:
    def __call__(self, notes, session): return session
count = Counting()
first = functools.partial(lambda limit, notes, session: session[:limit], 90)
def full(notes, session): return session
def gone(notes, session): raise SystemExit(0)
def üblich(notes, session): return session
"""


@pytest.mark.parametrize(
    ("name", "status", "called"),
    [("count", 0, ""), ("first", 0, ""), ("full", 0, "mine.full"), ("gone", 3, ""), ("üblich", 0, "")],
)
def test_unusual_functions(
    name: str, status: int, called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a version of its file; `full` is not taken for the condition; what leaves the program does not end it."""
    written(tmp_path, UNUSUAL, monkeypatch)
    command = ["supersede", "--model", "none", "--data", episodes(tmp_path), "--system", f"mine:{name}"]
    assert evaluation.main([*command, "--out", "runs"]) == status
    info = json.loads((Path("runs") / (called or name) / "run.json").read_text("utf-8"))
    assert info["condition"] == (called or name)
    assert info["protocol"]["system_sha256"]
    (tmp_path / "mine.py").write_text(UNUSUAL + "\n", encoding="utf-8")
    assert evaluation.main([*command, "--out", "runs"]) == 2  # other code is another run


ODD = """
from lme_v2_env.memory.api import ContextItem
class Odd:
    settings = {"sha256": "mine", "k": (1, 2)}
    shows = ()
    def insert(self, trajectory): ...
    def query(self, question, image=None):
        return [ContextItem("text", "x", shows=self.shows)]
class Number(Odd):
    shows = 5
class Lists(Odd):
    shows = [["t1", 0]]
class Short(Odd):
    shows = [["t1"]]
class Leaving(Odd):
    def query(self, question, image=None): raise SystemExit(0)
"""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Lists", None),
        ("Number", "memory: ValueError: `shows` is 5, not"),
        ("Short", "memory: ValueError: `shows` is [['t1']], not"),
        ("Leaving", "memory: SystemExit: 0"),
    ],
)
def test_what_a_query_returns_is_checked_and_settings_do_not_replace_the_hash(
    name: str, reason: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, ODD, monkeypatch)
    world = write(tmp_path / "world", [trajectory(number) for number in range(2)])
    command = ["lme-v2", "--system", f"mine:{name}", "--data", str(world), "--reader", "extractive", "--no-judge"]
    command += ["--out", "runs", "--cache", str(tmp_path)]
    assert evaluation.main(command) == evaluation.main(command) == (3 if reason else 0)
    for row in rows_of(Path("runs") / name):
        assert row["unscored_reason"] is None if reason is None else row["unscored_reason"].startswith(reason)
    settings = json.loads((Path("runs") / name / "run.json").read_text())["settings"]
    assert settings["k"] == [1, 2]
    assert settings["sha256"] != "mine"
