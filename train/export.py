"""`python -m train.export`: a trained adapter made ready for vLLM, or merged into its base model.

Adapters of the local engine (and of prime-rl) are in peft's format and name the model they were trained on. vLLM reads
that format when the base's name can be resolved where it runs and the rank is allowed; this checks both, casts the
weights, and prints the command that serves it. `--merge` writes whole weights instead: what an RL stage after an `sft`
stage starts from.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewards import strict_json
from rewards.commands import Parser, answered
from rewards.errors import UserError
from train.folders import ADAPTER_FILES, write_folder

if TYPE_CHECKING:
    from torch import Tensor

EXAMPLE = """examples:
  python -m train.export runs/quick/adapter --out runs/quick/vllm --base HuggingFaceTB/SmolLM2-135M-Instruct
  python -m train.export outputs/run/broadcasts/step_150 --out step150            # the base as the adapter names it
  python -m train.export runs/quick/warm --out runs/quick/merged --merge          # whole weights
Exit status: 0 done, 2 refused."""

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}

A, B = ".lora_A.weight", ".lora_B.weight"

RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM's --max-lora-rank takes (vllm/config/lora.py)."""


def export(adapter: Path, out: Path, base: str | None, dtype: str) -> None:
    """Write the adapter with weights as `dtype` and its base's name. Raises `UserError` for what vLLM cannot serve."""
    import torch
    from safetensors.torch import save_file

    config = read_config(adapter)
    if config.get("modules_to_save") or config.get("use_dora") or config.get("bias", "none") != "none":
        raise UserError(f"{adapter}: vLLM serves plain LoRA only; this adapter has extra modules, biases or DoRA")
    config |= {"base_model_name_or_path": _servable(base_of(config, base, adapter)), "inference_mode": True}
    tensors = read_weights(adapter, config)
    cast = {name: tensor.to(getattr(torch, DTYPES[dtype])).contiguous() for name, tensor in tensors.items()}
    broken = [name for name, tensor in cast.items() if not bool(tensor.isfinite().all())]
    if broken:
        raise UserError(f"{adapter}: '{broken[0]}' holds numbers that are not finite as {dtype}")

    def write(folder: Path) -> None:
        save_file(cast, folder / ADAPTER_FILES[0])
        (folder / ADAPTER_FILES[1]).write_text(json.dumps(config, indent=2) + "\n", "utf-8")

    write_folder(out, write)


def merge(adapter: Path, out: Path, base: str | None, dtype: str) -> None:
    """Write the base model with the adapter's weights added, and its tokenizer."""
    import torch

    from train.policy import LocalPolicy

    config = read_config(adapter)
    read_weights(adapter, config)  # damage is told before a large base model is read
    policy = LocalPolicy.load(base_of(config, base, adapter), adapter, device="cpu", dtype="fp32")
    merged = policy.model.merge_and_unload().to(getattr(torch, DTYPES[dtype]))

    def write(folder: Path) -> None:
        merged.save_pretrained(folder)
        policy.tokenizer.save_pretrained(folder)

    write_folder(out, write)


def read_config(adapter: Path) -> dict[str, Any]:
    """adapter_config.json. Raises `UserError` when `adapter` is no adapter's folder."""
    for name in ADAPTER_FILES:
        if not (adapter / name).is_file():
            raise UserError(f"{adapter}: no {name} in it; give the folder of an adapter")
    try:
        config = strict_json.loads((adapter / ADAPTER_FILES[1]).read_bytes())
    except ValueError as error:
        raise UserError(f"{adapter / ADAPTER_FILES[1]}: {error}") from error
    if not isinstance(config, dict) or not isinstance(config.get("r"), int):
        raise UserError(f"{adapter / ADAPTER_FILES[1]}: expected an object with the rank 'r'")
    if config.get("peft_type") != "LORA":
        raise UserError(f"{adapter}: peft_type is {config.get('peft_type')!r}, not LORA")
    return config


