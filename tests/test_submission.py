"""Leaderboard packages: the published layout, and refusal of everything that may not be submitted."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval import lme
from eval.submission import check, run
from eval.submission_runs import TYPES, all_questions
from tests import lme_world
from tests.conftest import SHARED
from tests.scripted_endpoint import ScriptedEndpoint


@pytest.fixture(scope="module")
def questions() -> list[dict[str, Any]]:
    file = SHARED / "data" / "longmemeval_v2" / "questions.jsonl"
    if not file.is_file():
        pytest.skip("LongMemEval-V2 is not at ../shared/data/longmemeval_v2")
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def write_run(folder: Path, rows: list[dict[str, Any]], domain: str, *, accuracy: float, seconds: float) -> Path:
    """A run in the published layout whose first rows are right."""
    right = round(accuracy * len(rows))
    scored = [
        {
            "question_id": row["id"],
            "question_type": row["question_type"],
            "score": float(place < right),
            "memory_query_duration_seconds": seconds,
        }
        for place, row in enumerate(rows)
    ]
    (folder / "runtime_inputs").mkdir(parents=True)
    write = {
        "run_args.json": {"domain": domain, "model": "Qwen/Qwen3.5-9B", "evaluator_model": "gpt-5.2-2025"},
        "aggregated_metrics.json": metrics(scored, seconds),
        "runtime_inputs/questions.json": rows,
        "runtime_inputs/haystack.json": {row["id"]: ["t1", "t2"] for row in rows},
    }
    for name, payload in write.items():
        (folder / name).write_text(json.dumps(payload))
    (folder / "per_question.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scored))
    return folder


def metrics(scored: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    def part(kinds: list[str]) -> dict[str, Any]:
        scores = [row["score"] for row in scored if row["question_type"] in kinds]
        return {"count": len(scores), "pct_correct": sum(scores) / len(scores) if scores else None}

    return {
        "overall": {
            "overall_full_set": sum(row["score"] for row in scored) / len(scored),
            "count_all_questions": len(scored),
        },
        "non_abstention_by_category": {"gotchas": part(["errors-gotchas"])},
        "combined_abstention_by_category": {
            "static": part(["static-environment", "static-environment-abs"]),
            "dynamic": part(["dynamic-environment", "dynamic-environment-abs"]),
            "procedure": part(["procedure", "procedure-abs"]),
        },
        "memory_query": {"avg_seconds": seconds, "total_seconds": seconds * len(scored), "max_seconds": seconds},
    }


Build = Callable[..., int]


@pytest.fixture
def site(tmp_path: Path, questions: list[dict[str, Any]]) -> tuple[Path, Build]:
    """Two operating points over all questions, and a function that builds the package."""
    for name, accuracy, seconds in (("fast", 0.6, 0.9), ("slow", 0.75, 60.0)):
        for domain in ("web", "enterprise"):
            rows = [row for row in questions if row["domain"] == domain]
            write_run(tmp_path / f"{name}_{domain}_small", rows, domain, accuracy=accuracy, seconds=seconds)
    (tmp_path / "SYSTEM_DESCRIPTION.md").write_text("A memory.")
    (tmp_path / "memory.py").write_text("pass")

    def build(*more: str, points: tuple[str, ...] = ("fast", "slow"), name: str = "mine") -> int:
        args = ["build", name, "--tier", "small", "--method", "mem", "--out", str(tmp_path / "out")]
        for point in points:
            args += ["--point", f"{point}={tmp_path}/{point}_web_small,{tmp_path}/{point}_enterprise_small"]
        args += ["--description", str(tmp_path / "SYSTEM_DESCRIPTION.md"), "--code", str(tmp_path / "memory.py")]
        return run([*args, *more])

    return tmp_path, build


def edit(file: Path, change: Callable[[Any], Any]) -> None:
    payload = json.loads(file.read_text())
    file.write_text(json.dumps(change(payload) or payload))


def test_package_has_the_published_layout(site: tuple[Path, Build], capsys: pytest.CaptureFixture[str]) -> None:
    folder, build = site
    assert build() == 0
    package = folder / "out" / "mine"
    files = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    runs = ("aggregated_metrics.json", "per_question.jsonl", "run_args.json")
    inputs = ("runtime_inputs/questions.json", "runtime_inputs/haystack.json")
    expected = {"SYSTEM_DESCRIPTION.md", "memory.py", "submission_overview.json"}
    for point in ("fast", "slow"):
        place = f"operating_points/{point}"
        expected |= {f"{place}/metric_overview.json", f"{place}/operating_point_metadata.json"}
        expected |= {f"{place}/{domain}/{file}" for domain in ("web", "enterprise") for file in (*runs, *inputs)}
    assert files == expected
    stated = json.loads((package / "submission_overview.json").read_text())
    assert [point["name"] for point in stated["operating_points"]] == ["fast", "slow"]
    assert stated["lafs"]["lafs_gain"] > 5
    assert stated["archive_name"] == "mine.tar.gz"
    metadata = json.loads((package / "operating_points/fast/operating_point_metadata.json").read_text())
    assert metadata["runs"]["web"]["question_count"] == 240
    assert metadata["runs"]["enterprise"]["question_type_counts"] == TYPES["enterprise"]
    with tarfile.open(folder / "out" / "mine.tar.gz") as tar:
        assert {name for name in tar.getnames() if name.endswith(".json")} >= {"mine/submission_overview.json"}
    assert check(package) == []
    assert run(["check", str(folder / "out" / "mine.tar.gz")]) == 0
    assert "valid" in capsys.readouterr().out
    assert not list((folder / "out").glob(".building*"))


def test_a_run_over_some_questions_is_invalid(site: tuple[Path, Build], capsys: pytest.CaptureFixture[str]) -> None:
    """The published scripts let a `--limit` run pass."""
    folder, build = site
    limited = json.loads((folder / "fast_web_small/runtime_inputs/questions.json").read_text())[:30]
    write_run(folder / "some_web_small", limited, "web", accuracy=1.0, seconds=0.5)
    (folder / "fast_enterprise_small").rename(folder / "some_enterprise_small")
    assert build(points=("some",)) == 3
    error = capsys.readouterr().err
    assert "30 of 240 questions" in error
    assert "static-environment " in error
    assert not (folder / "out" / "mine").exists()


def cut_rows(folder: Path) -> None:
    file = folder / "fast_web_small/per_question.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))


def unscored(folder: Path) -> None:
    file = folder / "fast_web_small/per_question.jsonl"
    file.write_text(file.read_text().replace('"score": 1.0', '"score": null', 1))


def doubled(folder: Path) -> None:
    file = folder / "slow_enterprise_small/per_question.jsonl"
    file.write_text(file.read_text() + file.read_text().splitlines()[0] + "\n")


def better(folder: Path) -> None:
    edit(folder / "fast_web_small/aggregated_metrics.json", lambda m: m["overall"].update(overall_full_set=0.9))


def faster(folder: Path) -> None:
    edit(folder / "slow_web_small/aggregated_metrics.json", lambda m: m["memory_query"].update(avg_seconds=1.5))


def reader(folder: Path) -> None:
    edit(folder / "slow_web_small/run_args.json", lambda args: args.update(model="Qwen/Qwen3-4B"))


def judge(folder: Path) -> None:
    edit(folder / "slow_web_small/run_args.json", lambda args: args.update(evaluator_model=None))


def domain(folder: Path) -> None:
    edit(folder / "fast_web_small/run_args.json", lambda args: args.update(domain="enterprise"))


def haystack(folder: Path) -> None:
    edit(folder / "slow_web_small/runtime_inputs/haystack.json", lambda h: {key: ["t9"] for key in h})


def stated_method(folder: Path) -> None:
    edit(folder / "fast_web_small/run_args.json", lambda args: args.update(method="other"))


def untimed(folder: Path) -> None:
    file = folder / "fast_web_small/per_question.jsonl"
    file.write_text(file.read_text().replace('_seconds": 0.9', '_seconds": null', 1))


def category(folder: Path) -> None:
    file = folder / "fast_web_small/aggregated_metrics.json"
    edit(file, lambda m: m["combined_abstention_by_category"]["static"].update(pct_correct=0.99))


def easier(folder: Path) -> None:
    edit(folder / "fast_web_small/runtime_inputs/questions.json", lambda rows: rows[5].update(answer="anything"))


def no_haystack(folder: Path) -> None:
    for point in ("fast", "slow"):
        edit(folder / f"{point}_web_small/runtime_inputs/haystack.json", lambda h: h.update({next(iter(h)): []}))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (untimed, "1 rows without a latency"),
        (category, "static 0.99, the rows give"),
        (easier, "a text, type, answer or grader is not the published one"),
        (no_haystack, "1 questions without a haystack"),
        (cut_rows, "1 questions without a row"),
        (unscored, "1 rows are unscored"),
        (doubled, "ids twice"),
        (better, "overall 0.9, the rows give 0.6"),
        (faster, "mean latency 1.5, the rows give 60"),
        (reader, "qwen3.5-9b only"),
        (judge, "gpt-5.2 only"),
        (domain, "says domain 'enterprise'"),
        (haystack, "another haystack"),
        (stated_method, "says method 'other'"),
    ],
)
def test_what_may_not_be_submitted(
    site: tuple[Path, Build], damage: Callable[[Path], None], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, build = site
    damage(folder)
    assert build() == 3
    assert complaint in capsys.readouterr().err
    assert not (folder / "out" / "mine").exists()


def test_a_changed_package_is_found_out(site: tuple[Path, Build], capsys: pytest.CaptureFixture[str]) -> None:
    folder, build = site
    assert build() == 0
    package = folder / "out" / "mine"
    edit(package / "submission_overview.json", lambda o: o["lafs"].update(lafs_gain=50.0))
    edit(package / "operating_points/slow/metric_overview.json", lambda o: o.update(overall_full_set=0.99))
    (package / "SYSTEM_DESCRIPTION.md").unlink()
    (package / "link").symlink_to(folder)
    assert run(["check", str(package)]) == 3
    text = capsys.readouterr().out
    for part in ("LAFS summary", "slow: metric_overview.json", "SYSTEM_DESCRIPTION.md is missing", "link is a link"):
        assert part in text


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("submission_overview.json", {"operating_points": 7}, "'operating_points' is no list"),
        ("submission_overview.json", {"operating_points": [{"name": "slow"}]}, "its entry of 'slow' is not what"),
        ("submission_overview.json", {"method": ["mem"]}, "'method' is no name"),
        ("operating_points/slow/operating_point_metadata.json", {"runs": {}}, "slow: operating_point_metadata.json is"),
    ],
)
def test_a_package_that_contradicts_its_runs_is_invalid(
    site: tuple[Path, Build], capsys: pytest.CaptureFixture[str], name: str, change: dict[str, Any], complaint: str
) -> None:
    folder, build = site
    assert build(points=("slow",)) == 0
    edit(folder / "out/mine" / name, lambda stated: stated.update(change))
    assert run(["check", str(folder / "out/mine")]) == 3
    assert complaint in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--point", "x=one"], "NAME=WEB,ENTERPRISE"),
        (["--point", "a/b=c,d"], "may hold only"),
        (["--point", "x=nowhere,nowhere"], "no such file"),
        (["--code", "nowhere.py"], "no such file"),
    ],
)
def test_build_refuses_with_one_line(
    site: tuple[Path, Build], more: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, build = site
    assert build(*more) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


def test_names_and_overwriting(site: tuple[Path, Build], capsys: pytest.CaptureFixture[str]) -> None:
    folder, build = site
    assert build(name="../mine") == 2
    assert build() == 0
    assert build() == 2
    assert "--force" in capsys.readouterr().err
    assert build("--force", points=("fast",)) == 0
    assert [path.name for path in (folder / "out/mine/operating_points").iterdir()] == ["fast"]
    assert run(["check", str(folder / "nowhere")]) == 2
    (folder / "broken.tar.gz").write_bytes(b"no archive")
    assert run(["check", str(folder / "broken.tar.gz")]) == 2


def test_an_unescaped_line_separator_is_named(site: tuple[Path, Build], capsys: pytest.CaptureFixture[str]) -> None:
    """The published scripts would cut the row in two."""
    folder, build = site
    file = folder / "fast_web_small/per_question.jsonl"
    lines = file.read_text().splitlines()
    lines[3] = json.dumps(json.loads(lines[3]) | {"response_raw": "a\u2028b"}, ensure_ascii=False)
    file.write_text("\n".join(lines), encoding="utf-8")
    assert build() == 2
    assert "line 4: no valid JSON" in capsys.readouterr().err


def test_all_questions_names_what_is_short(questions: list[dict[str, Any]]) -> None:
    ids = [row["id"] for row in questions if row["domain"] == "web"]
    assert all_questions(ids, TYPES["web"], "web") == []
    assert all_questions([*ids[1:], "deadbeef"], TYPES["web"], "web") == [
        "240 questions, but not the 240 official ones"
    ]
    assert all_questions(ids[1:], {**TYPES["web"], "procedure": 41}, "web") == [
        "239 of 240 questions (procedure 41 of 42)"
    ]
    assert all_questions([], {}, "enterprise")[0].startswith("0 of 211 questions")


def test_a_run_of_ours_over_all_questions_may_be_submitted(
    tmp_path: Path, questions: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Official questions and haystacks, made-up trajectories under their ids, scripted reader and judge."""
    haystacks = json.loads((SHARED / "data/longmemeval_v2/haystacks/lme_v2_small.json").read_text())
    runs = {}
    for row in questions:
        for name in haystacks[row["id"]]:
            runs.setdefault(name, lme_world.trajectory(len(runs), name) | {"domain": row["domain"]})
    data = lme_world.write(tmp_path / "data", list(runs.values()), questions)
    (data / "evidence.json").unlink()
    (data / "haystacks/lme_v2_small.json").write_text(json.dumps(haystacks))
    with (
        ScriptedEndpoint(lambda _: "\\boxed{A}") as reader,
        ScriptedEndpoint(lambda _: '{"label": 0, "reason": "r"}') as judge,
    ):
        options = ["--system", "rag_slice", "--retrieval", "bm25", "--slices", "1", "--concurrency", "8"]
        options += ["--data", str(data), "--out", str(tmp_path / "runs"), "--cache", str(tmp_path / "cache")]
        options += ["--base-url", reader.url, "--reader-tokenizer", "estimate"]
        assert lme.run([*options, "--judge", "gpt-5.2", "--judge-base-url", judge.url]) == 0
        assert (reader.count, judge.count) == (451, 156)
    folder = tmp_path / "runs" / "rag_slice"
    (tmp_path / "SYSTEM_DESCRIPTION.md").write_text("A memory.")
    (tmp_path / "memory.py").write_text("pass")
    point = f"one={folder}/rag_slice_web_small,{folder}/rag_slice_enterprise_small"
    files = ["--description", str(tmp_path / "SYSTEM_DESCRIPTION.md"), "--code", str(tmp_path / "memory.py")]
    assert run(["build", "mine", "--tier", "small", "--point", point, *files, "--out", str(tmp_path / "out")]) == 0
    assert run(["check", str(tmp_path / "out/mine.tar.gz")]) == 0
    assert "valid, all questions of both domains" in capsys.readouterr().out
