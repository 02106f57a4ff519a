"""Rollouts for the cards: real runs of the protocols by scripted policies. None of them is a model.

`notes` plays the notes that the generator derives from the true history; `echo` copies the end of what it is shown.
`search` and `random` are scripted policies of lme_v2_env.policies, its `oracle` keeps the known evidence.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from lme_v2_env import policies
from lme_v2_env.data import DataConfig as LmeData
from lme_v2_env.data import Task, explorer_of_world, load_tasks
from lme_v2_env.protocol import ProtocolConfig as LmeProtocol
from lme_v2_env.protocol import RetrievalRollout
from lme_v2_env.reading import ReaderConfig, read
from lme_v2_env.scoring import Outcome as LmeOutcome
from lme_v2_env.scoring import RewardConfig, reward_parts
from lme_v2_env.scoring import metrics as lme_metrics
from supersede_env.data import DataConfig, generated_records
from supersede_env.episode import Episode
from supersede_env.protocol import NotesRollout, ProtocolConfig
from supersede_env.scoring import Outcome, grade_answer, metrics
from tests.scripted_endpoint import echo
from train.hub_spec import Package

Policy = Callable[[list[dict[str, Any]]], str]

TASKS = 5
ROLLOUTS = 3
LONG = 14
"""A message of a worked rollout is shown up to this many lines."""


def played_by(package: Package) -> dict[str, Policy]:
    """The policies of a package's report, by name; served to the evaluators and played here alike."""
    if package.module == "supersede_env":
        return {"notes": _notes_policy(), "echo": echo}
    return {"oracle": policies.oracle(_tasks()), "search": policies.search, "random": policies.anything}


def mean_reward(package: Package, policy: str) -> float:
    """What `policy` gets on the report's tasks, from protocol and grader alone."""
    return _played(package, played_by(package)[policy])["reward"]