def base_of(config: dict[str, Any], base: str | None, adapter: Path) -> str:
    """The base model's name: as given, or as the adapter says. Raises `UserError` when neither does."""
    name = base or config.get("base_model_name_or_path")
    if not name:
        raise UserError(f"{adapter} names no base model: give --base")
    return str(name)


def _servable(name: str) -> str:
    """Raises `UserError` for the model that comes as a package: no server finds it by that name."""
    from train.weights import SHIPPED

    if name == SHIPPED:
        raise UserError(f"{name} is this package's own name for a model: give --base, as the example in --help does")
    return name


def read_weights(adapter: Path, config: dict[str, Any]) -> dict[str, Tensor]:
    """The adapter's tensors. Raises `UserError` unless every layer has A and B of one of the configuration's ranks."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = adapter / ADAPTER_FILES[0]
    try:
        tensors = load_file(file)
    except SafetensorError as error:
        raise UserError(f"{file} is damaged: {str(error).splitlines()[0]}") from error
    if not tensors:
        raise UserError(f"{file} holds no weights")
    ranks = {config["r"], *(config.get("rank_pattern") or {}).values()}
    for name, tensor in tensors.items():
        if not name.endswith((A, B)):
            raise UserError(f"{adapter}: '{name}' is not the weight of a LoRA layer")
        other = name.removesuffix(A) + B if name.endswith(A) else name.removesuffix(B) + A
        if other not in tensors:
            raise UserError(f"{adapter}: '{name}' has no counterpart '{other}'")
        if tensor.ndim != 2 or tensor.shape[0 if name.endswith(A) else 1] not in ranks:
            raise UserError(f"{adapter}: '{name}' has shape {tuple(tensor.shape)}; its rank should be {config['r']}")
    return tensors


def served_with(config: dict[str, Any], base: str | None, out: Path) -> str:
    """The command that serves the exported adapter. Raises `UserError` for a rank that vLLM does not take."""
    rank = max([config["r"], *(config.get("rank_pattern") or {}).values()])
    allowed = next((value for value in RANKS if value >= rank), None)
    if allowed is None:
        raise UserError(f"rank {rank}: vLLM serves adapters up to rank {RANKS[-1]}")
    name = out.resolve().name
    return (
        f"vllm serve {base or config.get('base_model_name_or_path')} --enable-lora --max-lora-rank {allowed} "
        f"--lora-modules {name}={out}"
    )


def main(args: Sequence[str] | None = None) -> int:
    """Entry of `python -m train.export`. 0 done, 2 refused."""
    top = Parser(
        "python -m train.export", "Make a trained adapter ready for vLLM, or merge it into its base model.", EXAMPLE
    )
    add = top.add_argument
    add("adapter", type=Path, help="folder with adapter_model.safetensors and adapter_config.json")
    add("--out", type=Path, required=True, help="folder to write; must not exist")
    add("--base", help="name or path of the base model where it will be served; default: as the adapter says")
    add("--dtype", choices=sorted(DTYPES), default="bf16", help="of the written weights (default bf16)")
    add("--merge", action="store_true", help="write the whole model with the adapter merged in")
    options = top.read(args)
    return answered("export", lambda: _run(options), "start it again")


def _run(options: argparse.Namespace) -> int:
    try:
        if options.out.exists():
            raise UserError(f"--out {options.out} exists already: give another folder")
        options.out.parent.mkdir(parents=True, exist_ok=True)
        if options.merge:
            merge(options.adapter, options.out, options.base, options.dtype)
            print(f"merged model: {options.out}\nserve it: vllm serve {options.out}")
            return 0
        command = served_with(read_config(options.adapter), options.base, options.out)
        export(options.adapter, options.out, options.base, options.dtype)
    except OSError as error:
        shutil.rmtree(options.out, ignore_errors=True)
        raise UserError(f"{options.out} cannot be written: {error.strerror}") from error
    print(f"adapter: {options.out}\nserve it: {command}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
