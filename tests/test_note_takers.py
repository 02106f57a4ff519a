"""Rules that keep the notes: what the model sees of them, and that only the answer is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval import __main__ as evaluation
from eval.baselines.note_takers import starter
from supersede_env.data import DataConfig, generated_records
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig, render_turns
from tests.scripted_endpoint import ScriptedEndpoint

DATA = DataConfig(data="validation", preset="quick", num_episodes=3)


@pytest.mark.parametrize("system", ["no_memory", "copy_last", "oracle_notes"])
def test_the_only_prompt_is_the_protocols_own_answer_prompt(system: str) -> None:
    config = ProtocolConfig(budget=120)
    for record in generated_records(DATA):
        episode = Episode.from_record(record)
        notes = {
            "no_memory": [""] * len(episode.sessions),
            "copy_last": [render_turns(session) for session in episode.sessions],
            "oracle_notes": record["history"]["oracle_notes"],
        }[system]
        expected = NotesRollout(episode.view, config)
        for reply in notes:
            expected.step(reply)
        rollout = starter(system, DATA)(episode.view, config)
        assert rollout.prompt() == expected.prompt()
        assert rollout.num_turns == 1
        assert len(rollout.notes) <= 120
        rollout.step("Oslo")
        assert rollout.answer == "Oslo"


def test_an_endpoint_is_asked_once_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with ScriptedEndpoint(lambda messages: "Oslo") as server:
        command = ["supersede", "--model", "m", "--base-url", server.url, "--data", "validation", "--preset", "quick"]
        assert evaluation.main([*command, "--n", "3", "--system", "copy_last", "--out", str(tmp_path)]) == 0
    rows = [json.loads(line) for line in (tmp_path / "copy_last/rows.jsonl").read_text("utf-8").splitlines()]
    assert [row["calls"] for row in rows] == [1, 1, 1]
    assert all(row["notes"][-1] for row in rows)


def test_there_is_no_oracle_of_real_conversations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["supersede", "--model", "m", "--system", "oracle_notes", "--data", "oracle", "--out", str(tmp_path)]
    assert evaluation.main(command) == 2
    assert "needs generated data" in capsys.readouterr().err
