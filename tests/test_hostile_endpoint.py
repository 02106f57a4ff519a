"""Endpoints that misbehave: every row scored or unscored with its reason, within the time, and no key in any byte."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eval import heldout, lme
from lme_v2_env import chat
from tests import lme_world
from tests.episodes import record
from tests.hostile_endpoint import FAULTS, GARBLED, ODD, TRANSIENT, HostileEndpoint
from tests.scripted_endpoint import Messages

CANARY = "sk-canary-5up3r/s3cr3t+1234"

REASONS = {
    "429": "status 429",
    "500": "status 500",
    "503-date": "status 503",
    "hang": "no reply within ",
    "drip": "no reply within ",
    "reset": "Error: ",
    "cut": "RemoteProtocolError: ",
    "no-reply": "Error: ",
    "no-choices": "",  # each engine in its own words
    "null": "the endpoint answered without content",
    "reasoning": "the reply is reasoning only",
    "list": "expected an object, got list",
    "huge": "the reply is larger than 4 MiB",
    "bomb": "the reply is larger than 4 MiB",
    "404": "status 404: ",
    "401-echo": "status 401: ",
    "redirect": "status 307",
    "no-message": "",
    **dict.fromkeys(GARBLED, "not JSON ("),
}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the client would have waited between attempts; it goes on at once."""
    asked: list[float] = []
    real = chat.pause

    def pause(attempt: int, backoff: float, retry_after: float | None) -> float:
        asked.append(real(attempt, backoff, retry_after))
        return 0.0

    monkeypatch.setattr(chat, "pause", pause)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    return asked


def episodes(folder: Path) -> Path:
    """One for every fault, and one to spare."""
    file = folder / "own.jsonl"
    rows = [json.dumps(record(number)) + "\n" for number in range(len(FAULTS) + 1)]
    file.write_text("".join(rows), encoding="utf-8")
    return file


def harbour(messages: Messages) -> str:
    found = [word for word in messages[-1]["content"].replace(".", " ").split() if word.startswith("Harbour")]
    return found[-1] if found else "unknown"


def by_episode(messages: Messages, count: int) -> str | None:
    """In the second session of episode k the k-th fault, however often it is asked."""
    text = messages[-1]["content"]
    return next((name for k, name in enumerate(FAULTS) if f"Harbour{k}x1 now" in text), None)


