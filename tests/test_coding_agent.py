"""Codex and AgentRunbook-C: files, helper, output, attempts, what the agent sees, and what its commands were for."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import agent_tools, lme
from eval.baselines.coding import inspect_trajectory
from eval.baselines.coding.accounting import Kind, kind_of
from eval.baselines.coding.engine_tools import DROPPED, ToolLoop, _shorten
from eval.baselines.coding.gateway import serving
from eval.baselines.coding.output import FILE, BadOutput, Output, Span, existing, joined, parse, validate
from eval.baselines.coding.scripted import Policy, ScriptedModel, librarian
from eval.baselines.coding.workspace import RunStore, concise, simplified, workspace
from lme_v2_env.chat import Endpoint
from lme_v2_env.dataset import TrajectoryFile
from lme_v2_env.memory.slices import annotated_actions
from lme_v2_env.trajectory import trajectory_from
from rewards.errors import UserError
from tests import lme_world
from tests.conftest import _folder
from tests.sandboxed import needs_sandbox
from tests.test_lme_data import parity as parity

N = 3
HELPER = Path(inspect_trajectory.__file__)


def rows_of(out: Path, system: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / system / "rows.jsonl").read_text().split("\n")[:-1]]


def play(world: Path, out: Path, policy: Policy, *more: str, system: str = "agentrunbook_c") -> ScriptedModel:
    """A run in which the policy is the agent's model."""
    base = ["--data", str(world), "--out", str(out), "--cache", str(world.parent / "cache"), "--retrieval", "bm25"]
    base += ["--reader", "extractive", "--system", system, "--agent", "policy"]
    with ScriptedModel(policy) as model:
        assert lme.run([*base, "--agent-base-url", model.url, *more]) == 0
    return model


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return lme_world.write(tmp_path / "data", [lme_world.trajectory(number) for number in range(N)])


def test_output_validation_is_the_published_one(parity: dict[str, Any]) -> None:
    def result(payload: Any) -> Any:
        try:
            found = validate(payload, parity=True)
        except BadOutput as error:
            return f"INVALID: {error}"
        spans = [
            {"trajectory_id": s.trajectory_id, "start_state_index": s.start, "end_state_index": s.end}
            for s in found.spans
        ]
        return {"memory_markdown": found.markdown, "trajectory_spans": spans}

    for vector in parity["agentrunbook_c"]["validate_output"]:
        assert result(vector["payload"]) == vector["result"]


def test_a_state_counts_once_and_spans_that_do_not_exist_are_dropped() -> None:
    span = {"trajectory_id": "t", "start_state_index": 0, "end_state_index": 14}
    payload = {"memory_markdown": "", "trajectory_spans": [span, span | {"start_state_index": 10}]}
    assert validate(payload) == Output("", (Span("t", 0, 14),))
    with pytest.raises(BadOutput, match="total state budget: 30 > 20"):
        validate(payload | {"trajectory_spans": [span, span | {"trajectory_id": "u"}]}, parity=True)
    kept, dropped = existing([Span("t", 0, 2), Span("t", 1, 3), Span("x", 0, 0)], {"t": 3})
    assert kept == [Span("t", 0, 2)]
    assert dropped == [
        (Span("t", 1, 3), "the trajectory ends at state 2"),
        (Span("x", 0, 0), "no such trajectory"),
    ]
    huge = {"memory_markdown": "", "trajectory_spans": [span | {"end_state_index": 10**4300 - 1}]}
    odd = {"memory_markdown": "\ud800", "trajectory_spans": [span | {"trajectory_id": "\ud800"}]}
    assert parse(json.dumps(odd).encode()) == Output("?", (Span("?", 0, 14),))
    for data in (
        json.dumps(huge).encode(),
        b"{",
        b"9" * 5000,
        b"\xff",
        b"[" * 100_000,
        b'{"memory_markdown": "", "trajectory_spans": [7]}',
    ):
        with pytest.raises(BadOutput):
            parse(data)


@given(
    st.lists(
        st.builds(lambda name, a, n: Span(name, a, a + n), st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 4))
    )
)
def test_joined_spans_hold_the_same_states_once(spans: list[Span]) -> None:
    def states(given: Sequence[Span]) -> list[tuple[str, int]]:
        return [(span.trajectory_id, index) for span in given for index in range(span.start, span.end + 1)]

    assert sorted(states(joined(spans))) == sorted(set(states(spans)))
    places = [min(n for n, span in enumerate(spans) if set(states([span])) <= set(states([j]))) for j in joined(spans)]
    assert places == sorted(places)


