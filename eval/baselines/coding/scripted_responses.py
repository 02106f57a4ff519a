"""The scripted agent's side of the Responses API, which is the only one that Codex speaks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def transcript(body: dict[str, Any]) -> Sequence[str]:
    """Outputs of the commands so far."""
    items = body["input"] if isinstance(body["input"], list) else []
    return [_text(item["output"]) for item in items if str(item.get("type", "")).endswith("_call_output")]


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    parts = output if isinstance(output, list) else [output]
    return "\n".join(str(part.get("text", part)) if isinstance(part, dict) else str(part) for part in parts)


def events(body: dict[str, Any], command: str | None) -> str:
    """The stream of one response: a call of the client's shell tool, or a closing message."""
    number = len(transcript(body))
    item = _call(body, command, number) if command is not None else _message(number)
    response: dict[str, Any] = {"id": f"resp_{number}", "object": "response", "output": []}
    usage: dict[str, Any] = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    stream = [
        ("response.created", {"response": response | {"status": "in_progress"}}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": response | {"status": "completed", "output": [item], "usage": usage}}),
    ]
    return "".join(f"event: {name}\ndata: {json.dumps({'type': name} | data)}\n\n" for name, data in stream)


def _message(number: int) -> dict[str, Any]:
    content = [{"type": "output_text", "text": "done", "annotations": []}]
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": content}


def _call(body: dict[str, Any], command: str, number: int) -> dict[str, Any]:
    """A call of whichever shell tool the client offers."""
    names = {tool.get("name"): tool for tool in body.get("tools", [])}
    common = {"id": f"fc_{number}", "call_id": f"call_{number}", "status": "completed"}
    for name, arguments in (
        ("exec_command", {"cmd": command}),
        ("shell_command", {"command": command}),
        ("shell", {"command": ["bash", "-lc", command]}),
    ):
        if name in names:
            return common | {"type": "function_call", "name": name, "arguments": json.dumps(arguments)}
    raise KeyError(f"no shell among the client's tools: {sorted(map(str, names))}")
