"""The protocol and its data: what a prompt may hold, how replies become notes, what is refused at the door."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.errors import UserError
from rewards.options import build
from supersede_env.data import DataConfig, load_episodes
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig, wordings
from tests.episodes import record

EPISODE = Episode.from_record(record())


def play(config: ProtocolConfig, replies: list[str], episode: Episode = EPISODE) -> tuple[NotesRollout, list[str]]:
    rollout = NotesRollout(episode.view, config)
    prompts = []
    for reply in replies:
        prompts.append("\n".join(message["content"] for message in rollout.prompt()))
        rollout.step(reply)
    return rollout, prompts


@pytest.mark.parametrize("wording", sorted(wordings()))
def test_each_prompt_holds_one_session_and_the_notes_as_cut(wording: str) -> None:
    rollout, prompts = play(ProtocolConfig(budget=13, wording=wording), [f"note number {i} and more" for i in range(4)])
    assert rollout.done
    assert rollout.num_turns == 4
    for turn, prompt in enumerate(prompts):
        assert [f"Told in session {i}" in prompt for i in range(3)] == [turn == i for i in range(3)]
        assert (f"note number {turn - 1}" in prompt) == (turn > 0)
        assert "and more" not in prompt
        assert (EPISODE.question in prompt) == (turn == 3)
    assert rollout.overflows == 3
    assert rollout.answer == "note number 3 and more"


def test_full_context_is_one_prompt_with_all_sessions_in_date_order() -> None:
    shuffled = record()
    shuffled["sessions"].reverse()
    rollout, prompts = play(ProtocolConfig(condition="full"), ["here"], Episode.from_record(shuffled))
    assert rollout.done
    places = [prompts[0].index(f"Told in session {i}") for i in range(3)]
    assert places == sorted(places)


def test_dates_can_be_hidden() -> None:
    for condition in ("bounded", "full"):
        for show in (True, False):
            _, prompts = play(ProtocolConfig(condition=condition, show_dates=show), ["a"])
            assert ("2024/01/11" in prompts[0]) == show


def test_text_of_sessions_and_notes_is_never_interpreted() -> None:
    _, prompts = play(ProtocolConfig(), ["{question} <dated>kept</dated> {budget}", "x"])
    assert "{notes} tips?" in prompts[0]
    assert "<dated>Reply 0.0</dated>" in prompts[0]
    assert "{question} <dated>kept</dated> {budget}" in prompts[1]


@given(st.text(max_size=400), st.integers(1, 50))
def test_notes_never_exceed_the_budget(reply: str, budget: int) -> None:
    rollout = NotesRollout(EPISODE.view, ProtocolConfig(budget=budget))
    rollout.step(reply)
    assert len(rollout.notes) <= budget
    assert rollout.notes == rollout.notes.strip()
    assert rollout.history[0].reply == reply


@pytest.mark.parametrize(
    ("reply", "notes"),
    [
        ("<think>long</think> Oslo ", "Oslo"),
        ("<think>never closed", ""),
        ("left over</think>\nOslo", "Oslo"),
        ("", ""),
        ("<think>İstanbul, İzmir?</think>Oslo", "Oslo"),
        ("İİ <think>x</think>Oslo", "İİ Oslo"),
        ("İİ</think>Oslo", "Oslo"),
    ],
)
def test_thinking_is_no_part_of_a_reply(reply: str, notes: str) -> None:
    rollout = NotesRollout(EPISODE.view, ProtocolConfig())
    rollout.step(reply)
    assert rollout.notes == notes
    assert rollout.empty_notes == (notes == "")


def test_long_sessions_split_at_turn_boundaries() -> None:
    rollout, prompts = play(ProtocolConfig(max_session_chars=10), ["n"] * 7)
    assert rollout.done
    assert rollout.num_turns == 7
    assert sum("Told in session 1" in prompt for prompt in prompts) == 1


def test_a_finished_rollout_takes_nothing_more() -> None:
    rollout, _ = play(ProtocolConfig(condition="full"), ["done"])
    with pytest.raises(RuntimeError):
        rollout.prompt()
    with pytest.raises(RuntimeError):
        rollout.step("again")


def test_records_round_trip() -> None:
    assert Episode.from_record(EPISODE.to_record()) == EPISODE


def test_evidence_follows_its_session_when_dates_reorder() -> None:
    shuffled = record()
    shuffled["sessions"].reverse()
    shuffled["evidence"] = [[0, 0]]
    assert Episode.from_record(shuffled).evidence == ((2, 0),)


def test_the_documented_row_is_played_and_scored(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "add_your_own.md").read_text("utf-8")
    row = json.loads(page.split("```json\n")[1].split("```")[0])
    (tmp_path / "own.jsonl").write_text(json.dumps(row) + "\n")
    (episode,) = load_episodes(DataConfig(data=str(tmp_path / "own.jsonl"))).episodes
    rollout, _ = play(ProtocolConfig(), ["the window desk", "the corner desk", "The corner desk."], episode)
    assert rollout.done
    assert (episode.gold, episode.stale) == ("the corner desk", ("the window desk",))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gold": " "}, "row secret-id-0: 'gold' is empty"),
        ({"gold": None}, "row secret-id-0: 'gold' is empty"),
        ({"question": ""}, "row secret-id-0: 'question'"),
        ({"sessions": []}, "'sessions' is missing or empty"),
        ({"sessions": [{"date": "soon", "turns": [{"role": "user", "content": "x"}]}]}, "session 0: date 'soon'"),
        ({"sessions": [{"date": "2024/01/01", "turns": [{"role": "robot", "content": "x"}]}]}, "turn 0: 'role'"),
        ({"sessions": [{"date": "2024/01/01", "turns": [{"role": "user"}]}]}, "turn 0: 'content'"),
        ({"asks": "mood"}, "'asks' is 'mood'"),
        ({"id": 5}, "'id' is 5, not a text"),
        ({"gold": ["Oslo"]}, "'gold' holds ['Oslo']"),
        ({"gold": True}, "'gold' holds True"),
        ({"stale": "Oslo"}, "'stale' is 'Oslo', not a list"),
        ({"stale": ["Oslo", ""]}, "'stale' holds ''"),
        ({"abstain": "false"}, "'abstain' is 'false', not true or false"),
        ({"evidence": [3]}, "'evidence' holds 3"),
        ({"evidence": [[3, 0]]}, "'evidence' holds [3, 0], not [session, turn] with sessions 0 to 2"),
        ({"tags": ["x"]}, "'tags' is ['x'], not an object"),
    ],
)
def test_bad_records_are_refused_by_row_and_field(change: dict, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        Episode.from_record(record(**change))


def own_file(folder: Path, content: bytes) -> DataConfig:
    (folder / "own.jsonl").write_bytes(content)
    return DataConfig(data=str(folder / "own.jsonl"))


def test_own_files_may_have_a_byte_order_mark_crlf_and_numbers_for_gold(tmp_path: Path) -> None:
    lines = [json.dumps(record(0, gold=0)), json.dumps(record(1, gold="")), json.dumps(record(2))]
    config = own_file(tmp_path, b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    loaded = load_episodes(config)
    assert [episode.gold for episode in loaded.episodes] == ["0", "Harbour2x2"]
    assert loaded.unscorable == (("secret-id-1", "no gold answer"),)
    assert load_episodes(replace(config, num_episodes=1)).unscorable == ()  # only the first row was asked for


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"id": "caf\xe9"}', "own.jsonl cannot be read"),
        (b'\n{"id": ', "own.jsonl, line 2: Expecting value"),
        (b"[" * 100_000, "own.jsonl, line 1: brackets are nested"),
        (b'{"gold": ' + b"1" * 5000 + b"}", "own.jsonl, line 1: Exceeds the limit"),
        (json.dumps(record(question="half \ud800")).encode(), "line 1: '\\ud800' is half of a character"),
        (json.dumps(record(tags={"a": "\udfff"})).encode(), "line 1: '\\udfff' is half of a character"),
        ((json.dumps(record()) + "\n").encode() * 2, "own.jsonl: id 'secret-id-0' occurs more than once"),
        ((json.dumps(record()) + "\n" + json.dumps(record(gold=""))).encode(), "'secret-id-0' occurs more than once"),
    ],
)
def test_damaged_own_files_are_refused_by_file_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        load_episodes(own_file(tmp_path, content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("config", "values", "message"),
    [
        (ProtocolConfig, {"budget": 0}, "budget is 0"),
        (ProtocolConfig, {"budgt": 5}, "did you mean 'budget'"),
        (ProtocolConfig, {"budget": "many"}, "option 'budget'"),
        (ProtocolConfig, {"wording": "plan"}, "did you mean 'plain'"),
        (ProtocolConfig, {"condition": "fully"}, "option 'condition'"),
        (DataConfig, {"data": "oracl"}, "did you mean 'oracle'"),
        (DataConfig, {"data": "oracle", "preset": "quick"}, "belongs to generated data"),
        (DataConfig, {"num_episodes": 0}, "num_episodes is 0"),
    ],
)
def test_bad_options_get_one_clear_line(config: type, values: dict, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        build(config, values)
    assert "\n" not in str(caught.value)


def test_presets_draw_validation_from_other_seeds() -> None:
    train = load_episodes(DataConfig(data="train", preset="quick", num_episodes=5)).episodes
    validation = load_episodes(DataConfig(data="validation", preset="quick", num_episodes=5)).episodes
    assert not {e.question for e in train} & {e.question for e in validation}
    with pytest.raises(UserError, match="did you mean 'quick'"):
        load_episodes(DataConfig(preset="quik"))


def test_the_package_imports_in_well_under_a_second() -> None:
    code = (
        "import time; t = time.perf_counter(); import supersede_env, supersede_env.protocol, supersede_env.data, sys; "
    )
    code += "assert 'verifiers' not in sys.modules and 'torch' not in sys.modules; print(time.perf_counter() - t)"
    seconds = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert seconds < 1.0