def test_a_file_full_of_spans_is_refused_at_once() -> None:
    spans = [{"trajectory_id": "t", "start_state_index": 2 * n, "end_state_index": 2 * n} for n in range(13_000)]
    started = time.process_time()
    with pytest.raises(BadOutput, match="13000 > 20"):
        validate({"memory_markdown": "", "trajectory_spans": spans})
    assert time.process_time() - started < 1


def test_the_helper_names_the_element_as_it_was_before_the_action(parity: dict[str, Any]) -> None:
    vectors = parity["trajectory"]
    states = simplified(trajectory_from(vectors["toy_trajectory"], "toy"), {})["states"]
    assert inspect_trajectory.annotated(states) == ["", *vectors["annotated_transition_actions"]]


def test_the_helper_agrees_with_the_rest_of_the_harness_on_real_runs(tmp_path: Path) -> None:
    file = _folder("workarena_trajectories", "real WorkArena runs") / "trajectories.jsonl.xz"
    runs = TrajectoryFile.open(file, tmp_path)
    for trajectory in runs.read(runs.ids):
        states = simplified(trajectory, {})["states"]
        assert inspect_trajectory.annotated(states)[1:] == annotated_actions(trajectory.states)


@pytest.fixture(scope="module")
def look(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the helper as the agent does, on a run with a long page."""
    folder = tmp_path_factory.mktemp("helper")
    row = lme_world.trajectory(1)
    row["states"][2]["accessibility_tree"] += (
        "\n\t[40] StaticText 'cart line'" * 30 + "\n\t[99] text '" + "x" * 400 + "'"
    )
    row["states"][2]["thought"] = "t" * 300
    trajectory = trajectory_from(row, "row")
    (folder / trajectory.id).mkdir()
    (folder / trajectory.id / "trajectory.json").write_text(json.dumps(simplified(trajectory, {})))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", str(HELPER), trajectory.id, "--trajectories-dir", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_the_helper_shows_a_run_a_state_a_span_and_matches(look: Callable[..., Any]) -> None:
    assert look().stdout.count("led here:") == 3
    one = look("--state", "1").stdout
    assert "led here: click('51')  # [51] link 'Walnut Desk'" in one
    assert "heading 'Walnut Desk'" in one
    assert "== state 0" not in one
    assert [n in look("--span", "0:1").stdout for n in ("== state 0", "== state 1", "== state 2")] == [
        True,
        True,
        False,
    ]
    found = look("--match", "CART LINE|x{9}").stdout
    assert "== state 2: 31 matching" in found
    assert found.count("cart line") == 8
    assert (
        "thought here, about the next action: " + "t" * 240 + " ... (60 more characters)" in look("--state", "2").stdout
    )
    assert "(162 more characters)" in look("--match", "xxxx", "--max-match-line-chars", "250").stdout
    assert "led here: click('51')" in look("--match", "walnut desk", "--max-match-lines", "1").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--state", "3"), "the states are 0 to 2"),
        (("--span", "2:1"), "the states are 0 to 2"),
        (("--span", "x"), "two state numbers"),
        (("--match", "("), "no regular expression"),
        (("--state", "0", "--match", "x"), "not allowed with"),
    ],
)
def test_the_helper_refuses_what_is_not_there(
    look: Callable[..., Any], arguments: tuple[str, ...], message: str
) -> None:
    done = look(*arguments)
    assert done.returncode != 0
    assert message in done.stderr


def test_the_second_insert_writes_nothing_and_calls_no_model(world: Path, tmp_path: Path) -> None:
    needs_sandbox()

    def files() -> dict[str, tuple[int, int]]:
        found = {}
        for file in (tmp_path / "cache" / "files").rglob("*"):
            status = file.stat()
            found[str(file)] = (status.st_ino, status.st_mtime_ns)
        return found

    first = play(world, tmp_path / "first", librarian, "--limit", "1")
    before = files()
    second = play(world, tmp_path / "second", librarian, "--limit", "1")
    assert files() == before
    # a question takes five replies: four commands and the end; an insert takes none
    assert len(first.bodies) == len(second.bodies) == 5
    rows = rows_of(tmp_path / "second", "agentrunbook_c")
    assert [(row["correct"], row["evidence"]["state"]) for row in rows] == [(True, 1.0)]


def test_a_run_is_written_once_and_shared_by_workspaces(tmp_path: Path) -> None:
    store = RunStore(tmp_path, None)
    runs = [store.put(trajectory_from(lme_world.trajectory(n), "row")) for n in (2, 0, 1)]
    assert store.written == 3
    both = [workspace(tmp_path, runs), workspace(tmp_path, runs[:2])]
    again = RunStore(tmp_path, None)
    assert [again.put(trajectory_from(lme_world.trajectory(n), "row")) for n in (2, 0, 1)] == runs
    assert again.written == 0
    inodes = {(place / "trajectories/00000002/trajectory.json").stat().st_ino for place in both}
    assert len(inodes) == 1
    assert sorted(os.listdir(both[1] / "trajectories")) == ["00000000", "00000002"]
    full = (both[0] / "TRAJECTORY_SUMMARY_FULL.md").read_text()
    assert (
        "1. click('51') # [51] link 'Walnut Desk'\n2. click('22') # [22] button 'Add to Cart'\noutcome: failure" in full
    )


def test_names_and_cells_from_trajectories_are_harmless(tmp_path: Path) -> None:
    for name in ("../../etc", "/abs", "a/b", ".hidden", "x" * 101, "a\nb"):
        with pytest.raises(UserError, match="cannot name a folder"):
            RunStore(tmp_path, None).put(trajectory_from(lme_world.trajectory(0, name), "row"))
    assert not list(tmp_path.iterdir())
    row = lme_world.trajectory(0) | {"goal": "buy | sell\n| 9 | fake | row |"}
    _, card = RunStore(tmp_path, None).put(trajectory_from(row, "row"))
    assert len(concise([card]).splitlines()) == 3
    assert "buy \\| sell" in concise([card])


MANIFESTS = {"TRAJECTORY_SUMMARY_CONCISE.md", "TRAJECTORY_SUMMARY_FULL.md"}
BASE = {"INSTRUCTION.md", "question.json", "trajectories"}


def test_each_system_is_given_what_it_is_named_after(world: Path, tmp_path: Path) -> None:
    needs_sandbox()
    seen: list[Sequence[str]] = []

    def policy(outputs: Sequence[str]) -> str | None:
        if len(outputs) == 2:
            seen.append(outputs)
        return [
            "ls",
            "cat INSTRUCTION.md",
            f'echo \'{{"memory_markdown": "", "trajectory_spans": []}}\' > {FILE}',
            None,
        ][len(outputs)]

    names = [
        "codex",
        "agentrunbook_c",
        *(f"agentrunbook_c_no_{part}" for part in ("instruction", "manifests", "helper")),
    ]
    play(world, tmp_path / "out", policy, "--limit", "1", system="codex,agentrunbook_c*")
    folders = [set(outputs[0].split("\n")) - {"(exit status 0)"} for outputs in seen]
    assert dict(zip(names, folders, strict=True)) == {
        "codex": BASE | {"index.json", "haystack_manifest.json"},
        "agentrunbook_c": BASE | MANIFESTS | {"scripts"},
        "agentrunbook_c_no_instruction": BASE | MANIFESTS | {"scripts"},
        "agentrunbook_c_no_manifests": BASE | {"scripts"},
        "agentrunbook_c_no_helper": BASE | MANIFESTS,
    }
    workflow = ["How to go about it" in outputs[1] for outputs in seen]
    assert workflow == [False, True, False, True, True]
    for outputs, folder in zip(seen, folders, strict=True):
        named = {name for name in MANIFESTS | {"index.json"} if name in outputs[1]}
        assert named == folder & (MANIFESTS | {"index.json"})
        assert ("inspect_trajectory.py" in outputs[1]) == ("scripts" in folder)
        assert "@" not in outputs[1]


def test_bad_files_are_tried_three_times_and_then_the_row_says_why(world: Path, tmp_path: Path) -> None:
    needs_sandbox()
    span = {"trajectory_id": "00000001", "start_state_index": 0, "end_state_index": 25}
    good = {
        "memory_markdown": "found",
        "trajectory_spans": [span | {"end_state_index": 1}, span | {"end_state_index": 9}],
    }
    files = {
        0: ["not JSON", json.dumps({"memory_markdown": "", "trajectory_spans": [span]}), json.dumps(good)],
        1: ["{}"] * 3,
        2: [json.dumps(good)],
    }
    asked = dict.fromkeys(range(N), 0)

    def policy(outputs: Sequence[str]) -> str | None:
        if not outputs:
            return "cat question.json"
        number = next(n for n in range(N) if lme_world.PRODUCTS[n] in outputs[0])
        if len(outputs) > 1:
            return None
        asked[number] += 1
        return f"cat > {FILE} <<'END'\n{files[number][asked[number] - 1]}\nEND"

    play(world, tmp_path / "out", policy)
    rows = rows_of(tmp_path / "out", "agentrunbook_c")
    assert [row["scored"] for row in rows] == [True] * N
    reports = [row["gathered"] for row in rows]
    faults = [[attempt["fault"] or "" for attempt in report["attempts"]] for report in reports]
    assert "output file: not JSON" in faults[0][0]
    assert "exceed the total state budget: 26 > 20" in faults[0][1]
    assert faults[0][2] == ""
    assert [len(found) for found in faults] == [3, 3, 1]
    assert "memory_markdown must be a string; ended by: done" in reports[1]["empty_because"]
    assert (rows[1]["context"], rows[1]["correct"]) == ([], False)
    # joined with what reaches past the end, a span falls with it: nothing is clipped
    assert reports[2]["spans_dropped"] == [["00000001", 0, 9, "the trajectory ends at state 2"]]


def test_a_file_that_is_there_when_the_time_is_up_counts(world: Path, tmp_path: Path) -> None:
    needs_sandbox()

    def policy(outputs: Sequence[str]) -> str | None:
        return "sleep 30" if outputs else f'echo \'{{"memory_markdown": "early", "trajectory_spans": []}}\' > {FILE}'

    play(world, tmp_path / "out", policy, "--limit", "1", "--agent-seconds", "1")
    report = rows_of(tmp_path / "out", "agentrunbook_c")[0]["gathered"]
    assert (report["empty_because"], report["attempts"][0]["ended"]) == (None, "time limit")

    play(
        world, tmp_path / "turns", lambda outputs: "true", "--limit", "1", "--agent-turns", "2", "--agent-attempts", "1"
    )
    report = rows_of(tmp_path / "turns", "agentrunbook_c")[0]["gathered"]
    assert report["empty_because"] == "output file: missing; ended by: turn limit"


def test_a_model_that_cannot_be_reached_leaves_the_row_unscored(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_sandbox()
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    arguments = ["--data", str(world), "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    arguments += ["--retrieval", "bm25", "--reader", "extractive", "--system", "codex", "--limit", "1"]
    assert lme.run([*arguments, "--agent", "gone", "--agent-base-url", f"http://127.0.0.1:{port}/v1"]) == 3
    row = rows_of(tmp_path / "out", "codex")[0]
    assert not row["scored"]
    assert "memory: EndpointError: the agent's model: ConnectError" in row["unscored_reason"]


def test_the_agent_sees_neither_gold_nor_id_nor_type_nor_path(tmp_path: Path) -> None:
    needs_sandbox()
    rows = [lme_world.question(number) for number in range(N)]
    for number, row in enumerate(rows):
        row |= {"id": f"idcanary{number}", "answer": f"goldcanary{number}"}
    rows[0]["image"] = "question_screenshots/idcanary0.png"
    trajectories = [lme_world.trajectory(number) for number in range(N)]
    world = lme_world.write(tmp_path / "data", trajectories, rows)
    for name in (rows[0]["image"], *(s["screenshot"] for t in trajectories for s in t["states"])):
        (world / name).parent.mkdir(parents=True, exist_ok=True)
        (world / name).write_bytes(lme_world.PNG)
    steps = [
        "cat question.json INSTRUCTION.md; ls -laR . /tmp; cat *.json *.md /proc/mounts /proc/*/cmdline | tr '\\0' ' '",
        f'echo \'{{"memory_markdown": "", "trajectory_spans": []}}\' > {FILE}',
    ]

    def policy(outputs: Sequence[str]) -> str | None:
        return [*steps, None][len(outputs)]

    sent = ""
    for system in ("codex", "agentrunbook_c"):
        with ScriptedModel(policy) as model:
            arguments = ["--data", str(world), "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
            arguments += ["--retrieval", "bm25", "--reader", "policy", "--reader-tokenizer", "estimate", "--images"]
            arguments += ["--base-url", model.url, "--agent", "policy", "--agent-base-url", model.url]
            lme.run([*arguments, "--system", system])
        sent += "\n".join(body for body in model.bodies if '"tools"' in body)
    assert "question_image.png" in sent
    assert "0002.png" in sent
    assert rows[1]["question"].split("\n")[0] in sent
    assert (
        sent.replace(" ", "").count('"image_url":{') == 2 * 3
    )  # the question's picture in each of its three requests, twice
    for secret in (
        "idcanary",
        "goldcanary",
        "static-environment",
        "norm_phrase",
        "question_screenshots",
        tmp_path.name,
    ):
        assert secret not in sent, secret


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("cat INSTRUCTION.md question.json", Kind.SETUP),
        ("ls -la", Kind.SETUP),
        ("ls trajectories | head", Kind.RAW),
        ("ls trajectories", Kind.SETUP),
        ("python3 scripts/inspect_trajectory.py --help", Kind.SETUP),
        ("sed -n 1,80p scripts/inspect_trajectory.py", Kind.SETUP),
        ("cat TRAJECTORY_SUMMARY_CONCISE.md | grep -i laptop", Kind.GUIDED),
        ("python3 scripts/inspect_trajectory.py ab12 --span 1:3", Kind.GUIDED),
        ("rg -l Macbook trajectories", Kind.RAW),
        ("jq '.states[3].text' trajectories/ab12/trajectory.json", Kind.RAW),
        ("python3 - <<'E'\nimport json; json.load(open('trajectories/a/trajectory.json'))\nE", Kind.RAW),
        ("file trajectories/ab12/screenshots/0003.png", Kind.VISUAL),
        ("python3 -c \"from PIL import Image; Image.open('question_image.png')\"", Kind.VISUAL),
        (f"cat > {FILE} <<'E'\n{{}}\nE", Kind.OUTPUT),
        (f"python3 -m json.tool {FILE}", Kind.OUTPUT),
        ("date", Kind.OTHER),
    ],
)
def test_every_command_has_one_kind(command: str, kind: Kind) -> None:
    assert kind_of(command) is kind


def test_the_report_counts_commands_by_kind_and_round(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_sandbox()
    play(world, tmp_path / "out", librarian, "--limit", "1", system="codex,agentrunbook_c")
    capsys.readouterr()
    folders = [str(tmp_path / "out" / name) for name in ("codex", "agentrunbook_c")]
    assert agent_tools.run([*folders, "--plot", str(tmp_path / "tools.svg")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.split("\n")]
    kinds = [str(kind) for kind in Kind]
    codex = dict(zip(kinds, lines[2][2:], strict=True))
    runbook = dict(zip(kinds, lines[3][2:], strict=True))
    assert (codex["raw exploration"], codex["guided retrieval"]) == ("2.0", "0.0")
    assert (runbook["raw exploration"], runbook["guided retrieval"]) == ("0.0", "2.0")
    assert ["agentrunbook_c", "4", "100%", "0%", "0%", "0%", "0%", "0%"] in lines
    assert (tmp_path / "tools.svg").stat().st_size > 1000
    assert agent_tools.run([str(tmp_path / "nowhere")]) == 2


class Replies(ScriptedModel):
    """A model whose messages are given; afterwards it is done."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        super().__init__()
        self.left = list(messages)

    def chat(self, body: dict[str, Any]) -> str:
        return json.dumps({"choices": [{"message": self.left.pop(0) if self.left else {"content": "done"}}]})


def shell_call(command: str) -> dict[str, Any]:
    return {"id": "1", "function": {"name": "shell", "arguments": json.dumps({"command": command})}}


def test_odd_tool_calls_are_told_to_the_model_and_a_long_list_of_calls_ends_in_time() -> None:
    needs_sandbox()
    odd = [{"function": "shell"}, {"function": {"name": "shell", "arguments": {"command": "ls"}}}, None]
    write = f"""echo '{{"memory_markdown": "", "trajectory_spans": []}}' > {FILE}"""
    messages = [
        {"tool_calls": 5},
        {"tool_calls": odd},
        {"content": "\ud800", "tool_calls": [shell_call("echo \ud800"), shell_call(write)]},
    ]
    with Replies(*messages) as model:
        effort = ToolLoop(Endpoint(model.url, "m", retries=0)).attempt([], 20.0, None)
    assert (effort.ended, effort.failure, len(effort.commands)) == ("done", "", 2)
    assert model.bodies[-1].count("error: call the tool shell") == 2
    with Replies({"tool_calls": [shell_call("sleep 0.4")] * 40}) as model:
        started = time.monotonic()
        effort = ToolLoop(Endpoint(model.url, "m", retries=0)).attempt([], 1.0, None)
    assert effort.ended == "time limit"
    assert time.monotonic() - started < 3


def test_old_outputs_make_room_for_new_ones() -> None:
    messages = [{"role": "tool", "content": str(number) * 100} for number in range(5)]
    _shorten(messages, 320)
    assert [message["content"] == DROPPED for message in messages] == [True, True, True, False, False]


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ScriptedModel, Path]]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-keycanary")
    with ScriptedModel(lambda outputs: None) as model, serving(tmp_path / "s", model.url, "m", "OPENAI_API_KEY"):
        yield model, tmp_path / "s"


