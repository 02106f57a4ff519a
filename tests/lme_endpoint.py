"""Scripted policies and a scripted reader for LME-V2, served like models.

    python -m tests.lme_endpoint --policy oracle --port 8901 --reader-port 8902 --data heldout

The reader is an OpenAI-compatible "model" that answers right if and only if the evidence is in its context: it isolates
what a policy retrieved from what a reader can do.
"""

from __future__ import annotations

from collections.abc import Iterable

from lme_v2_env.data import DataConfig, Task, load_tasks
from lme_v2_env.memory.slices import plain_line
from lme_v2_env.policies import SCRIPTED, oracle
from rewards.commands import Parser
from tests.scripted_endpoint import Messages, Policy, ScriptedEndpoint


def evidence_reader(tasks: Iterable[Task]) -> Policy:
    """Gives the gold when every line of evidence is in the context (where none is known: the gold), else UNKNOWN."""
    by_question: dict[str, list[Task]] = {}
    for task in tasks:
        by_question.setdefault(task.question.text, []).append(task)

    def reader(messages: Messages) -> str:
        context, _, question = messages[-1]["content"].partition("# The question\n\n")
        shown = {plain_line(line) for line in context.split("\n")}
        for task in by_question[question]:
            lines = [plain_line(point.line) for point in task.evidence if point.line]
            if all(line in shown for line in lines) if lines else task.question.gold in context:
                return f"\\boxed{{{task.question.gold}}}"
        return "\\boxed{UNKNOWN}"

    return reader


EXAMPLE = """example:
  python -m tests.lme_endpoint --policy oracle --data heldout --port 8901 --reader-port 8902"""


def main(argv: list[str] | None = None) -> None:
    parser = Parser("python -m tests.lme_endpoint", __doc__ or "", EXAMPLE)
    parser.add_argument("--policy", choices=["oracle", *SCRIPTED], default="oracle")
    parser.add_argument("--port", type=int, default=8901)
    parser.add_argument("--reader-port", type=int, default=8902)
    parser.add_argument("--data", required=True, help="train, validation, heldout, or a folder")
    parser.add_argument("--preset", default="standard")
    parser.add_argument("--tier", default="small")
    parser.add_argument("--questions")
    parser.add_argument("--num-questions", type=int)
    args = parser.read(argv)
    config = DataConfig(
        args.data, args.preset, tier=args.tier, questions=args.questions, num_questions=args.num_questions
    )
    tasks = load_tasks(config, pictures=False, judged=True, premises=True)
    policy = oracle(tasks) if args.policy == "oracle" else SCRIPTED[args.policy]
    with ScriptedEndpoint(evidence_reader(tasks), port=args.reader_port) as reader:
        endpoint = ScriptedEndpoint(policy, port=args.port)
        print(f"policy {args.policy} at {endpoint.url}, reader at {reader.url} (Ctrl-C ends them)", flush=True)
        endpoint.serve_forever()


if __name__ == "__main__":
    main()
