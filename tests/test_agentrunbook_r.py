"""AgentRunbook-R: the published vectors, what its controller sees, its pools, and insertion that calls a model once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import lme
from eval.baselines.agentrunbook_r import Runbook, RunbookMemory, variants
from eval.baselines.agentrunbook_r_bundle import Bundle, ModelPlanner, RulesPlanner, fallback, parse_bundle
from eval.baselines.agentrunbook_r_merge import limits, merge, spaced
from eval.baselines.agentrunbook_r_parity import PublishedLibrary
from lme_v2_env.chat import Endpoint
from lme_v2_env.memory.api import RetrievalConfig
from lme_v2_env.memory.embed import Hashing
from lme_v2_env.memory.index import Block, Index, term_arrays
from lme_v2_env.memory.library import Library
from lme_v2_env.memory.store import Store
from lme_v2_env.memory.writer import ModelWriter
from lme_v2_env.trajectory import trajectory_from
from tests import lme_world
from tests.scripted_endpoint import ScriptedEndpoint
from tests.test_lme_data import parity as parity

N = 6


def test_merging_parsing_sampling_and_ties_equal_the_published_ones(parity: dict[str, Any]) -> None:
    vectors = parity["agentrunbook_r"]
    for vector in vectors["merge (budget6 cap2)"]:
        merged = merge(vector["lists"], budget=6, cap=2, parity=True)
        assert [[f"q{query}", entry, rank] for query, entry, rank in merged] == vector["merged"]
    for vector in vectors["parse_query_bundle"]:
        if isinstance(vector["result"], str):
            with pytest.raises(ValueError):  # noqa: PT011
                parse_bundle(vector["text"], parity=True)
            continue
        found = parse_bundle(vector["text"], parity=True)
        queries = {"raw_state_queries": list(found.raw), "event_query": found.event, "note_query": found.note}
        assert queries == vector["result"], vector["text"]
    for arguments, expected in vectors["spaced_sample"].items():
        assert spaced(*json.loads(arguments.replace("(", "[").replace(")", "]"))) == expected
    index = Index()
    for value in (0.8, 1.0, 1.0):  # e1, e2, e3
        row = np.array([[value, (1 - value**2) ** 0.5]], dtype=np.float16)
        index.add(Block(vectors=row, first_window=np.array([0, 1], np.int32), **term_arrays(["x"], {})))
    hits = index.search(np.array([1.0, 0.0], np.float32), None, None, top=3)
    found = [[rank, f"e{hit.block + 1}", hit.score] for rank, hit in enumerate(hits, 1)]
    assert found == [[rank, name, pytest.approx(score, abs=1e-3)] for rank, name, score in vectors["search_order_ties"]]


LISTS = st.lists(st.lists(st.integers(0, 15), max_size=6, unique=True), min_size=1, max_size=5)


@given(LISTS)
def test_merging_keeps_the_budget_and_repeats_nothing(lists: list[list[int]]) -> None:
    merged = merge(lists)
    entries = [entry for _, entry, _ in merged]
    assert len(entries) == len(set(entries)) <= 6
    assert sum(limits(len(lists), 6, 2, parity=False)) == 6
    assert all(lists[query][rank - 1] == entry for query, entry, rank in merged)
    if len(lists) <= 3:
        assert merged == merge(lists, parity=True)  # where the published code keeps the budget, it is the same


def test_entries_that_an_earlier_one_shows_are_passed_over() -> None:
    assert [entry for _, entry, _ in merge([[4, 5, 6], [3, 8]], shows=lambda e: (e - 1, e, e + 1))] == [4, 6, 8]


def test_null_queries_and_empty_bundles_by_default() -> None:
    assert parse_bundle('{"raw_state_queries": [" a  b"], "event_query": null}') == Bundle(("a b",), source="model")
    with pytest.raises(ValueError, match="no query"):
        parse_bundle('{"raw_state_queries": [], "event_query": " "}')
    thought = "<think>{'raw_state_queries': ...} or {x}?</think>\n" + '{"raw_state_queries": ["a"]}'
    assert parse_bundle(thought) == Bundle(("a",), source="model")
    assert parse_bundle('<think>{"raw_state_queries": ["all that there is"]}').raw == ("all that there is",)


@pytest.mark.parametrize(
    ("question", "raw", "event"),
    [
        ("Which tab comes first on the account page?\n\nMark it in \\boxed{}.", [], False),
        ("After I click `Archive`, what does the page show?", [], True),
        ("What happens when I press the red button?", [], True),
        ("Comparing `Basic Plan` and `Team Plan`, which is dearer?", ["Basic Plan", "Team Plan"], False),
        ("Is the Sales Laptop dearer than the `sales laptop` or the Team Desk?", ["Sales Laptop", "Team Desk"], False),
        ("Which is it?\nA. `Not Asked`\nB. `Also Not`\n", [], False),
    ],
)
def test_rules_ask_for_what_the_question_names(question: str, raw: list[str], event: bool) -> None:
    bundle = RulesPlanner().plan(question, lambda: pytest.fail("rules look at the question alone"))
    assert list(bundle.raw[1:]) == raw
    assert "boxed" not in bundle.raw[0]
    assert (bundle.event == bundle.raw[0]) is event
    assert bundle.note == bundle.raw[0]


BUNDLE = json.dumps(
    {"raw_state_queries": ["Copper Kettle price"], "event_query": "add to cart", "note_query": "buying"}
)


def memory(runbook: Runbook, planner: Any = None, count: int = N, library: Library | None = None) -> RunbookMemory:
    held = RunbookMemory(
        library or Library(Store(None), Hashing(128)), runbook, RetrievalConfig(), planner or RulesPlanner()
    )
    for number in range(count):
        held.insert(trajectory_from(lme_world.trajectory(number), "row"))
    return held


def planner_of(url: str, parity: bool = False) -> ModelPlanner:
    return ModelPlanner(Endpoint(url, "scripted", retries=0), parity)


def test_notes_then_events_then_pages_and_only_the_pools_there_are() -> None:
    class Fixed(RulesPlanner):
        def plan(self, question: str, summary: Callable[[], str]) -> Bundle:
            return Bundle(("Granite Mortar price", "Cart"), "press Add to Cart", "buying a mortar")

    heads = {"notes": "Notes from earlier runs", "events": "What single actions did", "slices": "Pages that were seen"}
    for name, pools in variants().items():
        text = "\n".join(item.value for item in memory(Runbook(pools), Fixed()).query("anything"))
        places = [text.find(heads[pool]) for pool in ("notes", "events", "slices") if pool in pools]
        assert places == sorted(places), name
        assert min(places) >= 0, name
        assert all((head in text) == (pool in pools) for pool, head in heads.items()), name
    earlier: set[tuple[str, int]] = set()
    pages = [item for item in memory(Runbook(), Fixed()).query("anything") if item.value.startswith("Found by")]
    assert 1 < len(pages) <= 6
    for page in pages:
        middle = re.search(r"middle state is (\d+)", page.value)
        assert middle is not None
        assert (page.shows[0][0], int(middle.group(1))) not in earlier
        earlier.update(page.shows)


@pytest.mark.parametrize(
    ("replies", "source", "calls"),
    [
        ([BUNDLE], "model", 1),
        (['{"raw_state_queries": ["x"], "event_query": null}'], "model", 1),
        (["let me see", BUNDLE], "repaired", 2),
        (["", BUNDLE], "repaired", 2),
        (["no", "still no"], "fallback", 2),
        (["", ""], "fallback", 2),
    ],
)
def test_the_controller_is_asked_twice_at_most_with_the_published_sampling(
    replies: list[str], source: str, calls: int
) -> None:
    left = list(replies)
    with ScriptedEndpoint(lambda messages: left.pop(0)) as endpoint:
        gathered = memory(Runbook(), planner_of(endpoint.url)).query("Where is it?\nPut it in \\boxed{}.")
        bodies = [json.loads(body) for body in endpoint.bodies]
    assert gathered.report["bundle"]["source"] == source
    assert len(bodies) == calls
    assert {name: bodies[0][name] for name in ("temperature", "top_p", "top_k", "max_tokens")} == {
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 20,
        "max_tokens": 8192,
    }
    assert [body.get("chat_template_kwargs") for body in bodies] == [None, {"enable_thinking": False}][:calls]
    prompt = bodies[0]["messages"][1]["content"]
    assert "Put the Copper Kettle into the cart" in prompt  # a goal of the summary
    assert "- Cart" in prompt  # a title
    assert "Procedure notes: 6" in prompt
    if source == "fallback":
        assert gathered.report["bundle"] == {
            "raw": ("Where is it?",),
            "event": "Where is it?",
            "note": "Where is it?",
            "source": "fallback",
        }
        assert fallback("Q?", parity=True) == Bundle(("Q?",), source="fallback")


def write_or_plan(messages: list[dict[str, str]]) -> str:
    """A model that writes notes, events and bundles, told apart by what is asked of it."""
    asked = messages[0]["content"]
    if "raw_state_queries" in asked:
        return BUNDLE
    note = {"title": "T", "description": "D", "content": "C"}
    return json.dumps({"procedure": note, "hint": note} if "procedure" in asked else {"overview": "o", "change": "c"})


def command(world: Path, out: Path, url: str, *more: str) -> list[str]:
    base = ["--data", str(world), "--out", str(out), "--cache", str(world.parent / "cache"), "--embedder", "hashing"]
    models = ["--writer", "w", "--writer-base-url", url, "--controller", "c", "--controller-base-url", url]
    return [*base, *models, "--system", "agentrunbook_r", "--reader", "extractive", *more]


def rows_of(out: Path, system: str = "agentrunbook_r") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / system / "rows.jsonl").read_text().splitlines()]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    rows = [lme_world.question(number) for number in range(N)]
    for number, row in enumerate(rows):
        row |= {"id": f"idcanary{number}", "answer": f"goldcanary{number}"}
    rows[0]["image"] = "question_screenshots/idcanary0.png"
    return lme_world.write(tmp_path / "data", [lme_world.trajectory(number) for number in range(N)], rows)


def test_inserting_42_trajectories_again_calls_no_model() -> None:
    store = Store(None)
    runs = [trajectory_from(lme_world.trajectory(number), "row") for number in range(42)]
    with ScriptedEndpoint(write_or_plan) as endpoint:
        for calls in (42 * 3, 0):  # two events and one reply with both notes a run; then none
            before = endpoint.count
            writer = ModelWriter(Endpoint(endpoint.url, "scripted"))
            held = memory(Runbook(), count=0, library=Library(store, Hashing(64), writer))
            held.warm(runs)
            for run in runs:
                held.insert(run)
            assert endpoint.count - before == calls


def test_other_ablations_write_nothing_anew_and_the_controller_sees_the_question_alone(
    world: Path, tmp_path: Path
) -> None:
    with ScriptedEndpoint(write_or_plan) as endpoint:
        assert lme.run(command(world, tmp_path / "a", endpoint.url)) == 0
        assert endpoint.count == N * 2 + N + N  # events, notes, one bundle a question
        assert lme.run(command(world, tmp_path / "b", endpoint.url, "--system", "agentrunbook_r*")) == 0
        assert endpoint.count == 4 * N + 7 * N  # bundles alone, for seven systems
        sent = "\n".join(endpoint.bodies)
    assert rows_of(tmp_path / "a")[0]["gathered"]["bundle"]["source"] == "model"
    assert "Copper Kettle` show" in sent
    for secret in (
        "idcanary",
        "goldcanary",
        "static-environment",
        "norm_phrase",
        str(tmp_path),
        "question_screenshots",
    ):
        assert secret not in sent, secret


def test_an_endpoint_that_fails_a_query_leaves_its_row_unscored(world: Path, tmp_path: Path) -> None:
    def fault(messages: list[dict[str, str]], count: int) -> str | None:
        return "html" if "page of the `Granite Mortar`" in messages[-1]["content"] else None

    with ScriptedEndpoint(write_or_plan, fault) as endpoint:
        assert lme.run(command(world, tmp_path / "a", endpoint.url)) == 3
    reasons = [row["unscored_reason"] for row in rows_of(tmp_path / "a")]
    assert [reason is None for reason in reasons] == [True, True, True, False, True, True]
    assert "memory: Garbled: not JSON (text/html)" in reasons[3]


def test_an_over_long_trajectory_is_written_by_the_template_and_the_run_goes_on(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault(messages: list[dict[str, str]], count: int) -> str | None:
        written = "raw_state_queries" not in messages[0]["content"]
        return "window" if written and "Put the Walnut Desk" in messages[1]["content"] else None

    with ScriptedEndpoint(write_or_plan, fault) as endpoint:
        assert lme.run(command(world, tmp_path / "a", endpoint.url)) == 0
        # beside the bundles, the two events and the notes of one trajectory were refused long and short
        assert endpoint.count == 4 * N + 3
    memories = json.loads((tmp_path / "a/agentrunbook_r/memories.json").read_text())
    assert [entry["template_fallbacks"] for entry in memories] == [4]  # two events, two notes

    with ScriptedEndpoint(write_or_plan, lambda messages, count: "html") as endpoint:
        other = command(world, tmp_path / "b", endpoint.url, "--cache", str(tmp_path / "other"))
        assert lme.run(other) == 2  # not over-long but broken: templates would take the model's place unseen
    assert "the same command resumes" in capsys.readouterr().err


def test_a_writer_that_takes_pictures_is_shown_those_of_the_pages(world: Path, tmp_path: Path) -> None:
    with ScriptedEndpoint(write_or_plan) as endpoint:
        arguments = command(world, tmp_path / "a", endpoint.url, "--writer-images")
        assert lme.run(arguments) == 2  # the screenshots are missing
        for number in range(N):
            for state in lme_world.trajectory(number)["states"]:
                (world / state["screenshot"]).parent.mkdir(parents=True, exist_ok=True)
                (world / state["screenshot"]).write_bytes(lme_world.PNG)
        endpoint.bodies.clear()
        assert lme.run(arguments) == 0
        pictures = [body.count('"image_url": {"url"') for body in endpoint.bodies]
    assert sorted(pictures) == [0] * N + [2] * 2 * N + [3] * N  # bundles, events, notes


def test_parity_embeds_the_beginning_of_three_pages_once(world: Path, tmp_path: Path) -> None:
    with ScriptedEndpoint(write_or_plan) as endpoint:
        assert lme.run(command(world, tmp_path / "a", endpoint.url, "--parity")) == 0
    run = json.loads((tmp_path / "a/agentrunbook_r/run.json").read_text())
    assert run["settings"]["library"]["one_vector"] == [1, 40_000, 4096]
    assert run["settings"]["retrieval"]["mode"] == "dense"
    library = PublishedLibrary(Store(None), Hashing(64))
    record = lme_world.trajectory(0)
    record["states"][0]["accessibility_tree"] = "RootWebArea 'Long'\n" + "word " * 6000
    run_of = trajectory_from(record, "row")
    library.number("slice", run_of)
    assert library.embedded == 2  # of three slices, the first two begin with the long page: nothing else is read
    assert library._windows(["x" * 90_000])[0].count("x") == 12_288 == 3 * 4096


def test_the_same_bundle_gives_more_pages_with_parity() -> None:
    class Five(RulesPlanner):
        def plan(self, question: str, summary: Callable[[], str]) -> Bundle:
            return Bundle(lme_world.PRODUCTS[:5])

    def pages(parity: bool) -> int:
        items = memory(Runbook(parity=parity), Five()).query("anything")
        return sum(item.value.startswith("Found by") for item in items)

    assert (pages(parity=False), pages(parity=True)) == (6, 10)
