"""`python -m eval report`: figures are those of the rows, the viewer shows what was played, hostile text stays text."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval import __main__ as evaluation
from eval import lme
from eval.report_runs import labels
from eval.stats import mcnemar_exact, wilson
from supersede_env.data import DataConfig, load_episodes
from supersede_env.diagnosis import diagnose, lost_turn
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig
from supersede_env.scoring import Outcome, grade_answer
from tests import browser, lme_world
from tests.episodes import record
from tests.scripted_endpoint import Messages, ScriptedEndpoint

N = 12
HOSTILE = (
    "</script><script>document.documentElement.dataset.hacked=1</script><img src=x onerror=alert(1)>"
    "<!-- ]]> & {{data}} {{script}} \u2028 <svg onload=alert(2)> '\""
)


def notes_shown(messages: Messages) -> str:
    """All of the notes as the answer."""
    return messages[-1]["content"].partition("NOTES:\n")[2].partition("\n\n")[0]


def play(
    out: Path,
    *systems: str,
    data: tuple[str, ...] = ("validation", "--preset", "quick"),
    n: int = N,
    policy: Callable[[Messages], str] = notes_shown,
) -> None:
    with ScriptedEndpoint(policy) as server:
        for system in systems:
            words = ["supersede", "--model", "m", "--base-url", server.url, "--data", *data, "--system", system]
            assert evaluation.main([*words, "--n", str(n), "--out", str(out)]) in (0, 3)


@pytest.fixture(scope="module", autouse=True)
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "key")
        yield


@pytest.fixture(scope="module")
def played(key: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("played")
    play(folder, "copy_last", "oracle_notes", "no_memory")
    return folder


@pytest.fixture
def runs(played: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return shutil.copytree(played, tmp_path / "runs")


def report(out: Path, *arguments: object) -> str:
    assert evaluation.main(["report", *map(str, arguments), "--out", str(out)]) == 0
    return out.read_text("utf-8")


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text("utf-8").split("\n") if line]


class Parts(HTMLParser):
    """Elements and JSON blocks of a page, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.blocks: dict[str, Any] = {}
        self.programs: list[str] = []
        self.text = ""
        self._block: str | None = None
        self._within = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        self._within = tag
        self._block = dict(attrs).get("id") if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script" and self._block:
            self.blocks[self._block] = json.loads(data)
        elif self._within == "script":
            self.programs.append(data)
        elif self._within != "style":
            self.text += data

    def detail(self, number: int) -> dict[str, Any]:
        size = self.blocks["index"]["chunk"]
        return self.blocks[f"details-{number // size}"][number % size]

    def episode(self, number: int) -> list[Any]:
        size = self.blocks["index"]["episode_chunk"]
        return self.blocks[f"episodes-{number // size}"][number % size]


def test_the_figures_are_those_of_the_rows(runs: Path, tmp_path: Path) -> None:
    parts = Parts(report(tmp_path / "r.html", runs))
    figures = parts.blocks["figures"]
    assert [run["label"] for run in figures["runs"]] == ["copy_last", "no_memory", "oracle_notes"]
    right: dict[str, dict[str, int]] = {}
    for run in figures["runs"]:
        rows = rows_of(runs / run["label"])
        hits = sum(row["verdict"] == "correct" for row in rows)
        right[run["label"]] = {row["id"]: row["r_cur"] for row in rows}
        interval = wilson(hits, N)
        assert (run["rows"], run["scored"], run["accuracy"]) == (N, N, pytest.approx(hits / N))
        assert (run["low"], run["high"]) == (pytest.approx(interval.low), pytest.approx(interval.high))
        assert run["verdicts"] == Counter(row["verdict"] for row in rows)
        assert run["lost"] == Counter(row["diagnosis"] for row in rows if row["diagnosis"] != "answered")
        assert sum(run["lost"].values()) == N - hits
        after = Counter(row["tags"]["sessions_after_update"] for row in rows)
        assert {group["key"]: group["n"] for group in run["after"]} == after
        assert run["cost"]["calls"] == 1
        assert run["dates"][0] == min(row["timestamp_utc"] for row in rows)
        assert f"{100 * hits / N:.1f} %" in parts.text
    assert 0 < sum(right["oracle_notes"].values()) > sum(right["no_memory"].values())
    for pair in figures["pairs"]:
        a, b = right[pair["a"]["run"]], right[pair["b"]["run"]]
        only_a, only_b = (sum(x[task] > y[task] for task in a) for x, y in ((a, b), (b, a)))
        assert (pair["only_a"], pair["only_b"], pair["n"]) == (only_a, only_b, N)
        assert pair["mcnemar_exact_p"] == pytest.approx(mcnemar_exact(only_a, only_b))
    assert len(figures["pairs"]) == 3


