"""A LoRA adapter on a frozen model, and AdamW on fp32 master copies of its weights.

With bf16 weights an update smaller than a 256th of a weight would be lost; so gradients of micro-batches are summed in
fp32, masters are updated in fp32, and the model gets them rounded.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from rewards.errors import UserError
from train.local_config import LoraSettings

MOMENTS = ("exp_avg", "exp_avg_sq")
"""AdamW's state a parameter; the third, `step`, is the same for all."""


def add_adapter(model: nn.Module, lora: LoraSettings, seed: int) -> Any:
    """`model` with a fresh adapter, the same for the same seed. Raises `UserError` for unknown layers."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=lora.r, lora_alpha=lora.alpha, target_modules=list(lora.targets), task_type="CAUSAL_LM")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return get_peft_model(model, config, autocast_adapter_dtype=False).eval()
        except ValueError as error:
            raise UserError(f"lora.targets {list(lora.targets)}: {str(error).splitlines()[0]}") from error


def adapter_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """The trainable parameters by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


class MasterAdamW:
    """AdamW over fp32 masters of a model's trainable parameters."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], lr: float, weight_decay: float = 0.0) -> None:
        self.parameters = dict(parameters)
        self.masters = {name: p.detach().float().clone() for name, p in parameters.items()}
        self._weight_decay = weight_decay
        self.restart(lr)

    def restart(self, lr: float) -> None:
        """Forget the moments and go on with another learning rate."""
        self._adamw = torch.optim.AdamW(self.masters.values(), lr=lr, weight_decay=self._weight_decay)

    def set_lr(self, lr: float) -> None:
        """The learning rate of the updates that follow."""
        for group in self._adamw.param_groups:
            group["lr"] = lr

    def collect(self) -> None:
        """Add the model's gradients of one micro-batch to the masters' and clear them."""
        for name, parameter in self.parameters.items():
            if parameter.grad is not None:
                master, gradient = self.masters[name], parameter.grad.float()
                master.grad = gradient if master.grad is None else master.grad.add_(gradient)
                parameter.grad = None

    def apply(self, max_norm: float) -> float:
        """One update with the collected gradients. Returns their norm before clipping. Raises `UserError` for a norm
        that is not finite, and changes nothing: it would make every weight not a number."""
        norm = float(nn.utils.clip_grad_norm_(self.masters.values(), max_norm))
        if not math.isfinite(norm):
            raise UserError(
                "the gradient is not finite any more; what was saved stands; a new run needs a lower lr or kl_weight"
            )
        self._adamw.step()
        self._adamw.zero_grad()
        self._publish()
        return norm

    def discard(self) -> None:
        """Forget gradients that were collected and not applied."""
        self._adamw.zero_grad()
        for parameter in self.parameters.values():
            parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """Masters and moments as named tensors."""
        tensors = {f"master.{name}": master for name, master in self.masters.items()}
        for name, master in self.masters.items():
            state = self._adamw.state.get(master) or {}
            tensors |= {f"{key}.{name}": state[key] for key in (*MOMENTS, "step") if key in state}
        return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up what `state` gave; the model's parameters follow."""
        for name, master in self.masters.items():
            master.copy_(tensors[f"master.{name}"])
            if f"step.{name}" in tensors:
                saved = {key: tensors[f"{key}.{name}"].to(master.device) for key in MOMENTS}
                self._adamw.state[master] = {"step": tensors[f"step.{name}"].clone(), **saved}
        self._publish()

    @torch.no_grad()
    def _publish(self) -> None:
        for name, parameter in self.parameters.items():
            parameter.copy_(self.masters[name])


@contextmanager
def uninterrupted(*, late: bool = True) -> Generator[None]:
    """Hold back Ctrl-C and SIGTERM until the block is done, so that weights, counters and files always agree; with
    `late=False` what came meanwhile is dropped, for blocks with which the program ends anyway.

    A signal that is ignored (SIGINT in background jobs of a shell script) stays so.
    """
    held: list[int] = []
    try:
        before = {
            number: signal.signal(number, lambda number, frame: held.append(number))
            for number in (signal.SIGINT, signal.SIGTERM)
            if signal.getsignal(number) is not signal.SIG_IGN
        }
    except ValueError:  # not the main thread: no signal is delivered here
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if held and late:
        raise KeyboardInterrupt
