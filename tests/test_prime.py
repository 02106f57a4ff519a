"""The prime-rl engine: overrides, the composed TOML, the refusals, the launch; with prime-rl itself where it is.

Set PRIME_RL to a checkout or an environment of prime-rl that holds this package to run the last tests.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rewards.errors import UserError
from supersede_env.data import DataConfig
from supersede_env.protocol import ProtocolConfig
from train import prime
from train.overrides import Override, apply, parse

ROOT = Path(__file__).resolve().parents[1]
PRIME_RL = os.environ.get("PRIME_RL")
needs_prime_rl = pytest.mark.skipif(PRIME_RL is None, reason="prime-rl is not here: set PRIME_RL to its folder")


@pytest.fixture(scope="module")
def base() -> dict[str, Any]:
    return prime.compose()


# --- overrides --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "overrides"),
    [
        (["--max_steps", "10"], [("max_steps", 10)]),
        (["--max-steps=10"], [("max_steps", 10)]),
        (["--trainer.optim.lr", "2e-5", "--clean"], [("trainer.optim.lr", 2e-5), ("clean", True)]),
        (["--inference.vllm.no-enable-prefix-caching"], [("inference.vllm.enable_prefix_caching", False)]),
        (["--a.b", "-1", "--c", "x y"], [("a.b", -1), ("c", "x y")]),
        (["--a", "q", "v"], [("a", ["q", "v"])]),
        (["--a", '["q"]'], [("a", ["q"])]),
        (["--a", "None"], [("a", None)]),
        (["--a", "true"], [("a", True)]),
        (["--a="], [("a", "")]),
    ],
)
def test_parse(args: list[str], overrides: list[tuple[str, Any]]) -> None:
    assert [(o.key, o.value) for o in parse(args)] == overrides


@pytest.mark.parametrize("args", [["max_steps", "10"], ["--"], ["-x", "1"]])
def test_parse_refuses_other_arguments(args: list[str]) -> None:
    with pytest.raises(UserError, match=r"overrides look like --max_steps 10"):
        parse(args)


def leaves(node: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in leaves(value, f"{prefix}.{key}" if prefix else key)]
    if isinstance(node, list) and node and isinstance(node[0], dict):
        return [leaf for i, value in enumerate(node) for leaf in leaves(value, f"{prefix}.{i}")]
    return [(prefix, node)]


def test_every_value_of_the_file_can_be_set(base: dict[str, Any]) -> None:
    """Set to itself nothing changes; set to something else exactly that value does."""
    assert len(leaves(base)) > 60
    for key, value in leaves(base):
        text = value if isinstance(value, str) else json.dumps(value)
        assert apply(base, parse([f"--{key}", text])) == base
        changed = apply(base, [Override(key, "None", None)])
        assert [k for (k, v), (_, w) in zip(leaves(base), leaves(changed), strict=True) if v != w] == [key]


def test_list_positions_may_be_left_out_where_there_is_one(base: dict[str, Any]) -> None:
    long = apply(base, parse(["--orchestrator.train.source.0.env.taskset.budget", "200"]))
    assert apply(base, parse(["--orchestrator.train.source.env.taskset.budget", "200"])) == long
    assert long["orchestrator"]["train"]["source"][0]["env"]["taskset"]["budget"] == 200
    assert base["orchestrator"]["train"]["source"][0]["env"]["taskset"]["budget"] == 300


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--max_stepz", "10"], "unknown key 'max_stepz'; did you mean '--max_steps'?"),
        (["--lr", "1"], "did you mean '--trainer.optim.lr'?"),
        (["--orchestrator.batchsize", "1"], "did you mean '--orchestrator.batch_size'?"),
        (["--max_steps", "many"], "max_steps is 'many': expected a number like 200"),
        (["--max_steps"], "max_steps is 'true': expected a number like 200"),
        (["--max_steps", "1", "2"], "max_steps is '1 2': expected a number like 200"),
        (["--trainer.optim.lr", "NaN"], "trainer.optim.lr is 'NaN': expected a number"),
        (["--inference.vllm.enable_prefix_caching", "7"], "expected true or false"),
        (["--trainer.optim", "adam"], "set one of its keys: type, lr, weight_decay"),
        (["--max_steps.x", "1"], "'max_steps' holds a value"),
        (["--orchestrator.train.source.3.name", "x"], "no element 3"),
        (["--zzz", "1"], "unknown key 'zzz'"),
    ],
)
def test_refused_overrides(base: dict[str, Any], args: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        apply(base, parse(args))
    assert message in str(error.value)


def test_text_stays_text_and_new_keys_pass_when_not_strict(base: dict[str, Any]) -> None:
    assert apply(base, parse(["--run.name", "007"]))["run"]["name"] == "007"
    assert apply(base, parse(["--run.name", "7"]))["run"]["name"] == "7"
    assert apply(base, parse(["--slurm.job_name", "x"]), strict=False)["slurm"] == {"job_name": "x"}


# --- the shipped configuration ----------------------------------------------------------------------------------------


def test_the_papers_setting(base: dict[str, Any]) -> None:
    """arXiv 2606.27472: Qwen2.5-3B-Instruct, LoRA r 32 alpha 64, lr 1e-5, batch 32, group 8, 4 GPUs, r_cur alone."""
    source = base["orchestrator"]["train"]["source"][0]
    lora = base["trainer"]["model"]["lora"]
    assert base["model"]["name"] == "Qwen/Qwen2.5-3B-Instruct"
    assert (lora["rank"], lora["alpha"], base["trainer"]["optim"]["lr"]) == (32, 64, 1e-5)
    assert (base["orchestrator"]["batch_size"], base["orchestrator"]["group_size"]) == (32, 8)
    assert base["deployment"]["num_infer_gpus"] + base["deployment"]["num_train_gpus"] == 4
    assert source["env"]["taskset"]["task"]["stale_weight"] == 0
    assert source["curriculum"]["gates"]["zero_advantage"]["type"] == "advantage_range"


def test_sources_use_fields_that_exist_and_train_on_generated_episodes_only(base: dict[str, Any]) -> None:
    known = set(DataConfig.__dataclass_fields__) | set(ProtocolConfig.__dataclass_fields__) | {"id", "task"}
    orchestrator = base["orchestrator"]
    train, validation = (orchestrator[part]["source"][0]["env"]["taskset"] for part in ("train", "eval"))
    assert set(train) | set(validation) <= known
    assert (train["data"], validation["data"]) == ("train", "validation")
    assert {k: v for k, v in train.items() if k != "data"} == {k: v for k, v in validation.items() if k != "data"}


def test_toml_reads_back(base: dict[str, Any]) -> None:
    assert tomllib.loads(prime.to_toml(base)) == base
    assert tomllib.loads(prime.to_toml({"a": None, "b": [{"c": None}]})) == {"a": "None", "b": [{"c": "None"}]}


# --- run --------------------------------------------------------------------------------------------------------------


def test_dry_run_prints_the_composed_toml(base: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert prime.run(overrides=["--max_steps", "7"], dry_run=True) == 0
    captured = capsys.readouterr()
    assert tomllib.loads(captured.out) == {**base, "max_steps": 7}
    assert "not found here" in captured.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overrides": ["--max_stepz", "1"], "dry_run": True}, "did you mean '--max_steps'?"),
        ({"env": "supersedee", "dry_run": True}, "did you mean 'supersede'?"),
        ({"config": Path("missing.toml"), "dry_run": True}, "missing.toml: no such file"),
        ({"config": ROOT / "pyproject.toml" / "x", "dry_run": True}, "pyproject.toml"),
        ({"config": Path(__file__), "dry_run": True}, "cannot be read"),
        ({"prime_rl": "/nowhere"}, "no prime-rl there"),
        ({}, "--engine local"),
    ],
)
def test_refusals_are_one_line(
    options: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/bin/python")
    assert prime.run(**options) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that looks like prime-rl's checkout; its python reports what `report` says."""
    folder = tmp_path / "prime"
    (folder / ".venv" / "bin").mkdir(parents=True)
    script(folder / ".venv" / "bin" / "rl", 'echo "started $1 $2 in $VIRTUAL_ENV"; cat "$2"; command -v rl')
    return folder


