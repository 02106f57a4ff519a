"""OpenAI's codex program as the engine, inside the sandbox. It speaks the Responses API only.

Its own approvals and sandbox are off, as published: this sandbox stands in for them. It reaches its model through a
socket (`gateway`), without a key and without another network.
"""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Self

from eval.baselines.coding.accounting import Command, incidents, kind_of
from eval.baselines.coding.engine import DONE, TIME_UP, Effort, collect
from eval.baselines.coding.gateway import serving
from eval.baselines.coding.instruct import PROMPT
from eval.baselines.coding.sandbox import HOME, Finished, Limits, Mount, Sandbox, Stop
from rewards.errors import UserError

PORT = 8787
INSIDE = "/opt/codex"
PATH = f"{INSIDE}/codex-path:/usr/local/bin:/usr/bin:/bin"
"""First the search program (rg) that comes with Codex."""

STATE = f"{HOME}/.codex"
"""Codex's own folder; it does not take one below /tmp."""

SOCKET, FORWARDER = "/run/model.sock", "/run/forwarder.py"

INSTALL = "npm install -g @openai/codex (424 MB), or take --agent-engine tools"

LIMITS = Limits(processes=512, memory_bytes=4 << 30, virtual_bytes=None, output_bytes=64 << 20)
"""Codex reserves more address space than it uses, and its event stream is long."""


@dataclass(frozen=True, slots=True)
class CodexEngine:
    """`program` is the native binary; npm's `codex` is a script that starts it."""

    program: Path
    version: str
    model: str
    base_url: str
    api_key_var: str
    effort: str | None
    limits: Limits = field(default=LIMITS)

    @classmethod
    def found(cls, model: str, base_url: str, api_key_var: str, effort: str | None) -> Self:
        """The engine over the installed program. Raises `UserError` when there is none."""
        program = native(shutil.which("codex"))
        with Sandbox([_folder(program)], LIMITS) as sandbox:
            done = sandbox.run([_inside(program), "--version"], 30.0)
        if done.code != 0:
            raise UserError(f"codex does not run in the sandbox: {' '.join(done.stderr.split())[:200] or done.stop}")
        return cls(program, done.stdout.strip(), model, base_url, api_key_var, effort)

    @property
    def settings(self) -> dict[str, Any]:
        return {"engine": "codex", "version": self.version, "model": self.model, "effort": self.effort}

    def attempt(self, mounts: Sequence[Mount], seconds: float, picture: bytes | None) -> Effort:
        shown = [mount.target for mount in mounts if picture is not None and "/question_image." in mount.target]
        with tempfile.TemporaryDirectory(prefix="model-") as folder, as_file(_script()) as script:
            socket = Path(folder, "model.sock")
            own = [_folder(self.program), Mount(socket, SOCKET), Mount(script, FORWARDER)]
            with (
                serving(socket, self.base_url, self.model, self.api_key_var) as gateway,
                Sandbox([*mounts, *own], self.limits) as sandbox,
            ):
                done = sandbox.run(self._command(shown), seconds, {"CODEX_HOME": STATE, "PATH": PATH})
                output, missing = collect(sandbox)
                failure = gateway.failure
        if output is None and done.code:
            missing += f"; codex: {_last_words(done)}"
        commands, usage, turns = read_events(done.stdout)
        ended = TIME_UP if done.stop is Stop.TIME else str(done.stop or DONE)
        return Effort(output, missing, ended, tuple(commands), turns, usage, failure)

    def _command(self, pictures: Sequence[str]) -> list[str]:
        provider = f'{{name="endpoint", base_url="http://127.0.0.1:{PORT}/v1", wire_api="responses"}}'
        settings = {"model_provider": '"endpoint"', "model_providers.endpoint": provider, "web_search": '"disabled"'}
        # these would wait for servers that cannot be reached, five seconds an attempt
        settings |= {"features.plugins": "false", "analytics.enabled": "false", "otel.metrics_exporter": '"none"'}
        if self.effort:
            settings["model_reasoning_effort"] = json.dumps(self.effort)
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        codex = [_inside(self.program), "exec", "-C", HOME, "--skip-git-repo-check", "--json", "--ephemeral"]
        codex += ["--dangerously-bypass-approvals-and-sandbox", "-m", self.model, *options]
        codex += [*(f"--image={name}" for name in pictures), "--", PROMPT]
        start = f"mkdir -p {STATE} && exec python3 {FORWARDER} {SOCKET} {PORT} {shlex.join(codex)}"
        return ["bash", "--noprofile", "--norc", "-c", start]


def native(command: str | None) -> Path:
    """The binary behind the `codex` on the path. Raises `UserError`."""
    if command is None:
        raise UserError(f"the codex engine needs the codex program: {INSTALL}")
    script = Path(command).resolve()
    if script.read_bytes()[:4] == b"\x7fELF":
        return script
    package = script.parent.parent
    for folder in (package, package.parent, package / "node_modules/@openai"):
        for pattern in ("vendor/*/bin/codex", "codex-linux-*/vendor/*/bin/codex", "vendor/*/codex/codex"):
            found = sorted(folder.glob(pattern))
            if found:
                return found[0]
    raise UserError(f"{script} comes without its native program: install it anew: {INSTALL}")


def _folder(program: Path) -> Mount:
    """The binary with what lies beside it (npm's layout), or alone."""
    beside = program.parent.parent
    npm = beside.parent.name == "vendor"
    return Mount(beside, INSIDE) if npm else Mount(program, f"{INSIDE}/{program.parent.name}/{program.name}")


def _inside(program: Path) -> str:
    return f"{INSIDE}/{program.parent.name}/{program.name}"


def _script() -> Any:
    return files("eval.baselines.coding").joinpath("forwarder.py")


def _last_words(done: Finished) -> str:
    errors = [event.get("message", "") for event in _events(done.stdout) if event.get("type") == "error"]
    return " ".join(str((errors or [done.stderr])[-1]).split())[-300:]


def _events(stream: str) -> Iterator[dict[str, Any]]:
    for line in stream.split("\n"):
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue  # a line that was cut, or a warning
        if isinstance(event, dict):
            yield event


def read_events(stream: str) -> tuple[list[Command], dict[str, int], int]:
    """(commands, usage, number of turns) from the lines that `codex exec --json` prints."""
    commands: list[Command] = []
    usage: Counter[str] = Counter()
    turns = 0
    for event in _events(stream):
        item = event.get("item") or {}
        if event.get("type") == "item.completed" and item.get("type") == "command_execution":
            text = _unwrapped(str(item.get("command", "")))
            code = item.get("exit_code")
            # stdout and stderr come as one: look for what was stopped only where something was
            words = str(item.get("aggregated_output", ""))[-1000:] if code else ""
            done = Finished(code, "", words, None, False, 0.0)
            commands.append(Command(len(commands) + 1, text, kind_of(text), 0.0, incidents(done)))
        elif event.get("type") == "turn.completed":
            turns += 1
            usage.update({name: n for name, n in (event.get("usage") or {}).items() if isinstance(n, int)})
    return commands, dict(usage), turns


def _unwrapped(command: str) -> str:
    """What Codex gave to its shell: the words after `bash -lc`."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    wrapped = len(words) == 3 and words[0].endswith("sh") and words[1] in ("-lc", "-c")
    return words[2] if wrapped else command