def test_the_viewer_holds_every_row_and_the_sessions_that_were_played(runs: Path, tmp_path: Path) -> None:
    parts = Parts(report(tmp_path / "r.html", runs / "copy_last"))
    episodes = load_episodes(DataConfig("validation", preset="quick", num_episodes=N)).episodes
    rows = rows_of(runs / "copy_last")
    for number, (head, row, episode) in enumerate(zip(parts.blocks["index"]["rows"], rows, episodes, strict=True)):
        detail = parts.detail(number)
        assert head[1:5] == [row["verdict"], "" if row["r_cur"] else row["diagnosis"], row["id"], 0]
        assert (detail["notes"], detail["answer"], detail["stale"]) == (row["notes"], row["answer"], row["stale"])
        assert detail["marks"][-1] & 1 == row["metrics"]["gold_in_notes"]
        shown = [[turn[1] for turn in session[2]] for session in parts.episode(detail["episode"])]
        assert shown == [[turn.content for turn in session.turns] for session in episode.sessions]
        told = [[i, j] for i, s in enumerate(parts.episode(detail["episode"])) for j, t in enumerate(s[2]) if t[2]]
        assert told == [list(pair) for pair in episode.evidence]


def test_sessions_of_other_data_are_not_passed_off_as_the_runs(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = runs / "copy_last/run.json"
    file.write_text(re.sub(r'"task_set": "\w+"', '"task_set": "000000000000"', file.read_text("utf-8")), "utf-8")
    parts = Parts(report(tmp_path / "r.html", runs / "copy_last"))
    assert not [name for name in parts.blocks if name.startswith("episodes")]
    assert "makes other episodes than the run played" in capsys.readouterr().err
    assert "makes other episodes than the run played" in parts.text
    assert parts.detail(0)["notes"]


def test_room_for_text_goes_to_the_evidence_first(runs: Path, tmp_path: Path) -> None:
    parts = Parts(report(tmp_path / "r.html", runs, "--text", "0.004"))
    sessions = [
        session for name in parts.blocks if name.startswith("episodes") for e in parts.blocks[name] for session in e
    ]
    assert sum(len(turn[1]) for _, _, turns in sessions for turn in turns or ()) <= 4000
    shown = [evidence for _, evidence, turns in sessions if turns is not None]
    hidden = [evidence for _, evidence, turns in sessions if turns is None]
    assert sum(shown) == N, "of every episode the one that tells the fact"
    assert hidden
    assert not any(hidden)
    assert "left out to keep the page small" in parts.text
    assert not any(
        name.startswith("episodes") for name in Parts(report(tmp_path / "n.html", runs, "--text", "0")).blocks
    )


LOST = [
    (["Rome", "Oslo", "Rome", "hm"], "overwritten", 2),
    (["Rome", "Oslo", "hm", "Oslo and", "Rome"], "overwritten", 4),
    (["Rome", "x" * 38 + " Oslo", "Rome"], "cut", 1),
    (["Rome", "Rome", "Rome"], "stale", 1),
    (["hm", "hm", "hm"], "never_written", 1),
    (["Rome", "Oslo", "Oslo"], "misread", None),
]


@pytest.mark.parametrize(("notes", "diagnosis", "turn"), LOST)
def test_the_turn_that_lost_the_fact(notes: list[str], diagnosis: str, turn: int | None) -> None:
    made = record(0, len(notes), gold="Oslo", stale=["Rome"], evidence=[[1, 0]])
    episode = Episode.from_record(made)
    rollout = NotesRollout(episode.view, ProtocolConfig(budget=40))
    for reply in (*notes, "Paris"):
        rollout.step(reply)
    outcome = Outcome.of(rollout)
    assert diagnose(episode, outcome, grade_answer(episode, "Paris").verdict) == diagnosis
    assert lost_turn(episode, outcome, diagnosis) == turn
    nowhere = Episode.from_record(made | {"evidence": []})
    known = turn if diagnosis in ("overwritten", "cut") else None
    assert lost_turn(nowhere, outcome, diagnosis) == known, "without evidence only what the notes show"


def test_real_rows_show_their_sessions(oracle_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGMEMEVAL_DIR", raising=False)
    play(tmp_path, "copy_last", data=("oracle", "--path", str(oracle_dir)), n=4)
    parts = Parts(report(tmp_path / "r.html", tmp_path / "copy_last", "--path", oracle_dir))
    rows = rows_of(tmp_path / "copy_last")
    lost = Counter(row["diagnosis"] for row in rows if row["diagnosis"] != "answered")
    assert parts.blocks["figures"]["runs"][0]["lost"] == lost
    for number, row in enumerate(rows):
        sessions = parts.episode(parts.detail(number)["episode"])
        assert len(sessions) == row["sessions"]
        told = " ".join(turn[1] for session in sessions for turn in session[2] if turn[2])
        assert told
    without = Parts(report(tmp_path / "r.html", tmp_path / "copy_last"))
    assert "give --path, or set LONGMEMEVAL_DIR" in without.text


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    made = [record(i, 2, question=f"Where? {HOSTILE}", stale=[HOSTILE]) for i in range(3)]
    for item in made:
        item["sessions"][0]["turns"][0]["content"] = HOSTILE
    (tmp_path / "own.jsonl").write_text("\n".join(json.dumps(item) for item in made), "utf-8")
    play(tmp_path / HOSTILE[2:8], "copy_last", data=(str(tmp_path / "own.jsonl"),), n=3, policy=lambda _: HOSTILE)
    run = tmp_path / HOSTILE[2:8] / "copy_last"
    info = json.loads((run / "run.json").read_text("utf-8")) | {
        "model": HOSTILE + "\ud800",
        "excluded": [["x", HOSTILE]],
    }
    (run / "run.json").write_text(json.dumps(info), "utf-8")
    return run


def test_hostile_text_stays_text(hostile: Path, tmp_path: Path) -> None:
    page = report(tmp_path / "r.html", hostile)
    parts = Parts(page)
    assert parts.tags["script"] == len(parts.blocks) + 1 == len(parts.blocks) + len(parts.programs)
    assert parts.tags["img"] == parts.tags["svg"] - page.count('class="bar"') - page.count('class="whisker"') == 0
    assert not [name for name in parts.attributes if name.startswith("on") or name in ("src", "style")]
    assert "default-src 'none'" in page
    assert "hacked" not in re.sub(
        r'<script type="application/json".*?</script>', "", page.split("<main>")[0], flags=re.S
    )
    assert parts.detail(0)["answer"] == HOSTILE.strip()
    assert parts.episode(0)[0][2][0][1] == HOSTILE
    assert HOSTILE in parts.text, "the page names the model"


needs_browser = pytest.mark.skipif(
    browser.program() is None, reason="no Chromium is installed: apt-get install chromium"
)


@needs_browser
def test_a_browser_runs_none_of_it_and_steps_to_the_turn(hostile: Path, runs: Path, tmp_path: Path) -> None:
    report(tmp_path / "r.html", hostile)
    shown = browser.document(tmp_path / "r.html", "#r=1&t=0")
    assert "data-ready-ms" in shown.split(">")[1]
    assert "data-hacked" not in shown.partition("<body>")[0]
    live = Parts(shown)
    assert live.tags["img"] == 0
    assert "dataset.hacked=1" in live.text, "as text"
    page = Parts(report(tmp_path / "g.html", runs / "copy_last"))
    lost = next(i for i, row in enumerate(page.blocks["index"]["rows"]) if row[2] == "overwritten")
    stepped = browser.document(tmp_path / "g.html", f"#r={lost}&t={page.detail(lost)['lost_at']}")
    assert "The fact was lost at this turn: overwritten." in stepped
    assert "<del>" in stepped


def test_the_same_rows_make_the_same_bytes(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report(tmp_path / "a.html", runs)
    monkeypatch.chdir(runs.parent)
    report(tmp_path / "b.html", "runs")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert str(tmp_path) not in (tmp_path / "a.html").read_text("utf-8")


def test_a_training_run_has_its_curve(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "trained"
    folder.mkdir()
    steps: list[dict[str, Any]] = [
        {
            "step": i,
            "reward": i / 10,
            "rollouts": 8,
            "verdicts": {"correct": i, "stale": 1, "wrong": 3 - i},
            "groups": 2,
        }
        | {"varied_groups": 1, "seconds": 30.0}
        for i in range(1, 4)
    ]
    steps.append({"step": 4, "reward": None, "rollouts": 8, "verdicts": {}, "groups": 2, "seconds": 30.0})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps), "utf-8")
    (folder / "config.toml").write_text('env = "supersede"\nseed = 3\n', "utf-8")
    info = json.loads((runs / "copy_last/run.json").read_text("utf-8")) | {"adapter": "/else/where/trained/step_0002"}
    (runs / "copy_last/run.json").write_text(json.dumps(info), "utf-8")
    moved = report(tmp_path / "r.html", runs, folder)
    (curve,) = Parts(moved).blocks["figures"]["training"]
    assert [step.get("correct") for step in curve["steps"]] == [0.25, 0.5, 0.75, None], "of the four that were scored"
    assert [(point["step"], point["label"]) for point in curve["checkpoints"]] == [(2, "runs/copy_last")]
    assert curve["seconds"] == 120
    shutil.copytree(folder, tmp_path / "other" / "trained")
    both = Parts(report(tmp_path / "r.html", runs, folder, tmp_path / "other")).blocks["figures"]["training"]
    assert [len(curve["checkpoints"]) for curve in both] == [0, 0], "either could be meant"
    shutil.copytree(folder, tmp_path / "where" / "trained")
    three = report(tmp_path / "r.html", runs, folder, tmp_path / "other", tmp_path / "where")
    found = {c["label"]: len(c["checkpoints"]) for c in Parts(three).blocks["figures"]["training"]}
    assert found == {"trained": 0, "other/trained": 0, "where/trained": 1}
    alone = Parts(report(tmp_path / "r.html", folder))
    assert alone.tags["polyline"] == 4
    assert "seed" in alone.text


def test_budgets_that_alone_differ_make_a_curve(runs: Path, tmp_path: Path) -> None:
    for budget in (100, 200):
        copy = tmp_path / f"b{budget}"
        copy.mkdir()
        info = json.loads((runs / "copy_last/run.json").read_text("utf-8"))
        info["protocol"]["budget"] = budget
        (copy / "run.json").write_text(json.dumps(info), "utf-8")
        (copy / "rows.jsonl").write_bytes((runs / "copy_last/rows.jsonl").read_bytes())
    figures = Parts(report(tmp_path / "r.html", runs, tmp_path / "b100", tmp_path / "b200")).blocks["figures"]
    (curve,) = figures["budgets"]
    assert [point["key"] for point in curve["points"]] == [100, 200, 300]


@pytest.fixture
def lme_run(tmp_path: Path) -> Path:
    world = lme_world.write(tmp_path / "data", [lme_world.trajectory(number) for number in range(6)])
    words = ["--data", str(world), "--out", str(tmp_path / "lme"), "--cache", str(tmp_path / "cache")]
    words += ["--embedder", "hashing", "--reader", "extractive", "--system", "no_retrieval,rag_slice"]
    assert lme.run(words) == 0
    return tmp_path / "lme"


def test_runs_of_longmemeval_v2(lme_run: Path, tmp_path: Path) -> None:
    parts = Parts(report(tmp_path / "r.html", lme_run))
    nothing, slices = parts.blocks["figures"]["runs"]
    assert (nothing["lost"], slices["lost"]) == ({"major retrieval miss": 6}, {})
    assert (nothing["accuracy"], slices["accuracy"]) == (0, 1)
    assert (nothing["verdicts"], slices["verdicts"]) == ({"unknown": 6}, {"correct": 6})
    detail = parts.detail(6)
    assert any("Price of" in text and evidence for _, text, evidence in detail["context"])
    assert detail["evidence"][0][2] == 1
    (pair,) = parts.blocks["figures"]["pairs"]
    assert (pair["only_a"], pair["only_b"], pair["differs_in"][0]) == (0, 6, "system")
    rows = rows_of(lme_run / "rag_slice")
    (lme_run / "secret.json.gz").write_bytes(next((lme_run / "rag_slice/contexts").iterdir()).read_bytes())
    rows[0]["id"] = "../../secret"
    (lme_run / "rag_slice/rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert Parts(report(tmp_path / "r.html", lme_run / "rag_slice")).detail(0)["context"] == []


def swapped(old: str, new: str, line: int = 2) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        lines = (run / "rows.jsonl").read_text("utf-8").split("\n")
        assert old in lines[line]
        lines[line] = lines[line].replace(old, new, 1)
        (run / "rows.jsonl").write_text("\n".join(lines), "utf-8")

    return change


BROKEN: list[tuple[Callable[[Path], object], str]] = [
    (lambda run: (run / "run.json").unlink(), "is no run: neither run.json nor metrics.jsonl"),
    (lambda run: (run / "run.json").write_text("[1]"), "run.json: expected an object"),
    (lambda run: (run / "rows.jsonl").unlink(), "rows.jsonl: no such file"),
    (lambda run: (run / "rows.jsonl").write_text(""), "rows.jsonl: no rows"),
    (lambda run: (run / "rows.jsonl").write_bytes(b"\xff"), "rows.jsonl cannot be read"),
    (swapped('{"id"', '{"id'), "rows.jsonl, line 3: no valid JSON"),
    (swapped('"verdict": "', '"verdict": 7, "was": "'), "rows.jsonl, line 3: 'verdict' is '7', not a text"),
    (swapped('"notes": [', '"notes": [3, '), "line 3: 'notes' holds something that is no text"),
    (swapped('"seconds": ', '"seconds": NaN, "was": '), "line 3: 'seconds' is 'nan', not a number"),
    (swapped('"sessions_after_update": ', '"sessions_after_update": [], "was": '), "line 3: 'tags' holds no number"),
    (swapped('"is_stale": ', '"is_stale": 1e999, "was": '), "line 3: 'metrics' holds no number 'is_stale'"),
    (swapped('"scored": true', '"scored": "yes"'), "line 3: 'scored' is 'yes', not true or false"),
    (lambda run: (run / "rows.jsonl").write_text("[" * 100_000), "line 1: no valid JSON"),
]


@pytest.mark.parametrize(("damage", "message"), BROKEN)
def test_damaged_runs_are_named_and_the_old_page_stays(
    damage: Callable[[Path], object],
    message: str,
    runs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(runs / "no_memory")
    page = tmp_path / "r.html"
    page.write_text("old", "utf-8")
    assert evaluation.main(["report", str(runs / "no_memory"), "--out", str(page)]) == 2
    assert message in capsys.readouterr().err
    assert page.read_text("utf-8") == "old"
    assert not list(tmp_path.glob(".r.html*"))


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([10**400, -1.5, float("nan"), float("inf"), "", "<b>", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "step", "model"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def folders(played: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    world = lme_world.write(folder / "data", [lme_world.trajectory(number) for number in range(3)])
    words = ["--data", str(world), "--out", str(folder / "lme"), "--cache", str(folder / "cache")]
    assert lme.run([*words, "--embedder", "hashing", "--reader", "extractive", "--system", "rag_slice"]) == 0
    (folder / "trained").mkdir()
    step = {"step": 1, "reward": 0.5, "rollouts": 8, "verdicts": {"correct": 1}, "groups": 2, "varied_groups": 1}
    (folder / "trained/metrics.jsonl").write_text(json.dumps(step | {"seconds": 2.5}) + "\n", "utf-8")
    return [played / "copy_last", folder / "lme/rag_slice", folder / "trained"]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_odd_value_anywhere_is_shown_or_refused(data: st.DataObject, folders: list[Path], tmp_path: Path) -> None:
    run = data.draw(st.sampled_from(folders))
    copy = tmp_path / "copy"
    copy.mkdir(exist_ok=True)
    for old in copy.iterdir():
        old.unlink()
    for name in ("run.json", "rows.jsonl", "metrics.jsonl"):
        if (run / name).is_file():
            (copy / name).write_bytes((run / name).read_bytes())
    file = data.draw(st.sampled_from(sorted(copy.iterdir())))
    lines = [file.read_text("utf-8")] if file.suffix == ".json" else file.read_text("utf-8").rstrip("\n").split("\n")
    number = data.draw(st.integers(0, len(lines) - 1))
    place = made = json.loads(lines[number])
    name = data.draw(st.sampled_from(sorted(place)))
    if isinstance(place[name], dict) and place[name] and data.draw(st.booleans()):
        place = place[name]
        name = data.draw(st.sampled_from(sorted(place)))
    if data.draw(st.integers(0, 4)) == 0:
        del place[name]
    else:
        place[name] = data.draw(ODD)
    lines[number] = json.dumps(made)
    file.write_text("\n".join(lines) + "\n", "utf-8")
    status = evaluation.main(["report", str(copy), "--text", "0", "--out", str(tmp_path / "odd.html")])
    assert status in (0, 2)
    if status == 0:
        Parts((tmp_path / "odd.html").read_text("utf-8"))


def test_what_cannot_stand_on_one_page(
    runs: Path, lme_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [
        ([runs, lme_run], "give each its own report"),
        ([runs, runs / "copy_last"], "is given twice"),
        ([runs / "copy_last", runs / "no_memory" / ".." / "copy_last"], "is given twice"),
        ([tmp_path / "none"], "no such folder"),
    ]
    for folders, message in cases:
        assert evaluation.main(["report", *map(str, folders), "--out", str(tmp_path / "r.html")]) == 2
        assert message in capsys.readouterr().err
    assert evaluation.main(["report", str(runs), "--out", str(tmp_path / "r.pdf")]) == 2
    assert evaluation.main(["report", str(runs), "--out", str(tmp_path / "no/r.html")]) == 2
    assert not (tmp_path / "r.html").exists()


def test_names_tell_runs_apart() -> None:
    def named(*paths: str) -> list[str]:
        return labels([Path(path) for path in paths])

    assert named("/a/runs/m/full") == ["m/full"]
    assert named("/a/runs/m/full", "/a/runs/m/bounded") == ["full", "bounded"]
    assert named("/a/x/eval/full", "/a/y/eval/full") == ["x/eval/full", "y/eval/full"]
    assert named("/a/t", "/a/t/eval/full") == ["t", "eval/full"]
    assert named("/a/b/c/d/e/full", "/z/full") == ["e/full", "z/full"]


def test_a_folder_of_training_runs_stands_for_them(tmp_path: Path) -> None:
    for name in ("seed0", "seed1"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "metrics.jsonl").write_text('{"step": 1, "reward": 0.5}\n', "utf-8")
    figures = Parts(report(tmp_path / "r.html", tmp_path / "runs")).blocks["figures"]
    assert [run["label"] for run in figures["training"]] == ["seed0", "seed1"]


def test_many_runs_are_compared_with_the_first_of_their_own_tasks(runs: Path, tmp_path: Path) -> None:
    play(tmp_path / "more", "copy_last", "oracle_notes", n=3)
    for number in range(4):
        shutil.copytree(runs / "no_memory", runs / f"again{number}")
    found = Parts(report(tmp_path / "r.html", tmp_path / "more", runs)).blocks["figures"]["pairs"]
    pairs = [(pair["a"]["run"], pair["b"]["run"]) for pair in found]
    assert pairs[0] == ("more/copy_last", "more/oracle_notes")
    rest = ["again1", "again2", "again3", "copy_last", "no_memory", "oracle_notes"]
    assert pairs[1:] == [("runs/again0", f"runs/{name}") for name in rest]


def test_the_page_holds_no_path_of_an_own_file(tmp_path: Path) -> None:
    file = tmp_path / "private" / "sub" / "own.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(record(number)) + "\n" for number in range(3)), "utf-8")
    play(tmp_path / "own", "copy_last", data=(str(file),), n=3)
    page = report(tmp_path / "r.html", tmp_path / "own")
    assert "sub/own.jsonl" in page
    assert "private" not in page
    file.rename(file.with_name("moved.jsonl"))
    page = report(tmp_path / "r.html", tmp_path / "own")
    assert "sessions are not shown: sub/own.jsonl: no such file" in page
    assert str(file.parent.parent) not in page


def test_an_unfinished_benchmark_run_is_refused(
    lme_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(lme_run / "rag_slice", tmp_path / "run")
    lines = (copy / "rows.jsonl").read_text("utf-8").splitlines(keepends=True)
    (copy / "rows.jsonl").write_text("".join(lines[:-1]), "utf-8")
    assert evaluation.main(["report", str(copy), "--out", str(tmp_path / "r.html")]) == 2
    assert f"{len(lines) - 1} of {len(lines)} questions; the run is not finished" in capsys.readouterr().err
