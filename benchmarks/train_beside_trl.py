"""The local engine beside TRL's GRPOTrainer: tokens a second and peak memory on one task that both can train.

    pip install trl
    python benchmarks/train_beside_trl.py

The task is single-turn and linear, since TRL takes one sequence a rollout: the same prompts, 4 groups of 8, up to 48
new tokens, LoRA r 16 on all seven projections, one update a step, no KL. The reward (length of the text modulo 7)
varies within nearly every group, so that both sides learn from all rollouts. Each side runs in a process of its own, in
turns, `--repeats` times; the first step of each warms up and is not counted. Tokens are those of prompts and replies of
all rollouts. CPU time is printed beside wall time, because only it can be compared on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GROUPS, GROUP_SIZE, NEW_TOKENS, MICRO_BATCH = 4, 8, 48, 8
RANK, ALPHA = 16, 32
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def prompts(count: int) -> list[str]:
    """Texts of generated sessions, about 100 tokens each."""
    from supersede_env.data import DataConfig, generated_records

    texts = []
    for record in generated_records(DataConfig(data="train", preset="quick", num_episodes=count)):
        told = [turn["content"] for session in record["sessions"] for turn in session["turns"]]
        texts.append("Write a short note about this conversation.\n" + "\n".join(told)[:420])
    return texts


def reward(text: str) -> float:
    """Varies within nearly every group, whatever the model writes."""
    return len(text) % 7 / 6


@dataclass
class Clock:
    """Marks after each step: wall and CPU seconds, tokens so far."""

    marks: list[tuple[float, float, int]]

    def mark(self, tokens: int) -> None:
        self.marks.append((time.perf_counter(), time.process_time(), tokens))

    def report(self) -> dict[str, Any]:
        (wall_a, cpu_a, tokens_a), (wall_b, cpu_b, tokens_b) = self.marks[0], self.marks[-1]
        tokens = tokens_b - tokens_a
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {"per_second": tokens / (wall_b - wall_a), "per_cpu_second": tokens / (cpu_b - cpu_a), "peak_mb": peak}


def ours(model: str, steps: int, clock: Clock) -> None:
    """Train with train/local.py over a task of this file."""
    from train.local import Trainer
    from train.local_config import LocalConfig, LoraSettings
    from train.policy import LocalPolicy
    from train.progress import Reporter
    from train.tasks import Result

    texts = prompts(GROUPS * (steps + 1))

    class One:
        done, max_new_tokens, reply = False, NEW_TOKENS, ""

        def __init__(self, text: str) -> None:
            self.text = text

        def prompt(self) -> list[dict[str, str]]:
            return [{"role": "user", "content": self.text}]

        def step(self, reply: str) -> None:
            self.reply, self.done = reply, True

        def result(self) -> Result:
            return Result(reward(self.reply), "correct", {})

    class Linear:
        def task(self, number: int, preset: str | None = None) -> Any:
            return type("Task", (), {"start": lambda self: One(texts[number])})()

    with tempfile.TemporaryDirectory() as folder:
        config = LocalConfig(
            model=model,
            output=folder,
            groups=GROUPS,
            group_size=GROUP_SIZE,
            lr=1e-5,
            lora=LoraSettings(RANK, ALPHA, tuple(PROJECTIONS)),
        )
        trainer = Trainer.begin(config, LocalPolicy.load(model, device="cpu"))
        trainer.tasks = Linear()  # ty: ignore[invalid-assignment]
        tokens = 0
        with Reporter(config.wandb, {}, folder) as reporter:
            for step in range(steps + 1):
                row = trainer._grpo_step(step, reporter)
                tokens += row["tokens"] + row["prompt_tokens"]
                clock.mark(tokens)


def theirs(model: str, steps: int, clock: Clock) -> None:
    """Train with trl.GRPOTrainer."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer  # ty: ignore[import-not-found]

    from train.weights import resolve

    source = resolve(model)
    rows = [{"prompt": [{"role": "user", "content": text}]} for text in prompts(GROUPS * (steps + 1))]
    tokenizer: Any = AutoTokenizer.from_pretrained(source, padding_side="left")
    counted = 0

    def rewards(completions: list[Any], completion_ids: list[list[int]], prompts: list[Any], **_: Any) -> list[float]:
        nonlocal counted
        heads = tokenizer.apply_chat_template(prompts, add_generation_prompt=True, return_dict=False)
        counted += sum(map(len, heads)) + sum(map(len, completion_ids))
        return [reward(completion[0]["content"]) for completion in completions]

    class Marks(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.mark(counted)

    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=MICRO_BATCH,
            gradient_accumulation_steps=GROUPS * GROUP_SIZE // MICRO_BATCH,
            num_generations=GROUP_SIZE,
            max_completion_length=NEW_TOKENS,
            max_steps=steps + 1,
            temperature=1.0,
            beta=0.0,
            learning_rate=1e-5,
            lr_scheduler_type="constant",
            scale_rewards=False,
            bf16=True,
            use_cpu=True,
            gradient_checkpointing=False,
            shuffle_dataset=False,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16),
            reward_funcs=rewards,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            peft_config=LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=PROJECTIONS, task_type="CAUSAL_LM"),
            callbacks=[Marks()],
        )
        trainer.train()


SIDES: dict[str, Callable[[str, int, Clock], None]] = {"ours": ours, "trl": theirs}


EXAMPLE = """example:
  python benchmarks/train_beside_trl.py --steps 1 --repeats 3"""


def main(argv: list[str] | None = None) -> int:
    """Run both sides in turn and print the table."""
    from rewards.commands import Parser  # the repository may not be on the path before

    parser = Parser("python benchmarks/train_beside_trl.py", __doc__ or "", EXAMPLE)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--steps", type=int, default=2, help="counted steps a run, after one to warm up")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--side", choices=sorted(SIDES), help=argparse.SUPPRESS)
    options = parser.read(argv)
    if options.side:
        clock = Clock([])
        SIDES[options.side](options.model, options.steps, clock)
        print(json.dumps(clock.report()))
        return 0
    found: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for _ in range(options.repeats):
        for side in SIDES:
            command = [
                sys.executable,
                __file__,
                "--side",
                side,
                "--model",
                options.model,
                "--steps",
                str(options.steps),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(done.stderr[-3000:], file=sys.stderr)
                return 1
            found[side].append(json.loads(done.stdout.splitlines()[-1]))
            print(side, found[side][-1], flush=True)
    for key, name in (("per_second", "tokens/s"), ("per_cpu_second", "tokens/CPU s"), ("peak_mb", "peak MB")):
        values = {side: sorted(row[key] for row in rows) for side, rows in found.items()}
        medians = {side: statistics.median(row) for side, row in values.items()}
        spread = ", ".join(f"{side} {medians[side]:.0f} ({row[0]:.0f}-{row[-1]:.0f})" for side, row in values.items())
        print(f"{name:<13} {spread}, ratio {medians['ours'] / medians['trl']:.2f}")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    sys.exit(main())
