"""The public files, their annotations, and what happens to damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewards.errors import UserError
from supersede_env.longmemeval import load_longmemeval
from supersede_env.scoring import gold_problem

ROW = {
    "question_id": "q1",
    "question_type": "knowledge-update",
    "question": "How many?",
    "answer": 4,
    "question_date": "2023/06/01 (Thu) 00:58",
    "haystack_dates": ["2023/05/27 (Sat) 10:20", "2023/05/25 (Thu) 20:21"],
    "haystack_session_ids": ["b", "a"],
    "haystack_sessions": [[{"role": "user", "content": "late"}], [{"role": "user", "content": "early"}]],
}


def written(folder: Path, rows: object, name: str = "own.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(rows), encoding="utf-8")
    return file


def test_oracle_rows_load_with_annotations(oracle_dir: Path) -> None:
    loaded = load_longmemeval("oracle", path=oracle_dir)
    assert loaded.summary().startswith("n = 77 (1 excluded: 89941a94: ")
    assert len(load_longmemeval("oracle", path=oracle_dir, exclusions="none").episodes) == 78
    assert sum(episode.abstain for episode in loaded.episodes) == 6
    assert sum(bool(episode.stale) for episode in loaded.episodes) == 64
    first = loaded.episodes[0]
    assert first.evidence == ((1, 0),)
    assert "25:50" in first.sessions[1].turns[0].content
    assert "27:12" in first.stale


def test_s_rows_are_the_same_questions_in_long_histories(oracle_dir: Path, s_dir: Path) -> None:
    oracle, long = load_longmemeval("oracle", path=oracle_dir), load_longmemeval("s", path=s_dir)
    assert {e.id: e.gold for e in oracle.episodes} == {e.id: e.gold for e in long.episodes}
    assert all(len(episode.sessions) > 30 for episode in long.episodes)


def test_every_gold_passes_its_own_grader(oracle_dir: Path) -> None:
    problems = {e.id: gold_problem(e) for e in load_longmemeval("oracle", path=oracle_dir, exclusions="none").episodes}
    assert {row: problem for row, problem in problems.items() if problem} == {}


def test_integer_golds_date_order_and_abstention(tmp_path: Path) -> None:
    rows = [ROW, {**ROW, "question_id": "q2_abs"}, {**ROW, "question_id": "q3", "question_type": "multi-session"}]
    first, second = load_longmemeval("oracle", path=written(tmp_path, rows)).episodes
    assert first.gold == "4"
    assert [session.turns[0].content for session in first.sessions] == ["early", "late"]
    assert (first.abstain, second.abstain, second.asks) == (False, True, "abstain")


def test_a_row_without_gold_is_named_and_unscorable(tmp_path: Path) -> None:
    loaded = load_longmemeval("oracle", path=written(tmp_path, [ROW, {**ROW, "question_id": "q2", "answer": ""}]))
    assert loaded.unscorable == (("q2", "no gold answer"),)
    assert "1 unscorable: q2" in loaded.summary()


def test_exclusions_come_from_a_file_with_reasons(tmp_path: Path) -> None:
    reasons = written(tmp_path, {"q1": "asked before it was told"}, "reasons.json")
    loaded = load_longmemeval("oracle", path=written(tmp_path, [ROW]), exclusions=str(reasons))
    assert loaded.summary() == "n = 0 (1 excluded: q1: asked before it was told)"
    with pytest.raises(UserError, match="no such file"):
        load_longmemeval("oracle", path=tmp_path / "own.json", exclusions="nowhere.json")


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"[{", "own.json", "own.json cannot be read"),
        (b"{}", "own.json", "expected a list"),
        (b"[]", "own.json", "no knowledge-update rows"),
        (b"[]", "longmemeval_oracle.json", "is not the published file"),
        (b"\xfd7zXZ\x00broken", "own.jsonl.xz", "own.jsonl.xz cannot be read"),
        (json.dumps([ROW, ROW]).encode(), "own.json", "own.json: id 'q1' occurs more than once"),
        (json.dumps([{**ROW, "question": "\ud800"}]).encode(), "own.json", "row q1: .* is half of a character"),
        (b"[" * 100_000, "own.json", "own.json cannot be read: brackets are nested"),
        (json.dumps([{**ROW, "haystack_dates": []}]).encode(), "own.json", "row q1: 0 haystack_dates, 2 haystack_sess"),
        (json.dumps([{**ROW, "haystack_dates": ["x", "y"]}]).encode(), "own.json", "date 'x'"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path: Path, content: bytes, name: str, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        load_longmemeval("oracle", path=tmp_path / name)


def test_a_wrong_folder_is_refused_before_any_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGMEMEVAL_DIR", str(tmp_path))
    with pytest.raises(UserError, match=r"LONGMEMEVAL_DIR=.*longmemeval_oracle\.json"):
        load_longmemeval("oracle")
    monkeypatch.setenv("LONGMEMEVAL_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"LONGMEMEVAL_DIR=.*nowhere: no such folder"):
        load_longmemeval("oracle")


def test_without_data_and_network_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LONGMEMEVAL_DIR", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="Set LONGMEMEVAL_DIR") as caught:
        load_longmemeval("oracle")
    assert "\n" not in str(caught.value)