def checked(file: Path, folder: Path, said: str) -> list[dict[str, Any]]:
    """The rows: valid JSON in UTF-8, each scored or unscored with a reason; the key is nowhere."""
    rows = [json.loads(line) for line in file.read_bytes().decode("utf-8").split("\n")[:-1]]
    for row in rows:
        assert row["scored"] == (row["unscored_reason"] is None)
        assert row["scored"] or (row["unscored_reason"].strip() and "\n" not in row["unscored_reason"])
    assert CANARY not in said
    leaks = [str(path) for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
    assert not leaks
    return rows


def judge(rows: list[dict[str, Any]]) -> None:
    """Of the rows of `episodes`: what can be taken is taken, all else is told apart."""
    for name, row in zip(FAULTS, rows, strict=False):
        assert row["scored"] == (name in ODD), (name, row["unscored_reason"])
        assert row["scored"] or REASONS[name] in row["unscored_reason"], (name, row["unscored_reason"])
    assert rows[-1]["scored"]


def test_verifiers_evaluator_with_a_fault_in_every_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with HostileEndpoint(harbour, by_episode) as endpoint:
        command = [sys.executable, "-m", "eval", "supersede", "--model", "m", "--base-url", endpoint.url]
        command += ["--data", str(episodes(tmp_path)), "--out", str(tmp_path / "run")]
        command += ["--timeout", "1", "--max-concurrent", "64"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3, done.stderr
    assert "INVALID" in done.stdout
    rows = checked(tmp_path / "run/bounded/rows.jsonl", tmp_path, done.stdout + done.stderr)
    judge(rows)
    assert rows[-1]["verdict"] == "correct"
    assert f"n = {len(ODD) + 1} " in done.stdout
    assert endpoint.faults["429"] == endpoint.faults["hang"] == 4  # the relay's attempts, not the harness's on top
    assert all(waited >= wanted for wanted, waited in endpoint.gaps)
    assert len(endpoint.gaps) == 3


def test_the_direct_engine_ends_at_once_when_it_is_told_to(tmp_path: Path) -> None:
    """Hanging requests are not waited for, and no rollout that has begun goes on to its next turn."""
    with HostileEndpoint(harbour, lambda messages, count: "hang" if count > 2 else None, patience=60) as endpoint:
        arguments = ["eval", "supersede", "--model", "m", "--base-url", endpoint.url, "--system", "facts"]
        arguments += ["--data", "train", "--preset", "quick", "--n", "4", "--out", str(tmp_path / "run")]
        error = endpoint.terminate(arguments, requests=6, within=20)  # two that were answered have asked again
    assert "interrupted; the same command resumes" in error
    assert endpoint.count == 6


def test_the_direct_engine_with_a_fault_in_every_episode(
    tmp_path: Path, waits: list[float], capfd: pytest.CaptureFixture[str]
) -> None:
    with HostileEndpoint(harbour, by_episode) as endpoint:
        command = ["--model", "m", "--base-url", endpoint.url, "--data", str(episodes(tmp_path)), "--out"]
        command += [str(tmp_path / "run"), "--system", "facts", "--timeout", "2", "--max-concurrent", "64"]
        began = time.monotonic()
        assert heldout.run(command) == 3
        assert time.monotonic() - began < 20  # four attempts of a second each, side by side
    judge(checked(tmp_path / "run/facts/rows.jsonl", tmp_path, "".join(capfd.readouterr())))
    assert all(2 <= endpoint.faults[name] <= 4 for name in TRANSIENT)  # a busy machine may lose one on the way
    assert sorted(waits)[-len(TRANSIENT) :] == pytest.approx([4.2] * len(TRANSIENT), rel=0.05)  # 1, 2, 4, and a tenth


def test_a_reader_with_every_fault_once_and_always(
    tmp_path: Path, waits: list[float], capfd: pytest.CaptureFixture[str]
) -> None:
    """Questions k and k + 100 have the k-th fault: the first always, the second in its first reply."""
    numbers = [*range(len(FAULTS)), *(100 + k for k in range(len(FAULTS)))]
    questions = [lme_world.question(number) for number in numbers]
    for number, row in zip(numbers, questions, strict=True):
        row["question"] = f"Case {number}. {row['question']}"
    world = lme_world.write(tmp_path / "data", [lme_world.trajectory(number) for number in range(6)], questions)
    seen: set[int] = set()

    def fault(messages: Messages, count: int) -> str | None:
        number = int(messages[-1]["content"].rpartition("Case ")[2].partition(".")[0])
        first = number not in seen
        seen.add(number)
        name = FAULTS[number % 100]
        # what lasts until the time limit is seen once here: the test above has seen it always
        return name if first or (number < 100 and name not in ("hang", "drip")) else None

    with HostileEndpoint(lambda messages: "\\boxed{100}", fault) as endpoint:
        command = ["--data", str(world), "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
        command += ["--retrieval", "bm25", "--system", "rag_slice", "--base-url", endpoint.url, "--timeout", "3"]
        assert lme.run([*command, "--reader-tokenizer", "estimate", "--concurrency", "16"]) == 3
    rows = checked(tmp_path / "out/rag_slice/rows.jsonl", tmp_path, "".join(capfd.readouterr()))
    taken = (*ODD, "reasoning")  # the reader takes an answer out of reasoning alone, and says so
    for name, always, once in zip(FAULTS, rows, rows[len(FAULTS) :], strict=False):
        assert always["scored"] == (name in (*taken, "hang", "drip")), (name, always["unscored_reason"])
        assert once["scored"] == (name in (*taken, *TRANSIENT)), (name, once["unscored_reason"])
        assert always["scored"] or REASONS[name] in always["unscored_reason"] or name == "null"
    assert [endpoint.faults[name] for name in ("404", "html")] == [2, 2]
    assert (max(waits) >= 16, min(waits) >= 1) == (True, True)
    assert "\ufffd" in rows[FAULTS.index("surrogates")]["response"]
    assert rows[FAULTS.index("reasoning")]["from_reasoning"]
