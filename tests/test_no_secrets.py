"""A key is in no byte that a command writes or says, and nothing in the sources takes code from data."""

from __future__ import annotations

import ast
import html
import json
import socket
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import heldout, judge_audit, lme
from eval.baselines.coding.gateway import serving
from rewards.address import HIDDEN, stream_without_key, without_key
from tests import lme_world
from tests.conftest import ROOT
from tests.episodes import record
from tests.hostile_endpoint import HostileEndpoint
from tests.scripted_endpoint import ScriptedEndpoint

CANARY = "sk-canary-5up3r/s3cr3t+1234"

PACKAGES = ("rewards", "generators", "supersede_env", "lme_v2_env", "eval", "train", "benchmarks")


class Echoing(ScriptedEndpoint):
    """Repeats all headers' key in what it refuses, in each form that servers use; embeddings are refused, too."""

    def reply(self, body: dict) -> tuple[int, str, str]:
        with self._lock:
            self.count += 1
        forms = [CANARY, json.dumps(CANARY), CANARY.replace("/", "%2F").replace("+", "%2B")]
        status = (401, 400, 500, 200)[self.count % 4]
        return status, f"text/plain; key={CANARY}", f"Authorization: Bearer {' '.join(forms)} is refused"


def leaks(folder: Path, said: str) -> list[str]:
    found = [str(path) for path in folder.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]
    return found + (["what was said"] if "canary" in said else [])


def test_no_command_repeats_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Reader, judge, embedder, writer, controller and the audit, against a server that repeats what it refuses."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setattr("lme_v2_env.chat.pause", lambda *_: 0.0)
    (tmp_path / "own.jsonl").write_text(json.dumps(record()) + "\n", encoding="utf-8")
    (tmp_path / "asked.jsonl").write_text('{"question": "q", "gold": "g", "stale": ["s"]}\n' * 3, encoding="utf-8")
    rows = [lme_world.question(number) for number in range(4)]
    rows[1] |= {"question_type": "errors-gotchas", "eval_function": "llm_gotchas_checker"}
    world = lme_world.write(tmp_path / "data", [lme_world.trajectory(number) for number in range(4)], rows)
    common = ["--data", str(world), "--cache", str(tmp_path / "cache"), "--system", "rag_slice", "--reader-tokenizer"]
    common += ["estimate", "--out"]
    with Echoing() as bad, ScriptedEndpoint(lambda messages: "\\boxed{100}") as good:
        judged = ["--judge", "j", "--judge-base-url", bad.url]
        embedded = ["--reader", "extractive", "--no-judge", "--embedder", "e", "--embed-base-url", bad.url]
        refused = ["--model", "m", "--base-url", bad.url, "--data", str(tmp_path / "own.jsonl"), "--out"]
        statuses = [
            heldout.run([*refused, str(tmp_path / "facts"), "--system", "facts"]),
            heldout.run([*refused, str(tmp_path / "copy"), "--system", "copy_last"]),
            lme.run([*common, str(tmp_path / "reader"), "--retrieval", "bm25", "--base-url", bad.url, *judged]),
            lme.run([*common, str(tmp_path / "judge"), "--retrieval", "bm25", "--base-url", good.url, *judged]),
            lme.run([*common, str(tmp_path / "embed"), *embedded]),
            judge_audit.run(
                ["--base-url", bad.url, "--model", "m", "--rows", str(tmp_path / "asked.jsonl"), "--limit", "3"]
            ),
        ]
    assert statuses == [3, 3, 3, 3, 2, 3]
    said = "".join(capfd.readouterr())
    assert HIDDEN in said  # the servers' words were repeated, without the key
    assert leaks(tmp_path, said) == []


def test_a_key_in_a_reply_that_is_taken_goes_into_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    (tmp_path / "own.jsonl").write_text(json.dumps(record()) + "\n", encoding="utf-8")
    with HostileEndpoint(lambda messages: "Harbour", lambda messages, count: "echo-200") as endpoint:
        command = ["--model", "m", "--base-url", endpoint.url, "--data", str(tmp_path / "own.jsonl"), "--out"]
        assert heldout.run([*command, str(tmp_path / "run"), "--system", "copy_last"]) == 0
    assert HIDDEN in (tmp_path / "run/copy_last/rows.jsonl").read_text()
    assert leaks(tmp_path, "") == []


