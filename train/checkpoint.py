"""A run's folder: checkpoints that are whole or absent, and logs that are cut back to the checkpoint on resume.

    config.toml        what the run was started with
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
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors.torch import load_file, save_file
from torch import Tensor

from rewards.errors import UserError

Phase = Literal["warm", "grpo"]
LOGS = ("warm.jsonl", "metrics.jsonl", "rollouts.jsonl")
STATE, TRAINER, FINAL = "state.json", "trainer.safetensors", "adapter"
ADAPTER_FILES = ("adapter_model.safetensors", "adapter_config.json")


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
        """Master weights and optimiser moments."""
        return load_file(self.folder / TRAINER)


class RunFolder:
    """Reads and writes one run's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def checkpoints(self) -> list[Checkpoint]:
        """All of them, oldest first."""
        found = []
        for file in self.root.glob(f"[!.]*/{STATE}"):
            state = json.loads(file.read_text("utf-8"))
            position = Position(state["phase"], state["step"])
            found.append(Checkpoint(position, file.parent, state["config"], state["log_bytes"]))
        return sorted(found, key=lambda checkpoint: checkpoint.position.order)

    def newest(self) -> Checkpoint | None:
        """The last checkpoint that a run can resume from."""
        whole = [checkpoint for checkpoint in self.checkpoints() if (checkpoint.folder / TRAINER).is_file()]
        return whole[-1] if whole else None

    def start(self, config_toml: str) -> None:
        """Make the folder for a new run. Raises `UserError` when one is in it that could be continued."""
        if self.checkpoints():
            raise UserError(f"{self.root} holds a run: continue it with --resume, or give another --output")
        self.root.mkdir(parents=True, exist_ok=True)
        for name in LOGS:  # of a run that was killed before its first checkpoint
            (self.root / name).unlink(missing_ok=True)
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
                os.truncate(file, length)

    def append(self, log: str, rows: list[dict[str, Any]]) -> None:
        """Add lines to a log and have them on disk before returning."""
        with (self.root / log).open("a", encoding="utf-8") as handle:
            handle.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
            handle.flush()
            os.fsync(handle.fileno())

    def rows(self, log: str) -> list[dict[str, Any]]:
        """All lines of a log."""
        file = self.root / log
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.is_file() else []

    @contextmanager
    def only_writer(self) -> Generator[None]:
        """Hold the folder's lock. Raises `UserError` when another process trains into it.

        The kernel drops the lock when its holder dies, so a killed run never leaves one behind.
        """
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

        write_folder(self.root / FINAL, write)
        return self.root / FINAL


def size(file: Path) -> int:
    """Bytes in the file; 0 when there is none."""
    return file.stat().st_size if file.is_file() else 0


def write_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a temporary folder, then put it in `folder`'s place."""
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        write(temporary)
        temporary.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


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