def reports(package: Package) -> str:
    """A table of the scripted policies on the first tasks, computed from the protocol and the grader."""
    rows = {name: _played(package, policy) for name, policy in played_by(package).items()}
    columns = list(next(iter(rows.values())))
    lines = ["| policy (scripted, no model) | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in rows.items():
        lines.append(f"| `{name}` | " + " | ".join(f"{value:.2f}" for value in row.values()) + " |")
    return "\n".join(lines) + "\n"


def worked(package: Package) -> str:
    """One rollout in full: what was sent, what was replied, how it was scored."""
    return _worked_supersede() if package.module == "supersede_env" else _worked_lme()


@cache
def _records() -> tuple[dict[str, Any], ...]:
    return tuple(generated_records(DataConfig("validation", preset="quick", num_episodes=TASKS)))


@cache
def _tasks() -> tuple[Task, ...]:
    config = LmeData("heldout", preset="easy", num_questions=TASKS)
    return load_tasks(config, pictures=False, judged=False, premises=False)


def _notes_policy() -> Policy:
    """Gives each of the first episodes' prompts the generator's own notes and answer; knows no other prompt."""
    replies: dict[str, str] = {}
    for record in _records():
        rollout = NotesRollout(Episode.from_record(record).view, ProtocolConfig())
        for reply in (*record["history"]["oracle_notes"], record["history"]["oracle_answer"]):
            replies[rollout.prompt()[-1]["content"]] = reply
            rollout.step(reply)
    return lambda messages: replies[messages[-1]["content"]]


def _played(package: Package, policy: Policy) -> dict[str, float]:
    """Means over the first tasks; a scripted policy replies alike in every rollout."""
    rows = (
        [_supersede_row(record, policy) for record in _records()]
        if package.module == "supersede_env"
        else [_lme_row(task, policy) for task in _tasks()]
    )
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def _supersede_row(record: dict[str, Any], policy: Policy) -> dict[str, float]:
    episode = Episode.from_record(record)
    rollout = NotesRollout(episode.view, ProtocolConfig())
    while not rollout.done:
        rollout.step(policy(rollout.prompt()))
    outcome = Outcome.of(rollout)
    grade = grade_answer(episode, outcome.answer)
    made = metrics(episode, outcome, grade.verdict)
    shown = ("is_correct", "is_stale", "is_hedged", "is_wrong", "notes_chars", "gold_in_notes", "turns")
    return {"reward": grade.r_cur + 0.5 * grade.r_stale} | {name: made[name] for name in shown}


def _lme_row(task: Task, policy: Policy) -> dict[str, float]:
    outcome, reading = _lme_outcome(_lme_rollout(task, policy)[0], task)
    made = lme_metrics(task.question, outcome, reading)
    shown = ("evidence_recall", "evidence_precision", "kept", "num_actions", "malformed")
    reward = sum(reward_parts(task.question, outcome, reading, RewardConfig()).values())
    return {"reward": reward} | {name: made[name] for name in shown}


def _lme_rollout(task: Task, policy: Policy) -> tuple[RetrievalRollout, list[dict[str, Any]]]:
    """The finished rollout, and its conversation up to the last reply."""
    rollout = RetrievalRollout(task.question.view(), explorer_of_world(task.world), LmeProtocol())
    messages: list[dict[str, Any]] = []
    while not rollout.done:
        messages = list(rollout.prompt())
        reply = policy(messages)
        rollout.step(reply)
        messages = [*messages, {"role": "assistant", "content": reply}]
    return rollout, messages


def _lme_outcome(rollout: RetrievalRollout, task: Task) -> tuple[LmeOutcome, Any]:
    outcome = LmeOutcome.of(rollout)
    reading = read(
        task.question, task.evidence, explorer_of_world(task.world), outcome, ReaderConfig(), spans_only=False
    )
    return outcome, reading


def _worked_supersede() -> str:
    record, policy = _records()[0], _notes_policy()
    episode = Episode.from_record(record)
    rollout = NotesRollout(episode.view, ProtocolConfig())
    text = [
        f"Episode `{episode.id}` (`data = validation`, `preset = quick`), the policy `notes` (scripted, no model).",
        "",
    ]
    while not rollout.done:
        messages = rollout.prompt()
        reply = policy(messages)
        rollout.step(reply)
        text += _block(f"turn {len(rollout.history)} of {rollout.num_turns}", [*messages, _said(reply)])
    grade = grade_answer(episode, rollout.answer or "")
    reward = grade.r_cur + 0.5 * grade.r_stale
    text += [
        f"Gold `{episode.gold}`, superseded {', '.join(f'`{v}`' for v in episode.stale)}: verdict `{grade.verdict}`"
    ]
    return "\n".join(text) + f", r_cur {grade.r_cur}, r_stale {grade.r_stale}, reward {reward}.\n"


def _worked_lme() -> str:
    task = _tasks()[0]
    rollout, messages = _lme_rollout(task, policies.search)
    outcome, reading = _lme_outcome(rollout, task)
    parts = reward_parts(task.question, outcome, reading, RewardConfig())
    text = ["The first question of `data = heldout`, `preset = easy`, the policy `search` (scripted, no model).", ""]
    text += _block("the whole conversation", messages)
    answer = json.dumps(reading.text)
    text += [f"The extractive reader answers {answer}; gold `{task.question.gold}`: reward {sum(parts.values())}."]
    return "\n".join(text) + "\n"


def _said(reply: str) -> dict[str, Any]:
    return {"role": "assistant", "content": reply}


def _block(title: str, messages: list[dict[str, Any]]) -> list[str]:
    """Messages as one block of text; long ones shortened, and it is said by how much."""
    lines = [f"*{title}*", "", "```text"]
    for message in messages:
        content = message["content"].replace("```", "'''").split("\n")
        more = [f"[... {len(content) - LONG} more lines]"] if len(content) > LONG + 1 else []
        lines += [f"[{message['role']}]", *(content[:LONG] if more else content), *more]
    return [*lines, "```", ""]
