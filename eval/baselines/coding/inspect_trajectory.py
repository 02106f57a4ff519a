#!/usr/bin/env python3
"""Look into one recorded run: its outline, one state, a span of states, or the lines that match a pattern.

    python3 scripts/inspect_trajectory.py ID                   outline: a line a state
    python3 scripts/inspect_trajectory.py ID --state 7         one state
    python3 scripts/inspect_trajectory.py ID --span 4:9        states 4 to 9, both included
    python3 scripts/inspect_trajectory.py ID --match 'ship(ping)? cost'

The action shown with a state is the one that LED INTO it. The element that it names is described as it was on the page
BEFORE, where the agent saw it: on the page after, the same id may belong to something else.
Standard library only: it runs where the agent runs.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from pathlib import Path

ELEMENT = re.compile(r"^\[([A-Za-z0-9_-]+)\] ")
ELEMENT_ID = re.compile(r"^[A-Za-z]*\d+[A-Za-z0-9_-]*$")
SAFE_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")


def cut(text: str, most: int) -> str:
    """At most `most` characters, saying how many were left out."""
    return text if len(text) <= most else f"{text[:most]} ... ({len(text) - most} more characters)"


def named_elements(action: str) -> list[str]:
    """Ids of the elements that an action names: its first argument, for drag_and_drop its first two."""
    try:
        call = ast.parse(action.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    if not isinstance(call, ast.Call):
        return []
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "send_msg_to_user":
        return []
    values = [getattr(argument, "value", None) for argument in call.args[: 2 if name == "drag_and_drop" else 1]]
    return [value for value in values if isinstance(value, str) and ELEMENT_ID.match(value)]


def annotated(states: list[dict]) -> list[str]:
    """For every state the action that led into it, with the lines of its elements as they were before."""
    known: dict[str, str] = {}
    actions = []
    for state in states:
        action = (state.get("action") or "").strip()
        lines = [known[name] for name in named_elements(action) if name in known]
        actions.append(action + ("  # " + " | ".join(lines) if lines else ""))
        for line in state["text"].split("\n"):
            found = ELEMENT.match(line.strip())
            if found:
                known[found.group(1)] = line.strip()
    return actions


def show_state(state: dict, action: str, options: argparse.Namespace) -> None:
    print(f"== state {state['state_index']}")
    print("url: " + cut(state["url"], options.max_url_chars))
    print("led here: " + (action or "(the run starts here)"))
    if state.get("thoughts"):
        print("thought here, about the next action: " + cut(state["thoughts"], options.max_thought_chars))
    if state.get("screenshot"):
        print("screenshot: " + state["screenshot"])
    print(cut(state["text"], options.max_text_chars))


def show_outline(states: list[dict], actions: list[str], options: argparse.Namespace) -> None:
    for state, action in zip(states, actions):  # noqa: B905 (Python 3.8 has no strict)
        print(f"state {state['state_index']}  {cut(state['url'], options.max_url_chars)}")
        print("  led here: " + cut(action or "(the run starts here)", options.max_match_line_chars))


def show_matches(states: list[dict], actions: list[str], options: argparse.Namespace) -> int:
    pattern = re.compile(options.match, re.IGNORECASE)
    hits = 0
    for state, action in zip(states, actions):  # noqa: B905
        fields = [("url", state["url"]), ("led here", action), ("thought", state.get("thoughts") or "")]
        found = [f"{name}: {text}" for name, text in fields if pattern.search(text)]
        found += [line.strip() for line in state["text"].split("\n") if pattern.search(line)]
        if not found:
            continue
        hits += 1
        print(f"== state {state['state_index']}: {len(found)} matching")
        for line in found[: options.max_match_lines]:
            print("  " + cut(line, options.max_match_line_chars))
    if not hits:
        print("no state matches")
    return hits


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("trajectory_id")
    top.add_argument("--trajectories-dir", type=Path, default=Path(__file__).resolve().parent.parent / "trajectories")
    one = top.add_mutually_exclusive_group()
    one.add_argument("--state", type=int, metavar="N")
    one.add_argument("--span", metavar="A:B", help="both included")
    one.add_argument("--match", metavar="REGEX", help="in urls, actions, thoughts and page lines; case does not matter")
    top.add_argument("--max-text-chars", type=int, default=12000)
    top.add_argument("--max-thought-chars", type=int, default=240)
    top.add_argument("--max-url-chars", type=int, default=220)
    top.add_argument("--max-match-lines", type=int, default=8)
    top.add_argument("--max-match-line-chars", type=int, default=240)
    return top


def chosen(options: argparse.Namespace, count: int) -> range:
    """State numbers that --state or --span asks for."""
    first, _, last = (options.span or str(options.state)).partition(":")
    try:
        span = range(int(first), int(last or first) + 1)
    except ValueError:
        sys.exit("--span takes two state numbers, as in 4:9")
    if not span or span[0] < 0 or span[-1] >= count:
        sys.exit(f"the states are 0 to {count - 1}")
    return span


def main() -> None:
    options = parser().parse_args()
    file = options.trajectories_dir / options.trajectory_id / "trajectory.json"
    if not SAFE_ID.match(options.trajectory_id) or not file.is_file():
        sys.exit(f"no trajectory '{options.trajectory_id}' in {options.trajectories_dir}")
    run = json.loads(file.read_text("utf-8"))
    states, actions = run["states"], annotated(run["states"])
    print(f"trajectory {run['id']} ({run['outcome']}), {len(states)} states")
    print("goal: " + run["goal"])
    print("start: " + cut(run["start_url"], options.max_url_chars))
    if options.match is not None:
        try:
            show_matches(states, actions, options)
        except re.error as error:
            sys.exit(f"--match is no regular expression: {error}")
    elif options.state is None and options.span is None:
        show_outline(states, actions, options)
    else:
        for index in chosen(options, len(states)):
            show_state(states[index], actions[index], options)


if __name__ == "__main__":
    main()