@pytest.mark.parametrize("address", ["http://user:canary@localhost:1/v1", "http://localhost:1/v1?key=canary"])
def test_addresses_with_a_secret_are_refused_without_repeating_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], address: str
) -> None:
    from lme_v2_env.reading import ReaderConfig

    (tmp_path / "own.jsonl").write_text(json.dumps(record()) + "\n", encoding="utf-8")
    (tmp_path / "asked.jsonl").write_text('{"question": "q", "gold": "g"}\n', encoding="utf-8")
    world = lme_world.write(tmp_path / "data", [lme_world.trajectory(0)])
    ours = ["--model", "m", "--data", str(tmp_path / "own.jsonl"), "--out", str(tmp_path / "run")]
    theirs = ["--data", str(world), "--cache", str(tmp_path / "cache"), "--system", "rag_slice", "--out"]
    theirs += [str(tmp_path / "lme"), "--retrieval", "bm25", "--reader-tokenizer", "estimate"]
    assert heldout.run([*ours, "--base-url", address]) == 2
    assert heldout.run([*ours, "--base-url", address, "--system", "facts"]) == 2
    assert lme.run([*theirs, "--base-url", address]) == 2
    assert lme.run([*theirs, "--reader", "extractive", "--judge", "j", "--judge-base-url", address]) == 2
    assert judge_audit.run(["--base-url", address, "--model", "m", "--rows", str(tmp_path / "asked.jsonl")]) == 2
    for make in (
        lambda: ReaderConfig(reader="m", base_url=address),
        lambda: ReaderConfig(judge="j", judge_base_url=address),
    ):
        with pytest.raises(ValueError, match="holds a user, a password or a query") as refused:
            make()
        assert "canary" not in str(refused.value)
    assert leaks(tmp_path, "".join(capfd.readouterr())) == []


def test_a_key_is_hidden_in_every_form() -> None:
    key = 'sk-a/b+"c\\d&'
    forms = [
        key,
        json.dumps(key)[1:-1],
        json.dumps(json.dumps(key)[1:-1])[1:-1],
        json.dumps(key)[1:-1].replace("/", "\\/"),
    ]
    forms += [quote(key), quote(key, safe=""), quote(key, safe="").lower(), quote(quote(key, safe=""))]
    forms += [html.escape(key), "".join(f"\\u{ord(c):04X}" for c in key), "".join(f"&#{ord(c)};" for c in key)]
    for form in forms:
        assert without_key(f'{{"a": "{form}"}}', key) == f'{{"a": "{HIDDEN}"}}', form
    assert without_key(CANARY.replace("/", "&#x2F;"), CANARY) == HIDDEN
    for word in ("none", "", "EMPTY", "x"):  # what stands for no key is no secret
        assert without_key(f"{word} of it", word) == f"{word} of it"


def test_the_gateway_of_codex_passes_refusals_without_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with Echoing() as endpoint, serving(tmp_path / "s", endpoint.url, "m", "OPENAI_API_KEY"):
        for status in (b" 400 ", b" 500 ", b" 200 ", b" 401 "):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(tmp_path / "s"))
                client.sendall(b"POST /v1/responses HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")
                reply = b"".join(iter(lambda c=client: c.recv(1 << 16), b""))
            assert status in reply.partition(b"\r\n")[0]
            assert reply.count(HIDDEN.encode()) == 4
            assert b"canary" not in reply


@given(
    st.lists(
        st.sampled_from(["s", "k", "sk-", "sk-k", "sk-key-1", "key-1", "sk\\u002dkey-1", 'say "', "\n\n", "\xe9"])
    ),
    st.lists(st.integers(0, 60)),
)
def test_a_reply_in_pieces_is_the_whole_reply_without_the_key(words: list[str], cuts: list[int]) -> None:
    data, key = "".join(words).encode(), "sk-key-1"
    edges = [0, *sorted(cuts), len(data)]
    sent = list(stream_without_key([data[a:b] for a, b in pairwise(edges)], key))
    assert b"".join(sent).decode() == without_key(data.decode(), key)
    assert next(iter(stream_without_key([b"data: 1\n\n"], key))) == b"data: 1\n\n", "nothing waits that need not"


FORBIDDEN = {"eval", "exec", "pickle", "cPickle", "dill", "joblib", "marshal", "shelve", "cloudpickle"}


def code_from_data(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Places where data could become code: (line, what)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (
                (node.lineno, name.name) for name in node.names if name.name.split(".")[0] in FORBIDDEN - {"eval"}
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN - {"eval"}:
            yield node.lineno, str(node.module)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {word.arg: ast.unparse(word.value) for word in node.keywords}
            if name in ("eval", "exec", "compile", "__import__"):
                yield node.lineno, name
            if name == "yaml.load" or (name == "torch.load" and given.get("weights_only") != "True"):
                yield node.lineno, name
            if given.get("trust_remote_code", "False") != "False" or given.get("allow_pickle", "False") != "False":
                yield node.lineno, f"{name}(trust_remote_code or allow_pickle)"
            if given.get("shell", "False") != "False" or name == "os.system":
                yield node.lineno, f"{name}, a shell"


def test_nothing_takes_code_from_data() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {what}"
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        for line, what in code_from_data(ast.parse(file.read_text("utf-8")))
    ]
    assert found == []
    bad = (
        "import pickle\neval(x)\ntorch.load(f)\nnp.load(f, allow_pickle=True)\nModel.load(n, trust_remote_code=True)\n"
    )
    assert [line for line, _ in code_from_data(ast.parse(bad))] == [1, 2, 3, 4, 5]
    assert list(code_from_data(ast.parse("np.load(f)\ntorch.load(f, weights_only=True)\n"))) == []
