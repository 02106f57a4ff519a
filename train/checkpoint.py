"""A run's folder: checkpoints that are whole or absent, and logs that are cut back to the checkpoint on resume.

    config.toml        what the run was last started with
    warm.jsonl         a line a warm-start step          metrics.jsonl   a line a GRPO step
    rollouts.jsonl     a line a training rollout
    warm/              the adapter after the warm start  step_0008/      the adapter after a GRPO step
    adapter/           the adapter of the last step

Adapters are in peft's format (fp32). The newest checkpoint also holds trainer.safetensors (master weights and
moments) and every one has state.json. Nothing is pickled.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from rewards import strict_json
from rewards.errors import UserError
from train.folders import ADAPTER_FILES, on_disk, write_folder

Phase = Literal["warm", "grpo"]
LOGS = ("warm.jsonl", "metrics.jsonl", "rollouts.jsonl")
VALIDATION = "validation*.jsonl"
"""What train.validate keeps here."""
STATE, TRAINER, FINAL = "state.json", "trainer.safetensors", "adapter"
UNFINISHED = re.compile(r"\.(warm|warm_\d+|step_\d+|adapter)\.[^.]+")
"""Temporary folders of `write_folder`, of checkpoints that a killed process did not finish."""


@dataclass(frozen=True, slots=True)
class Position:
    """`step` steps of `phase` are done."""

    phase: Phase
    step: int

    @property
    def order(self) -> tuple[bool, int]:
        return (self.phase == "grpo", self.step)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A saved position: where it lies and what its state.json says."""

    position: Position
    folder: Path
    config: dict[str, Any]
    log_bytes: dict[str, int]

    def trainer(self) -> dict[str, Tensor]:
        """Master weights and optimiser moments. Raises `UserError` when the file is damaged."""
        try:
            return load_file(self.folder / TRAINER)
        except (OSError, SafetensorError) as error:
            raise _damaged(self.folder / TRAINER, error) from error


class RunFolder:
    """Reads and writes one run's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def checkpoints(self) -> list[Checkpoint]:
        """All of them, oldest first. Raises `UserError` when one is damaged."""
        found = []
        for file in self.root.glob(f"[!.]*/{STATE}"):
            try:
                state = strict_json.loads(file.read_bytes())
                position = Position(state["phase"], int(state["step"]))
                found.append(Checkpoint(position, file.parent, dict(state["config"]), dict(state["log_bytes"])))
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise _damaged(file, error) from error
        return sorted(found, key=lambda checkpoint: checkpoint.position.order)

    def newest(self) -> Checkpoint | None:
        """The last checkpoint that a run can resume from; None in a folder without any. Raises `UserError` when
        there are checkpoints and none holds what resuming needs."""
        found = self.checkpoints()
        whole = [checkpoint for checkpoint in found if (checkpoint.folder / TRAINER).is_file()]
        if found and not whole:
            raise UserError(
                f"{self.root}: no checkpoint has its {TRAINER}, the run cannot resume; give another --output"
            )
        return whole[-1] if whole else None

    def start(self) -> None:
        """Make the folder ready for a new run. Raises `UserError` when one is in it that could be continued."""
        if self.checkpoints():
            raise UserError(f"{self.root} holds a run: continue it with --resume, or give another --output")
        with writing(self.root):
            for name in LOGS:  # of a run that was killed before its first checkpoint
                (self.root / name).unlink(missing_ok=True)
            for file in self.root.glob(VALIDATION):  # of models that are no more
                file.unlink()

    def describe(self, config_toml: str) -> None:
        """Say what the run was started or resumed with, and clear away what a killed writer left unfinished."""
        with writing(self.root):
            for folder in self.root.iterdir():
                if UNFINISHED.fullmatch(folder.name):
                    shutil.rmtree(folder)
            (self.root / "config.toml").write_text(config_toml, "utf-8")

    def save(
        self,
        name: str,
        position: Position,
        config: dict[str, Any],
        write_adapter: Callable[[Path], None],
        trainer: dict[str, Tensor],
    ) -> Path:
        """Write checkpoint `name`, all of it or nothing, then drop older trainer states."""
        log_bytes = {log: size(self.root / log) for log in LOGS}
        state = {"phase": position.phase, "step": position.step, "config": config, "log_bytes": log_bytes}

        def write(folder: Path) -> None:
            write_adapter(folder)
            save_file(trainer, folder / TRAINER)
            (folder / STATE).write_text(json.dumps(state, indent=1) + "\n", "utf-8")

        folder = self.root / name
        with writing(folder):
            for log in LOGS:  # a checkpoint must not outlive the lines that it counts
                if (self.root / log).is_file():
                    on_disk(self.root / log)
            write_folder(folder, write)
        for checkpoint in self.checkpoints():
            if checkpoint.folder != folder:
                (checkpoint.folder / TRAINER).unlink(missing_ok=True)
        return folder

    def cut_logs(self, checkpoint: Checkpoint) -> None:
        """Drop what was logged after the checkpoint: those steps will be made again."""
        for log, length in checkpoint.log_bytes.items():
            file = self.root / log
            if size(file) < length:
                raise UserError(f"{file} is shorter than its checkpoint says: it was changed, the run cannot resume")
            if file.is_file():
                with writing(file):
                    os.truncate(file, length)

    def append(self, log: str, rows: list[dict[str, Any]]) -> None:
        """Add lines to a log and have them on disk before returning."""
        with writing(self.root / log), (self.root / log).open("a", encoding="utf-8") as handle:
            handle.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
            handle.flush()
            os.fsync(handle.fileno())

    def rows(self, log: str) -> list[dict[str, Any]]:
        """All lines of a log."""
        file = self.root / log
        return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line] if file.is_file() else []

    @contextmanager
    def only_writer(self) -> Generator[None]:
        """Hold the folder's lock. Raises `UserError` when another process trains into it.

        The kernel drops the lock when its holder dies, so a killed run never leaves one behind.
        """
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise UserError(
                f"{self.root} is in use by another process: wait for it, or give another --output"
            ) from None
        finally:
            os.close(descriptor)

    def finish(self, checkpoint: Path) -> Path:
        """Copy the checkpoint's adapter to `adapter/`."""

        def write(folder: Path) -> None:
            for name in ADAPTER_FILES:
                shutil.copyfile(checkpoint / name, folder / name)

        with writing(self.root / FINAL):
            write_folder(self.root / FINAL, write)
        return self.root / FINAL


@contextmanager
def writing(place: Path) -> Generator[None]:
    """A full disk or a folder that may not be written is one clear line."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise UserError(f"{place} cannot be written: {reason}; mend that, and --resume goes on") from error


def _damaged(file: Path, error: Exception) -> UserError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return UserError(f"{file} is damaged, the run cannot resume ({reason}); give another --output")


def size(file: Path) -> int:
    """Bytes in the file; 0 when there is none."""
    return file.stat().st_size if file.is_file() else 0


def write_adapter(model: Any, masters: dict[str, Tensor], base: str) -> Callable[[Path], None]:
    """A function that writes the adapter's fp32 masters in peft's format, naming `base` as the model it belongs to."""
    from peft import get_peft_model_state_dict

    def write(folder: Path) -> None:
        tensors = get_peft_model_state_dict(model, state_dict=masters)
        save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, folder / ADAPTER_FILES[0])
        config = model.peft_config["default"].to_dict()
        config |= {"base_model_name_or_path": base, "inference_mode": True}
        config["target_modules"] = sorted(config["target_modules"])
        (folder / ADAPTER_FILES[1]).write_text(json.dumps(config, indent=2, default=str) + "\n", "utf-8")

    return write
