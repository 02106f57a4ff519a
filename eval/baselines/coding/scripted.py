"""A scripted agent behind a real OpenAI-compatible endpoint on loopback: rules in place of a model.

It reads its instruction, shortlists runs whose goals share words with the question, looks for the words in them, and
hands over the states where most of them stand. The commands are real and run in the sandbox through the real loop, so
that everything but the model's judgement is exercised; its accuracy says nothing about a coding agent's.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from eval.baselines.coding.scripted_responses import events, transcript

SCRIPTED = "scripted"

Policy = Callable[[Sequence[str]], str | None]
"""Outputs of the commands so far -> the next command, or None to stop."""

NAMED = re.compile(r"`([^`]+)`|\"([^\"]{3,60})\"|\b((?:[A-Z][\w+-]+)(?:\s+[A-Z0-9][\w+-]*)+)")
WORD = re.compile(r"[A-Za-z][A-Za-z0-9-]{3,}")
COMMON = frozenset(
    re.findall(
        r"\w+",
        """about above after agent amount answer answers based before below between boxed both choose does each exact
        extra field final following format from give have included indicating integer into item items largest like list
        many mark more name only option options order other page pages portal question servicenow shown single state
        than that their them then there these this those under used user using values what when where which with word
        words working would your""",
    )
)
ROW = re.compile(r"^\| \d+ \| (\S+) \| (.*?) \| (?:success|failure) \|", re.MULTILINE)
COUNTED = re.compile(r"^trajectories/([^/\s]+)/trajectory\.json:(\d+)$", re.MULTILINE)
RUN = re.compile(r"^trajectory (\S+)", re.MULTILINE)
STATE = re.compile(r"^== state (\d+)\b.*$", re.MULTILINE)

RUNS, STATES = 3, 6
"""Runs looked into, and states handed over."""

LOOK = """python3 - <<'END'
import json, re
wanted = re.compile({pattern!r}, re.I)
for name in {ids!r}:
    run = json.load(open("trajectories/%s/trajectory.json" % name))
    print("trajectory", name)
    for state in run["states"]:
        lines = [line.strip()[:240] for line in state["text"].split("\\n") if wanted.search(line)]
        if lines:
            print("== state", state["state_index"])
            print("\\n".join(lines[:8]))
END"""
"""For an agent without the helper."""


def librarian(outputs: Sequence[str]) -> str | None:
    """The scripted agent's next command."""
    if not outputs:
        return "cat INSTRUCTION.md question.json"
    question = _question(outputs[0])
    terms = _terms(question)
    pattern = "|".join(map(re.escape, terms))
    if len(outputs) == 1:
        if "TRAJECTORY_SUMMARY_CONCISE.md" in outputs[0]:
            return "cat TRAJECTORY_SUMMARY_CONCISE.md"
        quoted = "|".join(re.sub(r"[^\w -]", ".", term) for term in terms)
        return f"grep -rciE '{quoted}' trajectories --include=trajectory.json | sort -t: -k2 -nr | head -{RUNS}"
    if len(outputs) == 2:
        ids = _runs(outputs[1], question)
        if "scripts/inspect_trajectory.py" in outputs[0]:
            text = pattern.replace("'", ".")
            return "; ".join(f"python3 scripts/inspect_trajectory.py {name} --match '{text}'" for name in ids) or "true"
        return LOOK.format(pattern=pattern, ids=ids)
    if len(outputs) == 3:
        return _write(outputs[2], terms)
    return None


def _question(text: str) -> str:
    found = re.search(r'^\{\s*"question":.*?^\}', text, re.MULTILINE | re.DOTALL)
    asked = json.loads(found.group())["question"] if found else text[-500:]
    return asked["text"] if isinstance(asked, dict) else asked


def _terms(question: str) -> list[str]:
    """What to look for: names first, then longer words."""
    plain = re.sub(r"[^.?!\n]*\\boxed\b.*", "", question)
    names = [next(filter(None, match)).strip() for match in NAMED.findall(plain)]
    words = [word for word in WORD.findall(plain) if word.lower() not in COMMON]
    return list(dict.fromkeys([*names, *words]))[:12]


def _runs(text: str, question: str) -> list[str]:
    counted = [(int(count), name) for name, count in COUNTED.findall(text)]
    if counted:
        return [name for count, name in sorted(counted, reverse=True) if count][:RUNS]
    asked = {word.lower() for word in WORD.findall(question)} - COMMON
    rows = [(len(asked & {w.lower() for w in WORD.findall(goal)}), name) for name, goal in ROW.findall(text)]
    return [name for _, name in sorted(rows, key=lambda row: -row[0])[:RUNS]]


def _write(text: str, terms: Sequence[str]) -> str:
    """The command that writes the output file: the states whose matching lines have most of the terms."""
    scored = []
    for run in re.split(r"(?=^trajectory )", text, flags=re.MULTILINE):
        name = RUN.match(run)
        marks = list(STATE.finditer(run))
        for mark, following in zip(marks, [*marks[1:], None], strict=False):  # none without marks
            lines = run[mark.end() : following.start() if following else None].lower()
            hits = sum(term.lower() in lines for term in terms)
            if name:
                scored.append((-hits, len(scored), name.group(1), int(mark.group(1)), lines.strip().split("\n")))
    kept: Counter[str] = Counter()
    best = []
    for row in sorted(scored):  # two of a run, so that another one can show something else
        if kept[row[2]] < 2 and len(best) < STATES:
            kept[row[2]] += 1
            best.append(row)
    notes = [f"- {name}, state {index}: {lines[0].strip()[:200]}" for _, _, name, index, lines in best]
    spans = [
        {"trajectory_id": name, "start_state_index": index, "end_state_index": index} for _, _, name, index, _ in best
    ]
    markdown = "## Support analysis\n" + "\n".join(notes) + "\n\n## Procedures and hints\n"
    content = json.dumps({"memory_markdown": markdown, "trajectory_spans": spans}, ensure_ascii=False)
    return f"cat > memory_module_output.json <<'END_OF_OUTPUT'\n{content}\nEND_OF_OUTPUT"


class ScriptedModel:
    """Serves a policy on a free port of loopback by both APIs; keeps every request."""

    def __init__(self, policy: Policy = librarian) -> None:
        self.policy = policy
        self.bodies: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def start(self) -> ScriptedModel:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> ScriptedModel:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def chat(self, body: dict[str, Any]) -> str:
        """One chat completion."""
        outputs = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        command = self.policy(outputs)
        message: dict[str, Any] = {"role": "assistant", "content": "done" if command is None else None}
        if command is not None:
            call = {"name": "shell", "arguments": json.dumps({"command": command})}
            message["tool_calls"] = [{"id": f"call_{len(outputs)}", "type": "function", "function": call}]
        finish = "stop" if command is None else "tool_calls"
        return json.dumps(
            {
                "id": "scripted",
                "object": "chat.completion",
                "model": SCRIPTED,
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
            }
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send("application/json", json.dumps({"object": "list", "data": [{"id": SCRIPTED}]}))

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                model.bodies.append(text)
                model.headers.append(dict(self.headers))
                body = json.loads(text)
                if self.path.endswith("/responses"):
                    self._send("text/event-stream", events(body, model.policy(transcript(body))))
                else:
                    self._send("application/json", model.chat(body))

            def _send(self, kind: str, text: str) -> None:
                data = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def serve() -> str:
    """Start the scripted agent for as long as this process lives; its address."""
    return ScriptedModel().start().url
