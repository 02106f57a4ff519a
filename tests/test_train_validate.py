"""The validation curve of a local run: every checkpoint on the same tasks, resumed where it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.test_train_local import even_policy
from train import validate
from train.local import train
from train.local_config import LocalConfig, WarmStart


@pytest.fixture
def run(tmp_path: Path) -> Path:
    policy = even_policy()
    policy.model.save_pretrained(tmp_path / "model")
    policy.tokenizer.save_pretrained(tmp_path / "model")
    config = LocalConfig(
        model=str(tmp_path / "model"),
        output=str(tmp_path / "run"),
        steps=2,
        groups=1,
        group_size=2,
        checkpoint_every=1,
        max_notes_tokens=2,
        max_answer_tokens=2,
        warm_start=WarmStart(steps=1, episodes=1),
    )
    assert train(config, policy) == 0
    return tmp_path / "run"


def test_every_checkpoint_plays_the_same_validation_tasks_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = run / "curve.png"
    assert validate.main([str(run), "--n", "3", "--plot", str(picture)]) == 0
    rows = [json.loads(line) for line in (run / validate.LOG).read_text().splitlines()]
    labels = ["base", "warm", "step 1", "step 2"]
    assert [row["label"] for row in rows] == [label for label in labels for _ in range(3)]
    assert len({row["id"] for row in rows}) == 3
    assert all("validation" in row["id"] for row in rows)
    out = capsys.readouterr().out
    assert all(f"| {label} | 3 |" in out for label in labels)
    assert picture.stat().st_size > 1000
    (run / validate.LOG).write_text("".join(json.dumps(row) + "\n" for row in rows[:-2]))  # killed in the last one
    assert validate.main([str(run), "--n", "3"]) == 0
    assert capsys.readouterr().err.count("validate: step 2: 3 tasks") == 1
    assert validate.main([str(run), "--n", "3", "--steps", "2", "--temperature", "1"]) == 0
    assert "3 validation tasks, sampled at temperature 1" in capsys.readouterr().out
    sampled = [json.loads(line) for line in (run / validate.log_name(1.0)).read_text().splitlines()]
    assert [row["label"] for row in sampled] == [label for label in ("base", "warm", "step 2") for _ in range(3)]
    assert validate.main([str(run), "--steps", "1", "7"]) == 2
    assert "--steps 7: " in capsys.readouterr().err
    with (run / validate.LOG).open("a") as log:
        log.write('{"label": "st')
    assert validate.main([str(run), "--n", "3"]) == 2
    assert "is damaged: delete it" in capsys.readouterr().err


def test_what_cannot_be_validated_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate.main([str(tmp_path)]) == 2
    assert "has no config.toml: name the folder of a run" in capsys.readouterr().err
