"""What leaves the trainer: adapters for vLLM, merged models, and the warm start's examples as a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from supersede_env.data import DataConfig
from supersede_env.protocol import ProtocolConfig
from tests.tiny import tiny_policy
from train import export, sft_data
from train.checkpoint import write_adapter
from train.folders import write_folder
from train.local_config import LoraSettings
from train.optimizer import MasterAdamW, adapter_parameters, add_adapter
from train.policy import LocalPolicy

WORDS = [f"w{i}" for i in range(20)]
PROMPT = [{"role": "user", "content": "w1 w2 w3"}]


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A saved base model and an adapter that changes what it says."""
    policy = tiny_policy(WORDS)
    policy.model.save_pretrained(tmp_path / "base")
    policy.tokenizer.save_pretrained(tmp_path / "base")
    policy.model = add_adapter(policy.model, LoraSettings(r=3, alpha=6), seed=1)
    optimizer = MasterAdamW(adapter_parameters(policy.model), lr=1.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        masters = {name: torch.randn_like(tensor) / 4 for name, tensor in optimizer.masters.items()}
    write_folder(tmp_path / "adapter", write_adapter(policy.model, masters, str(tmp_path / "base")))
    return tmp_path


def logits(model: str, adapter: Path | None = None) -> torch.Tensor:
    policy = LocalPolicy.load(model, adapter, device="cpu", dtype="fp32")
    with torch.inference_mode():
        return policy.model(torch.tensor([policy.prompt_ids(PROMPT)])).logits[0, -1]


def test_an_exported_adapter_is_the_same_adapter(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, adapter = str(trained / "base"), trained / "adapter"
    arguments = [str(adapter), "--out", str(trained / "out"), "--base", "org/model", "--dtype", "fp32"]
    assert export.main(arguments) == 0
    assert "vllm serve org/model --enable-lora --max-lora-rank 8 --lora-modules out=" in capsys.readouterr().out
    assert (
        json.loads((trained / "out/adapter_config.json").read_text("utf-8"))["base_model_name_or_path"] == "org/model"
    )
    assert torch.equal(logits(base, trained / "out"), logits(base, adapter))
    assert not torch.allclose(logits(base), logits(base, adapter), atol=0.05)
    assert export.main(arguments) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_merged_model_says_what_base_and_adapter_say(trained: Path) -> None:
    assert export.main([str(trained / "adapter"), "--out", str(trained / "m"), "--merge", "--dtype", "fp32"]) == 0
    together = logits(str(trained / "base"), trained / "adapter")
    torch.testing.assert_close(logits(str(trained / "m")), together, atol=1e-4, rtol=1e-4)


def test_what_vllm_would_not_serve_is_refused(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    adapter = trained / "adapter"
    config = json.loads((adapter / "adapter_config.json").read_text("utf-8"))

    def refused(changes: dict[str, object], message: str) -> None:
        (adapter / "adapter_config.json").write_text(json.dumps(config | changes), "utf-8")
        assert export.main([str(adapter), "--out", str(trained / "no")]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1

    refused({"use_dora": True}, "plain LoRA only")
    refused({"r": 1000}, "serves adapters up to rank 512")
    refused({"peft_type": "IA3"}, "not LORA")
    refused({"r": None}, "expected an object with the rank 'r'")
    refused({"base_model_name_or_path": None}, "names no base model: give --base")
    refused({"base_model_name_or_path": "smollm2-135m"}, "own name for a model: give --base")
    file = adapter / "adapter_model.safetensors"
    whole = load_file(file)
    name = min(whole)
    for weights, message in (
        ({}, "holds no weights"),
        ({key: value for key, value in whole.items() if key != name}, "has no counterpart"),
        (whole | {name: torch.zeros(5, 4)}, f"'{name}' has shape (5, 4); its rank should be 3"),
        (whole | {name: torch.full_like(whole[name], float("nan"))}, "not finite as bf16"),
    ):
        save_file(weights, file)
        refused({}, message)
    save_file(whole, file)
    file.write_bytes(file.read_bytes()[:200])
    refused({}, "adapter_model.safetensors is damaged")
    save_file(whole, file)
    save_file(
        load_file(adapter / "adapter_model.safetensors") | {"x.bias": torch.zeros(1)},
        adapter / "adapter_model.safetensors",
    )
    refused({}, "'x.bias' is not the weight of a LoRA layer")
    (adapter / "adapter_model.safetensors").unlink()
    refused({}, "no adapter_model.safetensors in it")


def test_sft_rows_are_prompts_with_one_reply_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sft_data.main(["--out", str(tmp_path), "--n", "3", "--preset", "quick", "--wording", "plain"]) == 0
    lines = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text("utf-8").splitlines()]
    data = DataConfig(data="train", preset="quick", num_episodes=3)
    assert lines == [row for rows in sft_data.episodes(data, ProtocolConfig(wording="plain")) for row in rows]
    assert all([m["role"] for m in line["messages"]] == ["system", "user", "assistant"] for line in lines)
    assert f"{len(lines)} examples of 3 episodes" in capsys.readouterr().out
    assert sft_data.main(["--out", str(tmp_path), "--preset", "quik"]) == 2
    assert "did you mean 'quick'" in capsys.readouterr().err
    assert sft_data.main(["--out", str(tmp_path), "--n", "1", "--preset", "quick", "--budget", "20"]) == 2
    assert "do not fit a budget of 20" in capsys.readouterr().err, "cut notes are not to be learnt"
