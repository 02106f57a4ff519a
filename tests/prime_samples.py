"""Saved traces of Supersede, turned into training samples by prime-rl itself. Runs in prime-rl's Python.

    PRIME_RL_PYTHON tests/prime_samples.py OUT.json

Plays two episodes through verifiers' evaluator with its training client, which is the one that prime-rl uses: prompts
go as token ids to `/inference/v1/generate`, here answered by a script; the tokenizer is made on the spot (bytes and
ChatML marks). The traces are saved, read back from disk and given to `trace_to_samples`. OUT.json holds every request
and reply of the script and every sample, for tests/test_prime.py to compare; the summary goes to standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SESSIONS = {"made-0": 2, "made-1": 3}
"""The episodes that are played, with their number of sessions. No prompt occurs twice: calls can be told apart."""

QUESTION = "Where is my flat?"

MARKS = ["<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def episode(name: str, sessions: int) -> dict[str, Any]:
    turns = [
        {"role": "user", "content": f"My flat is in Turin, says {name}."},
        {"role": "assistant", "content": "Noted."},
    ]
    return {
        "id": name,
        "sessions": [{"date": f"2024/05/{day:02d} (Wed) 10:00", "turns": turns} for day in range(1, sessions + 1)],
        "question": QUESTION,
        "question_date": "2024/06/01 (Sat) 10:00",
        "gold": "Turin",
    }


def make_tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(MARKS)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=MARKS[1], chat_template=TEMPLATE)
    tokenizer.save_pretrained(folder)
    return tokenizer


class Engine:
    """`/inference/v1/generate`: numbered notes, the answer to the question, made-up log-probabilities."""

    def __init__(self, tokenizer: Any) -> None:
        self.calls: list[dict[str, Any]] = []
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            number = len(self.calls)
            asked = QUESTION in self._tokenizer.decode(body["token_ids"])
            text = "Turin" if asked else f"Flat in Turin, note {number}"
            ids = self._tokenizer.encode(text + MARKS[1], add_special_tokens=False)
            logprobs = [-0.25 - number - i / 100 for i in range(len(ids))]
            self.calls.append({"prompt": body["token_ids"], "completion": ids, "logprobs": logprobs})
        content = [{"token": f"token_id:{i}", "logprob": p} for i, p in zip(ids, logprobs, strict=True)]
        choice = {"index": 0, "token_ids": ids, "logprobs": {"content": content}, "finish_reason": "stop"}
        return {"request_id": f"r{number}", "choices": [choice]}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send({"data": [{"id": "scripted", "max_model_len": 8192}]})

            def do_POST(self) -> None:
                self.send(engine.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

            def send(self, record: dict[str, Any]) -> None:
                data = json.dumps(record).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def play(folder: Path, engine: Engine) -> Path:
    """Run verifiers' evaluator on the two episodes; the file of saved traces."""
    data = folder / "episodes.jsonl"
    data.write_text("".join(json.dumps(episode(*item)) + "\n" for item in SESSIONS.items()))
    options = {
        "--model": "scripted",
        "--client.type": "train",
        "--client.base-url": f"http://127.0.0.1:{engine.server.server_address[1]}/v1",
        "--client.api-key-var": "SCRIPTED_KEY",
        "--client.renderer.name": "default",
        "--client.renderer-model-name": str(folder / "tokenizer"),
        "--env.taskset.data": str(data),
        "--env.taskset.budget": "40",
        "-c": "1",
        "-o": str(folder / "out"),
    }
    flat = [word for pair in options.items() for word in pair]
    command = [
        str(Path(sys.executable).parent / "eval"),
        "supersede-env",
        *flat,
        "--no-serve",
        "--no-rich",
        "--no-push",
    ]
    subprocess.run(command, check=True, env={**os.environ, "SCRIPTED_KEY": "x"}, stdout=subprocess.DEVNULL)
    return next((folder / "out").rglob("traces.jsonl"))


def main() -> None:
    import verifiers.v1 as vf
    from prime_rl.orchestrator.trajectories import trace_to_samples  # ty: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        engine = Engine(make_tokenizer(folder / "tokenizer"))
        saved = [vf.Episode.model_validate_json(line) for line in play(folder, engine).read_text("utf-8").splitlines()]
    report: dict[str, Any] = {"calls": engine.calls, "traces": []}
    for trace in [trace for item in saved for trace in item.traces]:
        samples = trace_to_samples(trace, env_name="supersede")
        name = trace.task.data.name
        sampled = sum(len(call["completion"]) for call in engine.calls if call["prompt"] in _prompts(samples))
        trained = sum(sum(sample.mask) for sample in samples)
        print(
            f"{name}: {SESSIONS[name]} sessions, reward {trace.reward}, {len(samples)} samples, "
            f"{sampled} tokens sampled, {trained} trained"
        )
        rows = [{"token_ids": s.token_ids, "mask": list(s.mask), "logprobs": s.logprobs} for s in samples]
        report["traces"].append({"name": name, "sessions": SESSIONS[name], "samples": rows})
    Path(sys.argv[1]).write_text(json.dumps(report), "utf-8")


def _prompts(samples: list[Any]) -> list[list[int]]:
    """The part of each sample before its first trained token."""
    return [sample.token_ids[: list(sample.mask).index(True)] for sample in samples]


if __name__ == "__main__":
    main()
