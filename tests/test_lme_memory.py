"""The memory: exact scores, one index for many haystacks, a store that survives, and what it lets out."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import lme_scale
from lme_v2_env.chat import Endpoint, EndpointError
from lme_v2_env.memory import index as index_module
from lme_v2_env.memory import snapshot
from lme_v2_env.memory.api import RetrievalConfig, RetrievalMemory, searched
from lme_v2_env.memory.embed import BadVectors, EndpointEmbedder, Hashing, unit_rows
from lme_v2_env.memory.index import Block, Index, term_arrays
from lme_v2_env.memory.library import Library
from lme_v2_env.memory.slices import state_lines, windows, words
from lme_v2_env.memory.store import Store, pack, unpack
from lme_v2_env.memory.writer import ModelWriter, json_object
from lme_v2_env.trajectory import Trajectory, trajectory_from
from rewards.errors import UserError
from tests import lme_world

LINES = st.lists(st.text(alphabet="ab c'", min_size=1, max_size=40), max_size=60)


def runs(n: int) -> list[Trajectory]:
    return [trajectory_from(lme_world.trajectory(number), "row") for number in range(n)]


@given(LINES, st.integers(10, 90))
def test_windows_hold_every_line_once_and_stay_short(lines: list[str], size: int) -> None:
    cut = windows(lines, size)
    assert "\n".join(cut) == "\n".join(line[:size] for line in lines)
    assert all(len(window) <= size for window in cut)


def test_a_change_at_the_top_of_a_page_leaves_most_windows_as_they_were() -> None:
    lines = [f"link 'item {number} of the list'" for number in range(400)]
    before, after = windows(lines, 700), windows(["button 'New here'", "text 'banner'", *lines], 700)
    assert len(set(after) - set(before)) < len(after) / 4


def block(texts: Sequence[str], embedder: Hashing, hashes: dict[str, int]) -> Block:
    return Block(
        vectors=embedder.documents(texts).astype(np.float16),
        first_window=np.arange(len(texts) + 1, dtype=np.int32),
        **term_arrays(texts, hashes),
    )


def corpus(rng: np.random.Generator, blocks: int, entries: int) -> list[list[str]]:
    vocabulary = [a + b for a in "abcdefghijkl" for b in "mnopqrstuvwxyz"]
    return [[" ".join(rng.choice(vocabulary, size=rng.integers(3, 40))) for _ in range(entries)] for _ in range(blocks)]


def test_bm25_equals_the_bm25s_library_in_every_haystack() -> None:
    bm25s = pytest.importorskip("bm25s")
    rng = np.random.default_rng(0)
    texts, hashes, embedder = corpus(rng, 12, 7), {}, Hashing(16)
    index = Index()
    for number, part in enumerate(texts):
        index.add(block(part, embedder, hashes))
        if number % 3 == 0:
            index.prepare()  # several segments, joined again later
    for chosen in ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [7, 2, 11], [5]):
        ordered = sorted(chosen)
        flat = [text for number in ordered for text in texts[number]]
        reference = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        reference.index([words(text) for text in flat], show_progress=False)
        query = ["am", "gz", "ln", "am", "nowhere"]
        expected = reference.get_scores(query)
        hits = index.search(None, " ".join(query), chosen, top=len(flat))
        found = {(hit.block, hit.entry): hit.score for hit in hits}
        for place, score in enumerate(expected):
            key = (ordered[place // 7], place % 7)
            assert found.get(key, 0.0) == pytest.approx(score, rel=1e-4)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_many_windows_rank_as_an_exhaustive_search_does(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    texts, hashes, embedder = corpus(rng, 30, 20), {}, Hashing(128)
    exact, coarse = Index(), Index()
    for part in texts:
        exact.add(block(part, embedder, hashes))
        coarse.add(block(part, embedder, hashes))
    exact.prepare()
    monkeypatch.setattr(index_module, "EXACT_WINDOWS", 10)
    coarse.prepare()
    for number in range(10):
        vector = embedder.query(texts[number][0])
        best = exact.search(vector, None, None, top=6)
        assert best[0][:2] == (number, 0)
        found = coarse.search(vector, None, None, top=6)
        assert [hit[:2] for hit in found] == [hit[:2] for hit in best]


def test_equal_scores_put_the_later_entry_first() -> None:
    index, hashes = Index(), {}
    index.add(block(["same words", "same words"], Hashing(16), hashes))
    index.add(block(["same words"], Hashing(16), hashes))
    hits = index.search(None, "words", None, top=3)
    assert [hit[:2] for hit in hits] == [(1, 0), (0, 1), (0, 0)]


class Counting(Hashing):
    def __init__(self) -> None:
        super().__init__(64)
        self.texts: list[str] = []

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        return super().documents(texts)


def test_nothing_is_embedded_twice_across_memories_and_processes(tmp_path: Path) -> None:
    first = Counting()
    library = Library(Store(tmp_path), first)
    for _ in range(2):
        memory = RetrievalMemory(library, RetrievalConfig(notes=2, events=2))
        for run in runs(8):
            memory.insert(run)
    assert len(first.texts) == len(set(first.texts))
    again = Counting()
    memory = RetrievalMemory(Library(Store(tmp_path), again), RetrievalConfig(notes=2, events=2))
    for run in runs(8):
        memory.insert(run)
    assert again.texts == []
    assert memory.query("Granite Mortar price")


def test_a_haystack_sees_only_its_own_trajectories() -> None:
    library = Library(Store(None), Hashing(64))
    memories = [RetrievalMemory(library, RetrievalConfig(notes=1, events=1)) for _ in range(2)]
    for number, run in enumerate(runs(6)):
        memories[number % 2].insert(run)
    alone = RetrievalMemory(Library(Store(None), Hashing(64)), RetrievalConfig(notes=1, events=1))
    for run in runs(6)[1::2]:
        alone.insert(run)
    question = "What price does the page of the `Copper Kettle` show?"
    shared = memories[1].query(question)
    whole = RetrievalMemory(library, RetrievalConfig(notes=1, events=1))
    for run in runs(6):
        whole.insert(run)
    assert whole.subset(f"{number:08x}" for number in (1, 3, 5)).query(question) == shared
    assert {name for item in shared for name, _ in item.shows} <= {f"{number:08x}" for number in (1, 3, 5)}
    assert shared == alone.query(question)


@pytest.mark.parametrize("exact", [10, 100_000])
def test_a_snapshot_answers_as_the_memory_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: int) -> None:
    monkeypatch.setattr(index_module, "EXACT_WINDOWS", exact)
    config = RetrievalConfig(notes=1, events=1)
    memory = RetrievalMemory(Library(Store(None), Hashing(128)), config)
    for run in runs(12):
        memory.insert(run)
    question = "What price does the page of the `Linen Curtain` show?"
    expected = memory.query(question)
    for _ in range(2):  # a second writer leaves the first one's
        snapshot.save(memory, tmp_path / "kept")
    again = RetrievalMemory(Library(Store(None), Hashing(128)), config)
    assert snapshot.load(again, tmp_path / "kept")
    assert again.query(question) == expected
    for run in runs(14)[12:]:
        again.insert(run)
        memory.insert(run)
    assert again.query(question) == memory.query(question)
    other = RetrievalMemory(Library(Store(None), Hashing(64)), config)
    assert not snapshot.load(other, tmp_path / "kept")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]


@pytest.mark.parametrize("size", [0, 100])
def test_a_damaged_snapshot_or_record_is_one_line(tmp_path: Path, size: int) -> None:
    def filled() -> RetrievalMemory:
        memory = RetrievalMemory(Library(Store(tmp_path / "store"), Hashing(16)), RetrievalConfig(notes=1))
        for run in runs(2):
            memory.insert(run)
        return memory

    snapshot.save(filled(), tmp_path / "kept")
    for file in (tmp_path / "kept").iterdir():
        whole = file.read_bytes()
        file.write_bytes(whole[:size])
        empty = RetrievalMemory(Library(Store(tmp_path / "store"), Hashing(16)), RetrievalConfig(notes=1))
        with pytest.raises(UserError, match=r"kept is damaged .*: delete it, and it is made again"):
            snapshot.load(empty, tmp_path / "kept")
        file.write_bytes(whole)
    for record in (file for file in (tmp_path / "store").rglob("*-*") if file.is_file()):
        whole = record.read_bytes()
        record.write_bytes(whole[:size])
        with pytest.raises(UserError, match="a record of the store is damaged"):
            filled()
        record.write_bytes(whole)
    assert filled().query("Walnut Desk")


def test_the_best_slice_holds_the_page_asked_for_and_overlaps_are_passed_over() -> None:
    memory = RetrievalMemory(Library(Store(None), Hashing(256)), RetrievalConfig(slices=3))
    for run in runs(6):
        memory.insert(run)
    items = memory.query(lme_world.question(3)["question"])
    assert "Price of Granite Mortar $151.00" in items[0].value
    shown = [pair for item in items for pair in item.shows]
    assert len(items) == 3
    assert len(shown) == len(set(shown))
    assert "boxed" not in searched(lme_world.question(3)["question"])


def _hammer(folder: Path, seed: int, count: int, started: Any) -> None:
    store, rng = Store(folder), np.random.default_rng(seed)
    started.set()
    for number in range(count):
        data = pack({"a": rng.standard_normal(20_000)})
        kept = store.put(f"{number % 40:032x}", "k", {"x": 1}, data)
        assert len(unpack(kept)["a"]) == 20_000


def test_two_writers_and_a_killed_one_leave_whole_records(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    events = [context.Event() for _ in range(2)]
    processes = [
        context.Process(target=_hammer, args=(tmp_path, seed, count, events[seed]))
        for seed, count in ((0, 100_000), (1, 400))
    ]
    for process in processes:
        process.start()
    assert all(event.wait(60) for event in events)
    time.sleep(0.3)
    pid = processes[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    processes[1].join(60)
    assert processes[1].exitcode == 0
    store = Store(tmp_path)
    first = [store.get(f"{number:032x}", "k", {"x": 1}) for number in range(40)]
    assert all(record is not None and len(unpack(record)["a"]) == 20_000 for record in first)
    assert store.put(f"{0:032x}", "k", {"x": 1}, b"late") == first[0]
    assert store.get(f"{0:032x}", "k", {"x": 2}) is None


def test_a_run_without_a_transition_stands_beside_others() -> None:
    row = lme_world.trajectory(0)
    row["states"] = [row["states"][0] | {"url": "", "accessibility_tree": ""}]
    embedder = Counting()
    memory = RetrievalMemory(Library(Store(None), embedder), RetrievalConfig(events=2, notes=1))
    memory.insert(trajectory_from(row, "row"))
    assert memory.query("cart")  # alone, too: the pool of events holds nothing
    for run in runs(3)[1:]:
        memory.insert(run)
    assert memory.query("Walnut Desk")
    assert "" not in embedder.texts  # endpoints refuse an empty text


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_vectors_are_refused(bad: float) -> None:
    rows = np.ones((3, 4))
    rows[1, 2] = bad
    with pytest.raises(BadVectors, match="embedding 1 of 3 holds NaN or infinity"):
        unit_rows(rows, 3, "m")
    with pytest.raises(BadVectors, match="expected 2 vectors"):
        unit_rows(np.ones((3, 4)), 2, "m")
    assert np.allclose(unit_rows([[1e30, 1e30]], 1, "m"), 2**-0.5)


class Scripted(Endpoint):
    """An endpoint whose replies are given."""

    def __init__(self, replies: Sequence[Any]) -> None:
        super().__init__("http://scripted.test", "scripted")
        self.replies, self.sent = list(replies), []

    def _post(self, route: str, payload: dict[str, Any], timeout: float | None = None) -> dict[str, Any]:
        self.sent.append(payload)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, dict) else {"choices": [{"message": {"content": reply}}]}


def test_an_endpoint_that_sends_ragged_vectors_is_named() -> None:
    reply = {"data": [{"index": 1, "embedding": [1.0]}, {"index": 0, "embedding": [1.0, 2.0]}]}
    with pytest.raises(BadVectors, match="scripted: the vectors are no matrix"):
        EndpointEmbedder(Scripted([reply])).documents(["a", "b"])
    with pytest.raises(EndpointError, match="2 texts were sent, 1 came back"):
        EndpointEmbedder(Scripted([{"data": [{}]}])).documents(["a", "b"])


def test_notes_by_a_model_are_repaired_once_then_templates_and_kept() -> None:
    good = (
        'Sure: {"procedure": {"title": "T", "description": "D", "content": ["a", "b"]}, '
        '"hint": {"title": "H", "description": "", "content": "c"}}'
    )
    endpoint = Scripted(["no json", good, "nothing", "still nothing"])
    writer = ModelWriter(endpoint)
    library = Library(Store(None), None, writer)
    first, second = runs(2)
    assert [row["content"] for row in library.records("procedure", first)] == ["- a\n- b"]
    assert library.records("hint", first)[0]["title"] == "H"  # from the store: no further call
    assert len(endpoint.sent) == 2
    assert library.records("procedure", second)[0]["title"] == second.goal
    assert library.records("procedure", second)[0]["fallback"]
    assert not library.records("procedure", first)[0]["fallback"]
    prompt = str(endpoint.sent)
    assert first.states[1].action is not None
    assert first.states[1].action in prompt.replace('\\"', '"').replace("\\'", "'")


def test_json_objects_are_found_in_replies() -> None:
    assert json_object('```json\n{"a": 1}\n``` done') == {"a": 1}
    assert json_object("[1]") is None
    assert json_object("none {broken") is None


def test_states_are_searched_without_ids_addresses_and_noise() -> None:
    state = runs(1)[0].states[1]
    assert state_lines(state)[:2] == ["Copper Kettle - Shop /1", "RootWebArea 'Copper Kettle - Shop'"]
    assert not any("[" in line for line in state_lines(state))


def test_the_measurement_of_scale_measures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lme_world.write(tmp_path / "data", [lme_world.trajectory(number) for number in range(4)])
    sizes = ["--trajectories", "6", "--states", "5"]
    words = [str(tmp_path), "--data", str(tmp_path / "data"), *sizes, "--phase"]
    assert [lme_scale.main([*words, phase]) for phase in ("make", "insert", "insert", "open")] == [0] * 4
    made, _, inserted, opened = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert made["states"] == 30
    assert inserted["windows"] >= 30, "inserted anew, and not found in the store of the first"
    assert opened["rows"] == 6
    assert opened["top6_as_exhaustive"] == 1.0
