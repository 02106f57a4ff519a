"""The episode generator through its public surface: world, words and answers agree with each other."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from generators.cli import main, page
from generators.timelines import PRESETS, config_from_dict, generate

ROOT = Path(__file__).resolve().parents[1]

FIELDS = {
    "id",
    "sessions",
    "question",
    "question_date",
    "gold",
    "stale",
    "asks",
    "abstain",
    "evidence",
    "source",
    "tags",
    "history",
}


@pytest.mark.parametrize("split", ["train", "validation"])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_records_are_complete_and_evidence_contains_what_it_claims(preset: str, split: str) -> None:
    for seed in range(60):
        record = generate(seed, preset, split=split)
        assert set(record) == FIELDS
        assert json.loads(json.dumps(record)) == record
        assert record["gold"] not in record["stale"]
        notes = record["history"]["oracle_notes"]
        assert len(notes) == len(record["sessions"])
        assert max(map(len, notes)) <= PRESETS[preset].notes_chars
        for session, turn in record["evidence"]:
            assert record["sessions"][session]["turns"][turn]["role"] == "user"
        for event in record["history"]["events"]:
            if event["session"] is None:
                continue
            content = record["sessions"][event["session"]]["turns"][event["turn"]]["content"]
            assert event["text"] in content
            if event["named"] and event["value"] not in ("Yes", "No"):
                assert event["value"].lower() in event["text"].lower()


def test_same_arguments_give_the_same_bytes_in_another_process() -> None:
    code = "import json; from generators.timelines import generate; print(json.dumps(generate(11, 'hard')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(out) == generate(11, "hard")
    assert generate(11, "hard") != generate(12, "hard")
    assert generate(11, "hard") != generate(11, "hard", split="validation")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"sessions": 2, "updates": 3}, r"3 updates need at least 4 sessions"),
        ({"preset": "curiculum"}, r"unknown preset 'curiculum'; the nearest is 'curriculum'"),
        ({"sesions": 6}, r"unknown timeline key 'sesions'; the nearest is 'sessions'"),
        ({"styles": {"implict": 5}}, r"unknown styles key 'implict'; the nearest is 'implicit'"),
        ({"asks": {"curent": 5}}, r"the nearest is 'current'"),
        ({"sessions": [8, 6]}, r"sessions must be a number or \[lowest, highest\]"),
        ({"difficulty": 6}, r"difficulty runs from 1 to 5"),
        ({"gap_days": [1, 3]}, r"gap_days must be at least 2"),
        ({"styles": {"late": 120}}, r"late is a percentage"),
        ({"styles": {"increment": 0}}, r"count questions need increments"),
        ({"sessions": 0}, r"updates need at least 4 sessions"),
        ({"sessions": None}, r"sessions must be a number or \[lowest, highest\]"),
        ({"sessions": 6.5}, r"sessions must be a number or \[lowest, highest\]"),
        ({"sessions": "abc"}, r"sessions must be a number or \[lowest, highest\]"),
        ({"sessions": True}, r"sessions must be a number or \[lowest, highest\]"),
        ({"sessions": -6}, r"sessions must be within 0 and 400"),
        ({"sessions": 10**9}, r"sessions must be within 0 and 400"),
        ({"distractors": 70}, r"distractors must be within 0 and 16"),
        ({"gap_days": 10**6}, r"gap_days must be within 0 and 365"),
        ({"echo": "often"}, r"echo is a percentage, got 'often'"),
        ({"third_person": 150}, r"third_person is a percentage, got 150"),
        ({"notes_chars": 0}, r"notes_chars must be at least 160"),
        ({"balanced": "no"}, r"balanced must be true or false"),
        ({"settled": 6}, r"settled must be at least 0 and below the fewest sessions, got 6"),
        ({"styles": 5}, r"styles settings must be a mapping"),
        ({"styles": {"explicit": "much"}}, r"explicit must be a whole number"),
        ({"preset": ["hard"]}, r"unknown preset \['hard'\]"),
        ({"attributes": "home"}, r"attributes must be a list of names"),
        ({"attributes": ["hoem"]}, r"unknown attributes name 'hoem'; the nearest is 'home'"),
        ({"value_types": ["money"]}, r"count questions need an attribute that is counted"),
        ({"value_types": ["boolean"], "asks": {"count": 0}}, r"only yesno and abstain questions"),
        ([1], r"timeline settings must be a mapping"),
    ],
)
def test_bad_settings_are_refused_by_name(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config_from_dict(data)


def test_settings_that_no_history_satisfies_are_refused_when_drawn() -> None:
    crowded = config_from_dict({"sessions": 2, "updates": 1, "repeats": 30, "asks": {"count": 0}})
    with pytest.raises(ValueError, match="no history fits into"):
        generate(0, crowded)
    with pytest.raises(ValueError, match="config must be a preset's name or a TimelineConfig"):
        generate(0, {"preset": "hard"})  # ty: ignore[invalid-argument-type]
    with pytest.raises(ValueError, match="seed must be a whole number"):
        generate("7")  # ty: ignore[invalid-argument-type]
    with pytest.raises(ValueError, match="unknown split 'test'"):
        generate(0, "quick", split="test")


@pytest.mark.parametrize(
    ("off", "label"),
    [
        ({"plan": 0}, "plan"),
        ({"hypothetical": 0}, "hypothetical"),
        ({"other": 0}, "other"),
        ({"late": 0}, "late"),
        ({"repeat": 0}, "repeat"),
        ({"reversion": 0}, "reversion"),
        ({"correction": 0}, "correction"),
        ({"increment": 0}, "increment"),
        ({"explicit": 0}, "explicit"),
        ({"implicit": 0}, "implicit"),
        ({"paraphrased": 0}, "paraphrased"),
    ],
)
def test_every_style_is_labelled_and_can_be_switched_off(off: dict, label: str) -> None:
    """A style appears on some episodes of the curriculum, and on none once its knob is 0."""
    config = config_from_dict({"styles": off, "asks": {"count": 0} if "increment" in off else {}})
    assert any(label in generate(seed, "curriculum")["tags"]["styles"] for seed in range(150))
    for seed in range(150):
        record = generate(seed, config)
        assert label not in record["tags"]["styles"], record["id"]


def test_after_the_last_change_of_a_settled_history_something_else_is_told() -> None:
    after = [generate(seed, "quick_settled")["tags"]["sessions_after_update"] for seed in range(60)]
    assert min(after) == 1 < max(after)
    assert 0 in [generate(seed, "quick")["tags"]["sessions_after_update"] for seed in range(60)]


def test_many_increments_stop_below_the_largest_count() -> None:
    config = config_from_dict(
        {"attributes": ["chapters"], "sessions": 20, "updates": 16, "asks": {"current": 0, "previous": 0, "change": 0}}
    )
    for seed in range(60):
        record = generate(seed, config)
        if record["asks"] == "count":
            assert int(record["gold"]) < 100


def test_question_kinds_and_value_types_are_all_met() -> None:
    records = [generate(seed, "curriculum") for seed in range(400)]
    assert {r["asks"] for r in records} == {"current", "previous", "count", "yesno", "change", "abstain"}
    assert {r["tags"]["value_type"] for r in records} == {
        "count",
        "quantity",
        "money",
        "clock",
        "duration",
        "date",
        "weekday",
        "place",
        "name",
        "title",
        "status",
        "boolean",
        "frequency",
        "record",
    }
    assert len({r["tags"]["attribute"] for r in records}) >= 40
    assert {r["tags"]["difficulty"] for r in records} == {1, 2, 3, 4, 5}


def test_the_page_of_ten_episodes_is_what_the_command_prints() -> None:
    text = (ROOT / "docs" / "timelines_ten.md").read_text(encoding="utf-8")
    assert page() == text, "run: python -m generators.timelines --page > docs/timelines_ten.md"
    assert text.count("true history") == 10


def test_the_command_shows_history_gold_superseded_values_and_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--preset", "curriculum", "--seed", "7", "--show"]) == 0
    shown, record = capsys.readouterr().out, generate(7, "curriculum")
    for part in (
        "true history",
        "superseded:",
        "evidence:",
        record["gold"],
        *record["stale"],
        *(e["date"] for e in record["history"]["events"]),
    ):
        assert part in shown
    assert main(["--preset", "curiculum"]) == 2
    assert "the nearest is 'curriculum'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "{bad"], "--config is not JSON"),
        (["--config", "[1]"], "--config must be a JSON object"),
        (["--config", '{"sessions": 2, "updates": 1, "repeats": 30}'], "no history fits into"),
        (["--count", "-1"], "--count must not be negative"),
        (["--set", "training", "--config", '{"echo": 3}'], "--config cannot change"),
        (["--set", "training", "--preset", "hrad"], "the nearest is 'hard'"),
    ],
)
def test_the_command_refuses_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("timelines: ")
    assert error.count("\n") == 1
    assert message in error


def test_a_reader_that_stops_early_sees_no_traceback() -> None:
    command = f"{sys.executable} -m generators.timelines --count 200 | head -c 20"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.startswith('{"id": "timeline-')
    assert done.stderr == ""


def test_the_command_streams_a_fixed_set_of_the_named_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--set", "validation", "--preset", "control"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {r["tags"]["preset"] for r in records} == {"control"}
    assert len(records) == 300


def test_changed_settings_have_ids_of_their_own() -> None:
    changed = config_from_dict({"preset": "quick", "facts": 2})
    assert generate(1, changed)["id"] != generate(1, "quick")["id"]
    assert generate(1, config_from_dict({"preset": "quick"})) == generate(1, "quick")
