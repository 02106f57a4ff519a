"""LongMemEval-V2 files: the published facts, both spellings, lazy reading, and what bad input says."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lme_v2_env.dataset import TrajectoryFile, load_questions, open_dataset
from lme_v2_env.download import SHA256, download, sha256_of, unpack_screenshots
from lme_v2_env.memory.slices import annotated_actions, numbered, object_ids
from lme_v2_env.trajectory import trajectory_from
from rewards.errors import UserError
from tests import lme_world
from tests.conftest import SHARED, _folder


@pytest.fixture(scope="session")
def parity() -> dict[str, Any]:
    file = SHARED / "parity" / "lme_v2.json"
    if not file.is_file():
        pytest.skip("the parity vectors are not at ../shared/parity/lme_v2.json")
    return json.loads(file.read_text("utf-8"))


def test_published_fingerprint_and_action_annotation(parity: dict[str, Any]) -> None:
    vectors = parity["trajectory"]
    toy = trajectory_from(vectors["toy_trajectory"], "toy")
    assert toy.fingerprint == vectors["toy_fingerprint"]
    actions = annotated_actions(toy.states)
    assert actions == vectors["annotated_transition_actions"]
    assert numbered(actions) == vectors["full_action_sequence"]
    for action, ids in vectors["object_ids"].items():
        expected = [] if action == "send_msg_to_user('3')" else ids  # a message names no element, see `object_ids`
        assert list(object_ids(action)) == expected, action


def test_official_questions_and_small_haystacks() -> None:
    folder = _folder("longmemeval_v2", "LongMemEval-V2")
    assert sha256_of(folder / "questions.jsonl") == SHA256["questions.jsonl"]
    assert sha256_of(folder / "haystacks/lme_v2_small.json") == SHA256["haystacks/lme_v2_small.json"]
    questions = load_questions(folder / "questions.jsonl")
    assert Counter(question.question_type for question in questions) == {
        "static-environment": 134,
        "static-environment-abs": 55,
        "dynamic-environment": 86,
        "dynamic-environment-abs": 41,
        "procedure": 74,
        "procedure-abs": 32,
        "errors-gotchas": 29,
    }
    assert sum(question.needs_judge for question in questions) == 156
    assert sum(question.image is not None for question in questions) == 29


def test_both_spellings_and_the_legacy_shape_are_one_trajectory() -> None:
    row = lme_world.trajectory(0)
    short = json.loads(json.dumps(row))
    for state in short["states"]:
        state["thoughts"], state["text"] = state.pop("thought"), state.pop("accessibility_tree")
    legacy = json.loads(json.dumps(row))
    legacy["metadata"] = {"original_goal": legacy.pop("goal").split(" ")}
    legacy["content"] = [
        {**state, "observation": {"text": state.pop("accessibility_tree"), "screenshot": state.pop("screenshot")}}
        for state in legacy.pop("states")
    ]
    first, *others = (trajectory_from(shape, "row") for shape in (row, short, legacy))
    assert all(other == first for other in others)


def _spoiled(field: str, value: Any) -> list[Any]:
    rows: list[Any] = [lme_world.trajectory(number) for number in range(3)]
    target = rows[1]["states"][2] if field.startswith("state.") else rows[1]
    target[field.removeprefix("state.")] = value
    return rows


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("outcome", "maybe", "trajectories.jsonl line 2: field 'outcome' is 'maybe', expected one of success, failure"),
        ("goal", 7, "trajectories.jsonl line 2: field 'goal' should be a string, got int"),
        ("states", [], "trajectories.jsonl line 2: field 'states' is empty"),
        ("state.url", 1, "trajectories.jsonl line 2, states[2]: field 'url' should be a string, got int"),
        (
            "state.accessibility_tree",
            None,
            "trajectories.jsonl line 2, states[2]: field 'accessibility_tree' should be a string, got nothing",
        ),
        ("state.action", ["x"], "trajectories.jsonl line 2, states[2]: field 'action' should be a string or null"),
    ],
)
def test_a_bad_field_is_named_with_file_and_line(tmp_path: Path, field: str, value: Any, message: str) -> None:
    lme_world.write(tmp_path, _spoiled(field, value))
    data = open_dataset(tmp_path, "small", tmp_path / "cache")
    with pytest.raises(UserError) as error:
        list(data.trajectories.read(data.trajectories.ids))
    assert message in str(error.value)


def test_bad_files_are_refused_in_one_line(tmp_path: Path) -> None:
    rows = [lme_world.trajectory(number) for number in range(3)]

    def refusal(name: str) -> str:
        with pytest.raises(UserError) as error:
            open_dataset(tmp_path / name, "small", tmp_path / "cache")
        assert "\n" not in str(error.value)
        return str(error.value)

    cut = lme_world.write(tmp_path / "cut", rows) / "trajectories.jsonl"
    cut.write_bytes(cut.read_bytes()[:-40])
    assert "trajectories.jsonl line 3: cut off in the middle" in refusal("cut")

    lme_world.write(tmp_path / "twice", [rows[0], rows[1], rows[0]])
    assert "line 3: id '00000000' is there twice (first in line 1)" in refusal("twice")

    stray = lme_world.write(tmp_path / "stray", rows) / "haystacks/lme_v2_small.json"
    stray.write_text(stray.read_text().replace("00000002", "feedbeef"))
    assert "trajectory 'feedbeef' is not in trajectories.jsonl (3 rows)" in refusal("stray")

    lme_world.write(tmp_path / "evidence", rows)
    (tmp_path / "evidence/evidence.json").write_text('[{"question_id": "x"}]')
    assert "evidence.json, entry 0: expected an object" in refusal("evidence")

    for name, content, message in (
        ("questions.jsonl", {"id": "../../x"}, "line 2: field 'id' is '../../x': files are named after it"),
        ("questions.jsonl", {"image": "../secret.png"}, "line 2: field 'image' is '../secret.png', which leaves"),
        ("questions.jsonl", {"eval_function": "norm_phrase"}, "line 2: field 'eval_function': unknown eval function"),
        ("questions.jsonl", {"eval_function": "norm_phrase_set_match|sep=,"}, "a phrase grader has no option 'sep'"),
        ("haystacks/lme_v2_small.json", {"q0000001": [["00000000"]]}, "'q0000001' has no list of trajectory ids"),
        ("evidence.json", {"state_index": -1}, "evidence.json, entry 0 (q): state_index -1 is no index"),
    ):
        file = lme_world.write(tmp_path / "fields", rows) / name
        if name == "questions.jsonl":
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            lines[1] |= content
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        elif name == "evidence.json":
            file.write_text(json.dumps([{"question_id": "q", "evidence": [{"trajectory_id": "00000000"} | content]}]))
        else:
            file.write_text(json.dumps(json.loads(file.read_text()) | content))
        assert message in refusal("fields"), content

    with pytest.raises(UserError, match="unknown tier 'smal'; did you mean 'small'"):
        open_dataset(tmp_path / "stray", "smal", tmp_path / "cache")
    (tmp_path / "bad.jsonl.xz").write_bytes(b"not packed")
    with pytest.raises(UserError, match=r"bad.jsonl.xz cannot be unpacked"):
        TrajectoryFile.open(tmp_path / "bad.jsonl.xz", tmp_path / "cache")


@pytest.mark.parametrize("name", ["questions.jsonl", "trajectories.jsonl", "haystacks/lme_v2_small.json"])
def test_line_ends_marks_and_blank_lines_of_other_systems_do_not_matter(tmp_path: Path, name: str) -> None:
    expected = [trajectory_from(lme_world.trajectory(number), "row") for number in range(3)]
    file = lme_world.write(tmp_path, [lme_world.trajectory(number) for number in range(3)]) / name
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n \r\n").rstrip())
    data = open_dataset(tmp_path, "small", tmp_path / "cache")
    assert list(data.trajectories.read(data.trajectories.ids)) == expected
    assert len(data.questions) == 3
    file.write_bytes(file.read_bytes().replace(b"00", b"\xff", 1))
    with pytest.raises(UserError, match="not valid JSON"):
        open_dataset(tmp_path, "small", tmp_path / "cache")


def test_a_file_that_changes_under_way_is_noticed(tmp_path: Path) -> None:
    rows = [lme_world.trajectory(number) for number in range(4)]
    file = lme_world.write(tmp_path, rows) / "trajectories.jsonl"
    before = file.stat()
    opened = TrajectoryFile.open(file, tmp_path / "cache")
    swapped = [rows[1], rows[0], *rows[2:]]
    lme_world.write(tmp_path, swapped)
    with pytest.raises(UserError, match=r"line \d: (expected '0000000.', found|not valid JSON)"):
        list(opened.read(opened.ids))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # the same size and time, other content
    again = TrajectoryFile.open(file, tmp_path / "cache")
    assert [run.id for run in again.read(again.ids)] == [row["id"] for row in swapped]
    assert again.sha256 == sha256_of(file)
    lme_world.write(tmp_path, [*swapped, lme_world.trajectory(5)])
    with pytest.raises(UserError, match="changed while it was in use"):
        again.get(rows[0]["id"])
    kept = next((tmp_path / "cache" / "offsets").iterdir())
    kept.write_text(kept.read_text()[:-50])  # cut: made again
    assert len(TrajectoryFile.open(file, tmp_path / "cache")) == 5


def test_offsets_follow_the_file_and_a_packed_file_reads_the_same(tmp_path: Path) -> None:
    rows = [lme_world.trajectory(number) for number in range(4)]
    rows[2] = dict(reversed(rows[2].items()))  # a row that does not begin with its id
    file = lme_world.write(tmp_path, rows) / "trajectories.jsonl"
    opened = TrajectoryFile.open(file, tmp_path / "cache")
    expected = [trajectory_from(row, "row") for row in rows]
    assert list(opened.read(reversed(opened.ids))) == expected[::-1]
    packed = tmp_path / "packed.jsonl.xz"
    packed.write_bytes(lzma.compress(file.read_bytes()))
    assert list(TrajectoryFile.open(packed, tmp_path / "cache").read(opened.ids)) == expected
    lme_world.write(tmp_path, rows[1:])  # changed: the kept offsets must not be used
    assert TrajectoryFile.open(file, tmp_path / "cache").get(rows[3]["id"]) == expected[3]


def test_download_checks_resumes_and_places_screenshots(tmp_path: Path) -> None:
    hub, here = tmp_path / "hub", tmp_path / "here"
    lme_world.write(hub, [lme_world.trajectory(0), lme_world.trajectory(1)])
    sums = {
        name: sha256_of(hub / name) for name in ("questions.jsonl", "trajectories.jsonl", "haystacks/lme_v2_small.json")
    }
    asked: list[str] = []

    def fetch(name: str, folder: Path) -> Path:
        asked.append(name)
        if name == "trajectories.jsonl" and len(asked) == 3:
            raise UserError("the line went dead")
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((hub / name).read_bytes())
        return target

    with pytest.raises(UserError, match="the line went dead"):
        download(here, ["small"], fetch=fetch, checksums=sums)
    assert download(here, ["small"], fetch=fetch, checksums=sums) == ["trajectories.jsonl"]
    assert download(here, ["small"], fetch=fetch, checksums=sums) == []
    with pytest.raises(UserError, match=r"questions.jsonl: its sha256 is .* expected 000000000000"):
        download(here, ["small"], fetch=fetch, checksums=sums | {"questions.jsonl": "0" * 64})

    shots = here / "trajectory_screenshots"
    for archive, name, content in (
        ("web_screenshots", "00000000", b"old"),
        ("enterprise_screenshots_base", "00000001", b"base"),
        ("enterprise_screenshots_patch", "00000001", b"patched"),
    ):
        source = tmp_path / archive / name
        source.mkdir(parents=True)
        (source / "0.png").write_bytes(content)
        shots.mkdir(exist_ok=True)
        with tarfile.open(shots / f"{archive}.tar.gz", "w:gz") as tar:
            tar.add(tmp_path / archive, arcname=archive)
    unpack_screenshots(here)
    data = open_dataset(here, "small", tmp_path / "cache")
    found = [data.trajectories.screenshot(f"screenshots/{name}/0.png").read_bytes() for name in data.trajectories.ids]
    assert found == [b"old", b"patched"]
    with pytest.raises(UserError, match=r"screenshot 'screenshots/00000000/1.png' is missing"):
        data.trajectories.screenshot("screenshots/00000000/1.png")


def test_an_archive_that_leaves_its_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "trajectory_screenshots"
    folder.mkdir()
    (tmp_path / "x").write_bytes(hashlib.sha256(b"x").digest())
    with tarfile.open(folder / "web_screenshots.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "x", arcname="../../escaped.png")
    with pytest.raises(UserError, match="cannot be unpacked"):
        unpack_screenshots(tmp_path)
    assert not (tmp_path.parent / "escaped.png").exists()