GOOD = {"prime_rl": None, "environment": None, "verifiers": "0.3.1.dev59", "pip": True, "errors": []}


def report(place: Path, **changes: Any) -> None:
    script(place / ".venv" / "bin" / "python", f"cat > /dev/null\necho '{json.dumps({**GOOD, **changes})}'")


REFUSED = {"key": "orchestrator.batch_sizes", "problem": "Extra inputs are not permitted", "near": "batch_size"}


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"prime_rl": "No module named 'torch'"}, ["cannot import it", "torch"]),
        ({"environment": "No module named 'supersede_env'"}, ["-m pip install --no-deps", "rapidfuzz"]),
        ({"environment": "No module named 'rapidfuzz'", "pip": False}, ["uv pip install --python", "--no-deps"]),
        ({"verifiers": "0.4.0"}, ["verifiers 0.4.0", "cannot train on"]),
        ({"errors": [REFUSED, REFUSED]}, ["orchestrator.batch_sizes", "did you mean 'batch_size'?", "(and 1 more)"]),
    ],
)
def test_what_stops_a_run_is_one_line(
    place: Path, changes: dict[str, Any], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    report(place, **changes)
    assert prime.available(place)
    assert prime.run(prime_rl=place) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    for part in parts:
        assert part in captured.err


def test_install_command_names_this_checkout(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(place, environment="No module named 'supersede_env'")
    prime.run(prime_rl=place)
    python = place / ".venv" / "bin" / "python"
    assert f"{python} -m pip install --no-deps {ROOT} rapidfuzz" in capsys.readouterr().err


def test_a_python_that_breaks_is_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(place / ".venv" / "bin" / "python", "echo 'Segmentation fault' >&2; exit 139")
    assert prime.run(prime_rl=place) == 2
    assert "Segmentation fault" in capsys.readouterr().err


def test_launch_becomes_rl_at_file(place: Path, tmp_path: Path) -> None:
    report(place)
    call = f"prime.run(prime_rl={str(place)!r}, overrides=['--max_steps', '7', '--trainer.new_key', '1'])"
    done = subprocess.run(
        [sys.executable, "-c", f"from train import prime; {call}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    first, *toml, rl = done.stdout.splitlines()
    assert first == f"started @ outputs/supersede-qwen2.5-3b-lora.toml in {place / '.venv'}"
    config = tomllib.loads("\n".join(toml))
    assert config["max_steps"] == 7
    assert config["trainer"]["new_key"] == 1  # prime-rl's own classes decide on keys that the file does not hold
    assert rl == str(place / ".venv" / "bin" / "rl")


# --- with prime-rl itself ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> prime.Installation:
    found = prime.find(PRIME_RL)
    assert found is not None
    return found


@needs_prime_rl
def test_prime_rls_own_classes_accept_the_configuration(real: prime.Installation, base: dict[str, Any]) -> None:
    result = prime.check(real, "supersede_env", prime.to_toml(base))
    assert {k: result[k] for k in ("prime_rl", "environment", "errors")} == {
        "prime_rl": None,
        "environment": None,
        "errors": [],
    }


@needs_prime_rl
@pytest.mark.parametrize(
    ("override", "key", "near"),
    [
        ("--orchestrator.batch_sizes", "orchestrator.batch_sizes", "batch_size"),
        ("--trainer.optim.betaa1", "trainer.optim.adamw.betaa1", "betas1"),
        ("--orchestrator.train.source.env.taskset.budgett", "orchestrator.train.source.0", "budget"),
        ("--orchestrator.group_size", "orchestrator", "divisible"),
    ],
)
def test_prime_rls_own_classes_refuse(real: prime.Installation, override: str, key: str, near: str) -> None:
    config = prime.compose(overrides=[override, "7"], strict=False)
    first = prime.check(real, "supersede_env", prime.to_toml(config))["errors"][0]
    assert first["key"].startswith(key)
    assert near in first["near"] + first["problem"]


@needs_prime_rl
def test_rl_itself_takes_the_file(real: prime.Installation, tmp_path: Path) -> None:
    """`rl @ file --dry-run` resolves the whole configuration and writes what each of its processes would read."""
    command = [real.rl, "@", ROOT / "configs" / "supersede_rl.toml", "--dry-run", "--output-dir", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    resolved = next(tmp_path.rglob("orchestrator.json"))
    source = json.loads(resolved.read_text())["train"]["source"][0]
    assert source["env"]["taskset"]["id"] == "supersede-env"
    assert source["group_size"] == 8


@needs_prime_rl
def test_sft_itself_takes_its_file(real: prime.Installation, tmp_path: Path) -> None:
    command = [str(real.rl.with_name("sft")), "@", str(ROOT / "configs/supersede_sft.toml"), "--dry-run"]
    done = subprocess.run([*command, "--output-dir", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prime_rl
def test_a_saved_trace_becomes_n_plus_1_samples_with_only_sampled_tokens_trained(
    real: prime.Installation, tmp_path: Path
) -> None:
    out = tmp_path / "samples.json"
    subprocess.run([real.python, ROOT / "tests" / "prime_samples.py", out], check=True, capture_output=True)
    result = json.loads(out.read_text())
    calls = {tuple(call["prompt"]): call for call in result["calls"]}
    assert len(calls) == len(result["calls"]) == 7
    assert [trace["sessions"] for trace in result["traces"]] == [2, 3]
    for trace in result["traces"]:
        assert len(trace["samples"]) == trace["sessions"] + 1
        for sample in trace["samples"]:
            first = sample["mask"].index(True)
            call = calls.pop(tuple(sample["token_ids"][:first]))
            assert sample["token_ids"][first:] == call["completion"]
            assert sample["mask"] == [False] * first + [True] * len(call["completion"])
            assert sample["logprobs"] == [0.0] * first + call["logprobs"]
    assert calls == {}
