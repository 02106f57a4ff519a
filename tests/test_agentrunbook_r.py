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
from lme_v2_env.chat import Endpoint
from lme_v2_env.memory.api import RetrievalConfig
from lme_v2_env.memory.embed import Hashing
from lme_v2_env.memory.index import Block, Index, term_arrays
from lme_v2_env.memory.library import Library
from lme_v2_env.memory.store import Store
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


BUNDLE = json.dumps({"raw_state_queries": ["Copper Kettle price"], "event_query": "add to cart", "note_query": "buying"})


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
    [([BUNDLE], "model", 1), (["let me see", BUNDLE], "repaired", 2), (["no", "still no"], "fallback", 2)],
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
