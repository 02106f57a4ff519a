"""Scripted policies on generated questions, in process, with the extractive reader: the yardsticks of the Hub card.

python -m benchmarks.lme_policies --preset standard --questions 200 [--data heldout]
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

from lme_v2_env.data import DataConfig, Task, explorer_of_world, load_tasks
from lme_v2_env.policies import SCRIPTED, Policy, oracle
from lme_v2_env.protocol import ProtocolConfig, RetrievalRollout
from lme_v2_env.reading import ReaderConfig, read
from lme_v2_env.scoring import Outcome, RewardConfig, reward_parts
from lme_v2_env.trajectory import QuestionView
from rewards.commands import Parser

EXAMPLE = """example:
  python -m benchmarks.lme_policies --preset standard"""


def main(argv: list[str] | None = None) -> None:
    parser = Parser("python -m benchmarks.lme_policies", __doc__ or "", EXAMPLE)
    parser.add_argument("--preset", default="standard")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--data", default="heldout")
    args = parser.read(argv)
    config = DataConfig(args.data, args.preset, num_questions=args.questions)
    tasks = load_tasks(config, pictures=False, judged=False, premises=False)
    for task in tasks:
        explorer_of_world(task.world)  # made now, so that no policy's time has it
    print(f"{len(tasks)} questions, {len({task.world for task in tasks})} worlds, {args.data}, {args.preset}")
    for name, policy in {"oracle": oracle(tasks), **SCRIPTED}.items():
        print(row(name, policy, tasks))


def row(name: str, policy: Policy, tasks: Sequence[Task]) -> str:
    started, recall, actions = time.process_time(), 0.0, 0
    by_type: dict[str, list[float]] = defaultdict(list)
    for task in tasks:
        explorer = explorer_of_world(task.world)
        rollout = RetrievalRollout(QuestionView(task.question.text), explorer, ProtocolConfig())
        while not rollout.done:
            rollout.step(policy(rollout.prompt()))
        outcome = Outcome.of(rollout)
        reading = read(task.question, task.evidence, explorer, outcome, ReaderConfig(), spans_only=True)
        parts = reward_parts(task.question, outcome, reading, RewardConfig())
        by_type[task.question.question_type].append(parts["correct"])
        recall += reading.evidence.get("recall", 0.0) / len(tasks)
        actions += len(outcome.actions)
    each = 1000 * (time.process_time() - started) / len(tasks)
    correct = sum(map(sum, by_type.values())) / len(tasks)
    types = ", ".join(f"{kind} {sum(values) / len(values):.0%}" for kind, values in sorted(by_type.items()))
    return (
        f"{name:<7} correct {correct:6.1%}, evidence recall {recall:6.1%}, {actions / len(tasks):.1f} actions, "
        f"{each:.1f} ms of CPU ({types})"
    )


if __name__ == "__main__":
    main()
