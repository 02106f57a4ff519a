"""`python -m eval lme-v2` from files to rows: resuming, faults, what leaves the harness, the published layout."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval import lme
from eval.lme_export import aggregate
from eval.lme_rows import percentiles, recalled
from lme_v2_env.extractive import UNKNOWN, answer
from lme_v2_env.memory.api import ContextItem, RetrievalMemory
from lme_v2_env.memory.embed import Hashing
from lme_v2_env.reader import load_prompts
from lme_v2_env.tokens import counter_for, cut
from lme_v2_env.trajectory import EvidencePoint
from tests import lme_world
from tests.conftest import ROOT, _folder
from tests.scripted_endpoint import ScriptedEndpoint
from tests.test_lme_data import parity as parity

N = 6


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return lme_world.write(tmp_path / "data", [lme_world.trajectory(number) for number in range(N)])


def command(world: Path, out: Path, *more: str) -> list[str]:
    base = ["--data", str(world), "--out", str(out), "--cache", str(world.parent / "cache"), "--embedder", "hashing"]
    return [*base, "--system", "rag_slice", *more]


def rows_of(out: Path, system: str = "rag_slice") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / system / "rows.jsonl").read_text().split("\n")[:-1]]


def test_all_systems_end_to_end_without_a_model(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, picture = tmp_path / "out", tmp_path / "plot.svg"
    arguments = command(world, out, "--reader", "extractive", "--system", "all", "--plot", str(picture))
    assert lme.run(arguments) == 0
    table = capsys.readouterr().out
    assert "no language model" in table
    assert re.search(r"^major retrieval miss +6 \(100.0%\) +0 ", table, re.MULTILINE)
    assert [row["correct"] for row in rows_of(out)] == [True] * N
    assert [row["strict_correct"] for row in rows_of(out)] == [True] * N
    assert all(row["evidence"]["state"] == 1.0 and row["query_seconds"] > 0 for row in rows_of(out))
    nothing = rows_of(out, "no_retrieval")
    assert all(not row["correct"] and row["unknown"] and row["query_seconds"] is None for row in nothing)
    assert all(row["evidence"]["state"] == 1.0 for row in rows_of(out, "oracle_slices_notes"))
    assert "AgentRunbook-C" in picture.read_text("utf-8")  # the world's environment is one of the published
    before = (out / "rag_slice" / "rows.jsonl").read_bytes()
    assert lme.run(arguments) == 0
    assert (out / "rag_slice" / "rows.jsonl").read_bytes() == before
    assert lme.run([*arguments, "--slices", "2"]) == 2
    assert "holds another run: its settings is" in capsys.readouterr().err


def test_no_published_points_over_other_data(world: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text(
        (world / "questions.jsonl").read_text("utf-8").replace("webarena-onestopshop", "webworld-shop")
    )
    picture = tmp_path / "plot.svg"
    arguments = command(world, tmp_path / "out", "--reader", "extractive", "--questions", str(questions))
    assert lme.run([*arguments, "--plot", str(picture)]) == 0
    drawn = picture.read_text("utf-8")
    assert "no published points" in drawn
    assert "AgentRunbook-C" not in drawn


def test_the_published_layout_has_every_question(world: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert lme.run(command(world, out, "--reader", "extractive")) == 0
    folder = out / "rag_slice" / "rag_slice_web_small"
    records = [json.loads(line) for line in (folder / "per_question.jsonl").read_text().splitlines()]
    questions = json.loads((folder / "runtime_inputs/questions.json").read_text())
    haystack = json.loads((folder / "runtime_inputs/haystack.json").read_text())
    metrics = json.loads((folder / "aggregated_metrics.json").read_text())
    assert [row["question_id"] for row in records] == [row["id"] for row in questions] == list(haystack)
    assert metrics["overall"]["count_all_questions"] == N
    assert metrics["overall"]["overall_full_set"] == 1.0
    assert metrics["memory_query"]["total_seconds"] == pytest.approx(sum(r["query_seconds"] for r in rows_of(out)))
    assert all(row["memory_context"][0]["type"] == "text" for row in records)
    assert json.loads((folder / "run_args.json").read_text())["domain"] == "web"


def test_aggregation_percentiles_and_cutting_are_the_published_ones(parity: dict[str, Any]) -> None:
    assert aggregate(parity["aggregate"]["records"]) == parity["aggregate"]["result"]
    for vector in parity["percentile"]:
        assert percentiles(range(1, vector["n"] + 1)) == (vector["p50"], vector["p95"])

    def count(items: Sequence[str]) -> int:
        return 5 + sum(map(len, items)) if items else 0

    for vector in parity["truncate (count=5+chars, 0 if empty)"]:
        items = ["x" * length for length in vector["lens"]]
        kept = cut(items, vector["max"], count)
        assert (len(kept), count(kept)) == (vector["kept"], vector["final"])


def boxed_price(messages: list[dict[str, str]]) -> str:
    return "I read it\u2028there.\x85 \\boxed{100}"  # line ends that must not cut a row


def reader(endpoint: ScriptedEndpoint) -> list[str]:
    return ["--reader", "Qwen/Qwen3.5-9B", "--base-url", endpoint.url, "--reader-tokenizer", "estimate"]


def test_a_faulty_endpoint_leaves_unscored_rows_that_the_next_start_redoes(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = {2: "html", 3: "window", 4: "empty", 5: "no-choices"}
    with ScriptedEndpoint(boxed_price, lambda _, number: faults.get(number)) as endpoint:
        arguments = command(world, tmp_path / "out", *reader(endpoint))
        assert lme.run(arguments) == 3
        reasons = [row["unscored_reason"] for row in rows_of(tmp_path / "out")]
        assert reasons[0] is None
        assert "not JSON (text/html): <html>" in reasons[1]
        assert "status 400" in reasons[2]
        assert "maximum context length" in reasons[2]
        assert "the reply is empty" in reasons[3]
        assert "no choices" in reasons[4]
        assert "INVALID" in capsys.readouterr().out
        folder = tmp_path / "out" / "rag_slice" / "rag_slice_web_small"
        assert len((folder / "per_question.jsonl").read_text().splitlines()) == N - 4
        assert lme.run(arguments) == 0
        assert endpoint.count == N + 4
    rows = rows_of(tmp_path / "out")
    assert [row["id"] for row in rows] == [lme_world.question(number)["id"] for number in range(N)]
    assert [row["correct"] for row in rows] == [True] + [False] * (N - 1)


def test_a_killed_run_goes_on_without_a_row_lost_or_doubled(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(messages: list[dict[str, str]]) -> str:
        time.sleep(0.3)
        return "\\boxed{100}"

    out = tmp_path / "out"
    with ScriptedEndpoint(slow) as endpoint:
        arguments = command(world, out, *reader(endpoint), "--concurrency", "2")
        program = f"import sys; from eval.lme import run; sys.exit(run({arguments!r}))"
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        rows = out / "rag_slice" / "rows.jsonl"
        deadline = time.monotonic() + 60
        while not (rows.is_file() and rows.read_bytes().count(b"\n") >= 2):
            assert time.monotonic() < deadline, "the run did not get to its second row"
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kept = rows_of(out)
        with rows.open("ab") as handle:
            handle.write(b'{"id": "torn')
        asked = endpoint.count
        assert lme.run(arguments) == 0
        assert endpoint.count - asked == N - len(kept)
    assert "measured at a concurrency over 1 and compare with nothing" in capsys.readouterr().out
    found = rows_of(out)
    assert sorted(row["id"] for row in found) == sorted(lme_world.question(number)["id"] for number in range(N))
    assert [row for row in found if row["id"] in {row["id"] for row in kept}] == sorted(kept, key=lambda row: row["id"])


def test_a_terminated_run_ends_at_once_though_requests_hang(world: Path, tmp_path: Path) -> None:
    with ScriptedEndpoint(boxed_price, lambda _, number: "hang" if number > 1 else None) as endpoint:
        arguments = ["lme-v2", *command(world, tmp_path / "out", *reader(endpoint), "--concurrency", "3")]
        error = endpoint.terminate(["eval", *arguments], requests=4, within=10)
    assert "interrupted; the same command resumes" in error
    assert len(rows_of(tmp_path / "out")) == 1


def test_gold_id_type_and_paths_never_leave_the_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [lme_world.question(number) for number in range(N)]
    for number, row in enumerate(rows):
        row |= {"id": f"idcanary{number}", "answer": f"goldcanary{number}"}
    rows[0]["image"] = "question_screenshots/idcanary0.png"
    trajectories = [lme_world.trajectory(number) for number in range(N)]
    world = lme_world.write(tmp_path / "data", trajectories, rows)
    for name in ["question_screenshots/idcanary0.png"] + [s["screenshot"] for t in trajectories for s in t["states"]]:
        (world / name).parent.mkdir(parents=True, exist_ok=True)
        (world / name).write_bytes(lme_world.PNG)
    embedded: list[str] = []
    plain = Hashing.documents
    monkeypatch.setattr(Hashing, "documents", lambda self, texts: embedded.extend(texts) or plain(self, texts))

    def policy(messages: list[dict[str, str]]) -> str:
        return UNKNOWN

    with ScriptedEndpoint(policy) as endpoint:
        searching = ("rag_slice", "rag_slice_notes", "agentrunbook_r")
        for system in (*searching, "oracle_trajectories", "oracle_slices_notes", "no_retrieval"):
            arguments = command(world, tmp_path / "out", *reader(endpoint), "--images", "--system", system)
            assert lme.run(arguments) == 0
        sent = "\n".join([*endpoint.bodies, *embedded])
    assert "image_url" in sent
    assert rows[0]["question"].split("\n")[0] in "\n".join(embedded)
    for secret in (
        "idcanary",
        "goldcanary",
        "static-environment",
        "norm_phrase",
        str(tmp_path),
        "question_screenshots",
    ):
        assert secret not in sent, secret


def test_text_only_runs_say_which_rows_had_a_picture(world: Path, tmp_path: Path) -> None:
    rows = [lme_world.question(number) for number in range(2)]
    rows[1]["image"] = "question_screenshots/missing.png"
    lme_world.write(world, [lme_world.trajectory(number) for number in range(2)], rows)
    assert lme.run(command(world, tmp_path / "text", "--reader", "extractive")) == 0
    assert [row["image_withheld"] for row in rows_of(tmp_path / "text")] == [False, True]
    with ScriptedEndpoint(boxed_price) as endpoint:
        arguments = command(world, tmp_path / "pictures", *reader(endpoint), "--images")
        assert lme.run(arguments) == 2  # a state's screenshot is missing
        for number in range(2):
            for state in lme_world.trajectory(number)["states"]:
                (world / state["screenshot"]).parent.mkdir(parents=True, exist_ok=True)
                (world / state["screenshot"]).write_bytes(lme_world.PNG)
        assert lme.run(arguments) == 3
    reasons = [row["unscored_reason"] for row in rows_of(tmp_path / "pictures")]
    assert reasons == [None, "question image missing.png cannot be read: No such file or directory"]


def test_a_key_is_in_no_byte_of_a_run(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers repeat the key that they refuse, and the HTTP library one that is no header."""

    class Refusing(ScriptedEndpoint):
        def reply(self, body: dict) -> tuple[int, str, str]:
            return 401, "application/json", '{"error": "Incorrect API key provided: sk-canary-1234"}'

    reasons = []
    with Refusing() as endpoint:
        for number, key in enumerate(("sk-canary-1234", "sk-canary-1234\n", "sk-canary\r\n-1234", "sk-canary-\xe9")):
            monkeypatch.setenv("OPENAI_API_KEY", key)
            out = tmp_path / f"out{number}"
            assert lme.run(command(world, out, *reader(endpoint), "--limit", "1")) == 3
            reasons += [row["unscored_reason"] for row in rows_of(out)]
            assert all(b"canary" not in file.read_bytes() for file in out.rglob("*") if file.is_file())
    assert ["Incorrect API key provided: (the key)" in reason for reason in reasons] == [True, True, False, False]
    assert "the key in OPENAI_API_KEY holds characters that no header takes" in reasons[2]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"choices": [{"message": "hello"}]}', "the reply is empty"),
        ('{"choices": [{"message": {"content": [{"type": "text", "text": "\\\\boxed{100}"}]}}], "usage": [1]}', None),
        ('{"choices": [{"message": {"content": "\\ud800 \\\\boxed{100}"}, "finish_reason": {}}]}', None),
        ("[" * 100_000, "not JSON"),
        ('{"usage": ' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_odd_replies_are_read_or_leave_the_row_unscored(
    world: Path, tmp_path: Path, text: str, reason: str | None
) -> None:
    class Odd(ScriptedEndpoint):
        def reply(self, body: dict) -> tuple[int, str, str]:
            return 200, "application/json", text

    with Odd() as endpoint:
        assert lme.run(command(world, tmp_path / "out", *reader(endpoint), "--limit", "1")) == (3 if reason else 0)
    [row] = rows_of(tmp_path / "out")
    assert row["correct"] is None if reason else row["correct"]
    assert reason is None or reason in row["unscored_reason"]


def test_several_readers_read_between_queries_that_are_made_one_at_a_time(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = {lme_world.question(n)["id"]: [f"{k:08x}" for k in range(N) if k != (n + 1) % N] for n in range(N)}
    (world / "haystacks" / "lme_v2_small.json").write_text(json.dumps(lists))  # as in the medium tier: all differ
    log: list[str] = []
    query = RetrievalMemory.query

    def logged(self: RetrievalMemory, *view: Any) -> Any:
        log.append("query")
        return query(self, *view)

    def slow(messages: list[dict[str, str]]) -> str:
        log.append("read")
        time.sleep(0.3)
        log.append("answered")
        return "\\boxed{100}"

    monkeypatch.setattr(RetrievalMemory, "query", logged)
    with ScriptedEndpoint(slow) as endpoint:
        assert lme.run(command(world, tmp_path / "out", *reader(endpoint), "--readers", "2")) == 0
    assert "compare with nothing" not in capsys.readouterr().out
    assert log[:4] == ["query"] * 4
    second = log.index("query", 4)
    assert log[4:second].count("answered") == 4  # no query while one is read
    assert [row["id"] for row in rows_of(tmp_path / "out")] == list(lists)


def test_each_domain_is_built_once_though_the_file_mixes_them(world: Path, tmp_path: Path) -> None:
    runs = [lme_world.trajectory(number) for number in range(N)]
    rows = [lme_world.question(number) for number in range(N)]
    for number in (1, 3, 5):
        runs[number]["domain"] = rows[number]["domain"] = "enterprise"
    lme_world.write(world, runs, rows)
    ids = [run["id"] for run in runs]
    lists = {row["id"]: ids[n % 2 :: 2][: 3 - n // 4] for n, row in enumerate(rows)}  # four lists, two a domain
    (world / "haystacks" / "lme_v2_small.json").write_text(json.dumps(lists))
    assert lme.run(command(world, tmp_path / "out", "--reader", "extractive")) == 0
    built = json.loads((tmp_path / "out/rag_slice/memories.json").read_text())
    assert [entry["trajectories"] for entry in built] == [3, 3]
    assert [row["id"] for row in rows_of(tmp_path / "out")] == [row["id"] for row in rows]


OWN = """
class Whole:
    settings = {"pages": 1}

    def __init__(self):
        self.pages = []

    def insert(self, trajectory):
        self.pages.append(trajectory.states[1].tree)

    def query(self, question, image=None):
        return [{"type": "text", "value": page} for page in self.pages if question.split("`")[1] in page]

class Odd(Whole):
    def query(self, question, image=None):
        name = question.split("`")[1].split()[0]
        wrong = {"Copper": None, "Walnut": ["text"], "Linen": [{"type": "text", "value": " "}], "Granite": [{"a": 1}]}
        return wrong[name] if name in wrong else 1 / 0 if name == "Velvet" else [{"type": "image", "value": "/no"}]

class Half(Whole):
    def query(self, question, image=None):
        if "Copper" in question:
            raise ValueError("half of \\ud83d")
        return [{"type": "text", "value": "half of \\ud83d"}]
"""


def test_a_memory_from_anywhere_is_evaluated_and_its_faults_are_unscored_rows(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_memory.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    arguments = command(world, tmp_path / "out", "--reader", "extractive", "--system")
    assert lme.run([*arguments, "own_memory:Whole"]) == 0
    rows = rows_of(tmp_path / "out", "Whole")
    assert [row["correct"] for row in rows] == [True] * N
    assert all(row["query_seconds"] > 0 for row in rows)
    assert lme.run([*arguments, "own_memory:Odd"]) == 3
    reasons = [row["unscored_reason"] for row in rows_of(tmp_path / "out", "Odd")]
    for reason, part in zip(
        reasons, ("NoneType", "got str", "is empty", "got dict", "ZeroDivision", "no file"), strict=True
    ):
        assert reason.startswith("memory: ")
        assert part in reason
    assert lme.run([*arguments, "own_memory:Half"]) == 3  # halves of characters have no bytes
    assert [row["scored"] for row in rows_of(tmp_path / "out", "Half")] == [False] + [True] * (N - 1)
    assert lme.run([*arguments, "own_memory:Hole"]) == 2
    assert "system 'own_memory:Hole' cannot be had: module 'own_memory' has no attribute" in capsys.readouterr().err


def embeddings(vector: Callable[[int], list[float]]) -> type[ScriptedEndpoint]:
    class Embeddings(ScriptedEndpoint):
        def reply(self, body: dict) -> tuple[int, str, str]:
            self.count += 1
            data = [{"index": i, "embedding": vector(self.count)} for i in range(len(body["input"]))]
            return 200, "application/json", json.dumps({"data": data})

    return Embeddings


def test_nan_from_the_embedder_is_one_line_at_insert_and_one_row_at_query(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(endpoint: ScriptedEndpoint, out: str, cache: str) -> int:
        arguments = command(world, tmp_path / out, "--reader", "extractive", "--cache", str(tmp_path / cache))
        return lme.run([*arguments, "--embedder", "scripted", "--embed-base-url", endpoint.url])

    with embeddings(lambda number: [float("nan"), 1.0])() as endpoint:
        assert run(endpoint, "a", "a") == 2
    assert "embedding 0 of" in capsys.readouterr().err
    with embeddings(lambda number: [1.0] * number)() as endpoint:
        assert run(endpoint, "a", "a") == 2
    assert "scripted: 2 numbers a vector, before 1" in capsys.readouterr().err
    with embeddings(lambda number: [1.0, 2.0])() as endpoint:
        assert run(endpoint, "b", "b") == 0
        inserts = endpoint.count - N
    # another model under the same name: its vectors cannot stand beside those that were kept
    lme_world.write(world, [lme_world.trajectory(number) for number in range(N + 1)])
    with embeddings(lambda number: [1.0, 2.0, 3.0])() as endpoint:
        assert run(endpoint, "other", "b") == 2
    assert "vectors of 3 numbers beside vectors of 2" in capsys.readouterr().err
    lme_world.write(world, [lme_world.trajectory(number) for number in range(N)])
    with embeddings(lambda number: [float("nan"), 1.0] if number == inserts + 2 else [1.0, 2.0])() as endpoint:
        assert run(endpoint, "c", "c") == 3
    reasons = [row["unscored_reason"] for row in rows_of(tmp_path / "c")]
    assert [reason is None for reason in reasons] == [True, False, True, True, True, True]
    assert "memory: BadVectors: scripted: embedding 0 of 1 holds NaN" in (reasons[1] or "")


def test_a_trajectory_of_the_other_domain_is_refused(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [lme_world.trajectory(number) for number in range(N)]
    rows[4]["domain"] = "enterprise"
    lme_world.write(world, rows)
    assert lme.run(command(world, tmp_path / "out", "--reader", "extractive")) == 2
    assert "trajectory '00000004' of domain 'enterprise' is in a haystack of 'web'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--reader", "extractive", "--system", "rag_slize"], "unknown system 'rag_slize'; did you mean 'rag_slice"),
        (
            ["--reader", "extractive", "--question-ids", "q000000x"],
            "unknown question id 'q000000x'; did you mean 'q000000",
        ),
        (["--reader", "some-model"], "reader 'some-model' needs --base-url"),
        (["--reader", "extractive", "--embedder", "bert"], "embedder 'bert': give minilm, hashing"),
        (["--reader", "extractive", "--concurrency", "2", "--readers", "2"], "--readers is for queries one at a time"),
        (["--reader", "extractive", "--concurrency", "0"], "--concurrency is 0"),
        (["--reader", "extractive", "--retreival", "bm25"], "unknown option '--retreival'; did you mean '--retrieval'"),
        (["--reader", "extractive", "--plot", "x.gif"], "'x.gif' should end in one of .png, .svg, .pdf"),
        (["--reader", "m", "--base-url", "http://localhost:x/v1"], "endpoint 'http://localhost:x/v1' is no address"),
        (["--reader", "m", "--base-url", "http://u:password@127.0.0.1:1/v1"], "the address of 'm' holds a user"),
        (
            ["--reader", "extractive", "--embedder", "e", "--embed-base-url", "http://127.0.0.1:1/v1"],
            "no server for 'e' at",
        ),
        (["--reader", "extractive", "--temperature", "nan"], "--temperature is nan"),
        (["--reader", "extractive", "--cache", "/dev/null"], "/dev/null/offsets: Not a directory"),
        (["--reader", "extractive", "--tier", "medium"], "lme_v2_medium.json: no such file"),
        (["--reader", "extractive", "--data", "/nowhere"], "/nowhere: no such folder"),
    ],
)
def test_bad_options_are_refused_in_one_line(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    try:
        status = lme.run(command(world, tmp_path / "out", *more))
    except SystemExit as refused:  # by the parser
        status = refused.code
    error = capsys.readouterr().err
    assert status == 2
    assert message in error
    assert error.count("\n") == 1


def test_reader_prompts_may_be_replaced_and_are_checked(tmp_path: Path) -> None:
    ours = load_prompts()
    file = tmp_path / "prompts.json"
    file.write_text(json.dumps(ours | {"web": "other"}))
    assert load_prompts(file)["web"] == "other"
    file.write_text(json.dumps(ours | {"webb": "x"}))
    with pytest.raises(ValueError, match="unknown reader prompt 'webb'; did you mean 'web'"):
        load_prompts(file)
    assert "\b" not in "".join(ours.values())


def test_token_counts_are_labelled_when_they_are_estimates() -> None:
    counter = counter_for("estimate")
    assert counter.label == "estimate: 3 characters a token"
    assert counter.items([ContextItem("text", "x" * 300)], images=False) == 105
    assert counter.items([], images=False) == 0
    assert "3 characters a token (tokenizer /nowhere cannot be had" in counter_for("/nowhere").label


def test_a_tokenizer_on_disk_counts(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.enable_truncation(2)
    made.enable_padding(length=50)
    made.save(str(tmp_path / "tokenizer.json"))
    counter = counter_for(str(tmp_path))
    assert (counter.count("five words are in this"), counter.label) == (5, f"tokenizer {tmp_path}")


def test_evidence_is_found_by_state_and_by_line_on_another_page() -> None:
    points = [
        EvidencePoint("t", 1, "[a190] radio '500 GB [add $300.00]', checked='false'"),
        EvidencePoint("u", 0, "x 'y'"),
    ]
    other = ContextItem("text", "State 4\n\t[b7] radio '500 GB [add $300.00]', checked='false'", (("v", 4),))
    assert recalled(points, [other]) == {"state": 0.0, "trajectory": 0.0, "line": 0.5}
    assert recalled(points, [ContextItem("text", "z", (("t", 1), ("t", 2)))])["state"] == 0.5


@pytest.mark.parametrize(
    ("question", "context", "expected"),
    [
        (
            "How much does the Copper Kettle cost in dollars?",
            "[3] StaticText 'Copper Kettle costs $1,250.50'",
            "1250.5",
        ),
        ("Is `Help me` on the page, true or false?", "[3] link 'Help me'\n[4] link 'About'", "true"),
        ("Is `Help them` on the page, true or false?", "[3] link 'Help me'\n[4] link 'About'", "false"),
        ("Which button is there?\nA. Send it\nB. Add to Cart\n", "[3] button 'Add to Cart'\n[5] link 'Home'", "B"),
        ("What is the name of the kettle's warehouse?", "[3] text 'nothing of the sort'", "UNKNOWN"),
        ("Anything?", "", "UNKNOWN"),
        (
            "Which button sends the order form?",
            "Goal of the run: press 'Go' on the order form\n4. click('a58')  # [a58] button 'Send order form now'",
            "Send order form now",
        ),
    ],
)
def test_the_extractive_reader_copies_from_the_line_that_answers(question: str, context: str, expected: str) -> None:
    assert answer(question, [context]).endswith(f"\\boxed{{{expected}}}")


def test_the_smoke_test_on_real_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = _folder("workarena_trajectories", "real WorkArena runs")
    questions = _folder("longmemeval_v2", "LongMemEval-V2") / "questions.jsonl"
    arguments = ["--data", str(data), "--questions", str(questions), "--tier", "whole", "--out", str(tmp_path / "out")]
    arguments += ["--cache", str(tmp_path / "cache"), "--retrieval", "bm25", "--reader", "extractive", "--no-judge"]
    assert lme.run([*arguments, "--system", "rag_slice,oracle_slices_notes"]) == 0
    table = capsys.readouterr().out
    assert "smoke test of the machinery, not a LongMemEval-V2 score" in table
    assert "left out 2, needs a judge" in table
    rows = rows_of(tmp_path / "out")
    assert len(rows) == 9
    assert sum(row["evidence"]["line"] for row in rows) / len(rows) > 0.5
    oracle = rows_of(tmp_path / "out", "oracle_slices_notes")
    assert all(row["evidence"] == {"state": 1.0, "trajectory": 1.0, "line": 1.0} for row in oracle)


def test_wrong_premises_go_to_a_judge_whose_failure_is_no_zero(world: Path, tmp_path: Path) -> None:
    rows = [lme_world.question(number) for number in range(3)]
    for row in rows[1:]:
        row |= {
            "question_type": "static-environment-abs",
            "eval_function": "llm_abstention_checker|require_non_empty=true",
        }
    lme_world.write(world, [lme_world.trajectory(number) for number in range(3)], rows)

    def verdict(messages: list[dict[str, str]]) -> str:
        return '{"label": 1, "reason": "it names the flaw"}'

    def premise(messages: list[dict[str, str]]) -> str:
        return "\\boxed{there is no such page}"

    with (
        ScriptedEndpoint(premise) as model,
        ScriptedEndpoint(verdict, lambda _, n: "html" if n == 2 else None) as judge,
    ):
        arguments = command(
            world, tmp_path / "out", *reader(model), "--judge", "gpt-5.2", "--judge-base-url", judge.url
        )
        assert lme.run(arguments) == 3
        found = rows_of(tmp_path / "out")
        assert [row["correct"] for row in found] == [False, True, None]
        assert "judge failed: not JSON" in found[2]["unscored_reason"]
        body = json.loads(judge.bodies[0])
        assert (body["reasoning_effort"], body["max_completion_tokens"]) == ("medium", 4096)
        assert "there is no such page" in judge.bodies[0]
        asked = model.count
        assert lme.run(arguments) == 0
        assert (model.count, judge.count) == (asked, 3)  # the reader's answer was kept
    assert [row["id"] for row in rows_of(tmp_path / "out")] == [row["id"] for row in rows]
    assert [row["judge"] for row in rows_of(tmp_path / "out")[1:]] == ["gpt-5.2", "gpt-5.2"]