def _ask(place: Path, method: str, path: str, body: Any = None) -> str:
    data = json.dumps({} if body is None else body).encode()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
        client.sendall(f"{method} {path} HTTP/1.0\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        return b"".join(iter(lambda: client.recv(1 << 16), b"")).decode()


def test_the_gateway_lets_responses_pass_and_nothing_else(gate: tuple[ScriptedModel, Path]) -> None:
    model, place = gate
    own = {"type": "function", "name": "exec_command"}
    tools = [{"type": "web_search"}, own, {"type": "namespace", "tools": [{"type": "mcp"}, own]}, "web_search"]
    reply = _ask(place, "POST", "/v1/responses", {"input": [], "tools": tools, "model": "dearer"})
    assert "response.completed" in reply
    sent = json.loads(model.bodies[0])
    assert (sent["tools"], sent["model"]) == ([own, {"type": "namespace", "tools": [own]}], "m")
    assert model.headers[0]["Authorization"] == "Bearer sk-keycanary"
    assert "keycanary" not in reply
    away = [{"content": [{"type": "input_image", "image_url": "https://elsewhere/?q=gold"}]}]
    for body in (
        {"input": away},
        {"input": [], "previous_response_id": "resp_1"},
        [],
        {"input": [{"file_url": "//x"}]},
    ):
        assert " 403 " in _ask(place, "POST", "/v1/responses", body).split("\r\n")[0]
    for method, path in (("POST", "/v1/files"), ("GET", "/v1/files"), ("POST", "http://elsewhere/v1/chat/completions")):
        assert " 403 " in _ask(place, method, path).split("\r\n")[0]
    assert len(model.bodies) == 1


def test_the_real_codex_works_in_the_sandbox_without_key_or_network(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_sandbox()
    if shutil.which("codex") is None:
        pytest.skip("codex is not installed: npm install -g @openai/codex (424 MB)")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-keycanary")
    more = ["--limit", "1", "--agent-engine", "codex", "--agent-seconds", "60", "--agent-attempts", "1"]
    seen: list[str] = []

    def policy(outputs: Sequence[str]) -> str | None:
        seen.extend(outputs)
        probe = "env; cat /proc/*/environ; timeout 3 bash -c 'echo > /dev/tcp/1.1.1.1/80' || echo no network"
        return probe if not outputs else librarian(outputs[1:])

    model = play(world, tmp_path / "out", policy, *more)
    row = rows_of(tmp_path / "out", "agentrunbook_c")[0]
    assert (row["correct"], row["gathered"]["empty_because"]) == (True, None)
    assert row["gathered"]["tools"]["commands"] == {"other": 1, "setup": 1, "guided retrieval": 2, "output": 1}
    assert "no network" in seen[0]
    assert "keycanary" not in "".join(model.bodies)
    assert {headers["Authorization"] for headers in model.headers} == {"Bearer sk-keycanary"}
