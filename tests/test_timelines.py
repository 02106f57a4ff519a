"""The episode generator through its public surface: world, words and answers agree with each other."""

import json
import subprocess
import sys

import pytest

from generators.timelines import PRESETS, config_from_dict, generate

FIELDS = {"id", "sessions", "question", "question_date", "gold", "stale", "asks", "abstain", "evidence", "source",
          "tags", "history"}


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


@pytest.mark.parametrize(("data", "message"), [
    ({"sessions": 2, "updates": 3}, r"3 updates need at least 4 sessions"),
    ({"preset": "curiculum"}, r"unknown preset 'curiculum'; the nearest is 'curriculum'"),
    ({"sesions": 6}, r"unknown timeline key 'sesions'; the nearest is 'sessions'"),
    ({"styles": {"implict": 5}}, r"unknown styles key 'implict'; the nearest is 'implicit'"),
    ({"asks": {"curent": 5}}, r"the nearest is 'current'"),
    ({"sessions": [8, 6]}, r"sessions must be a number or \[lowest, highest\]"),
    ({"difficulty": 6}, r"difficulty runs from 1 to 5"),
    ({"styles": {"increment": 0}}, r"count questions need increments"),
])
def test_bad_settings_are_refused_by_name(data: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config_from_dict(data)
