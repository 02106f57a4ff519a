"""What the evaluators of the installed verifiers make of good and bad endpoints, through `python -m eval supersede`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.episodes import record
from tests.scripted_endpoint import Messages, ScriptedEndpoint, echo

OLD_API = version("verifiers").startswith("0.3.")
BIN = Path(sys.executable).parent

FAULTS = {
    "500": "status 500: ",
    "window": "over window",
    "html": "not JSON (text/html): <html>",
    "null": "the endpoint answered without content",
    "reasoning": "the reply is reasoning only",
    "truncated": "not JSON (application/json): ",
    "no-choices": "turn 2 of 4",
}


def own_episodes(folder: Path, count: int) -> Path:
    file = folder / "own.jsonl"
    file.write_text("".join(json.dumps(record(number)) + "\n" for number in range(count)), encoding="utf-8")
    return file


def evaluate(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "eval", "supersede", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def rows_of(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "bounded" / "rows.jsonl").read_text().splitlines()]


def oracle(messages: Messages) -> str:
    """Repeats the harbour that it sees last before the end: right on these episodes."""
    harbours = [word for word in messages[-1]["content"].replace(".", " ").split() if word.startswith("Harbour")]
    return harbours[-1] if harbours else "unknown"


def test_each_fault_leaves_its_row_unscored_with_its_reason_and_resume_mends_it(tmp_path: Path) -> None:
    data, out = own_episodes(tmp_path, len(FAULTS) + 1), tmp_path / "run"

    def fault(messages: Messages, count: int) -> str | None:
        """In the second session of episode k the k-th fault; the last episode is spared."""
        for number, name in enumerate(FAULTS):
            if f"Harbour{number}x1 now" in messages[-1]["content"]:
                return name
        return None

    with ScriptedEndpoint(oracle, fault) as endpoint:
        first = evaluate("--model", "m", "--base-url", endpoint.url, "--data", data, "--out", out)
        assert first.returncode == 3, first.stderr
        assert "INVALID" in first.stdout
        rows = rows_of(out)
        for row, (name, reason) in zip(rows, FAULTS.items(), strict=False):
            assert not row["scored"], name
            assert row["r_cur"] is None
            assert reason in row["unscored_reason"], name
            assert reason in first.stdout
        assert (rows[-1]["verdict"], rows[-1]["r_cur"], rows[-1]["answer"]) == ("correct", 1, "Harbour7x2")

        endpoint.fault = lambda messages, count: None
        endpoint.requests.clear()
        second = evaluate("--model", "m", "--base-url", endpoint.url, "--data", data, "--out", out)
        assert second.returncode == 0, second.stderr
        assert [row["verdict"] for row in rows_of(out)] == ["correct"] * 8
        assert len(endpoint.requests) == 7 * 4  # the one good row was kept

        third = evaluate("--model", "other", "--base-url", endpoint.url, "--data", data, "--out", out)
        assert third.returncode == 2
        assert "holds another run: its model is 'm', now 'other'" in third.stderr


def test_a_cut_rows_file_is_made_anew_and_damage_is_named(tmp_path: Path) -> None:
    data, out = own_episodes(tmp_path, 3), tmp_path / "run"
    resolved = out / "bounded" / "traces" / "configs" / "resolved" / "eval.json"
    command = ["--model", "m", "--data", data, "--out", out, "--base-url"]
    with ScriptedEndpoint(oracle, lambda messages, count: "window" if "Harbour2x1 now" in str(messages) else None) as e:
        assert evaluate(*command, e.url).returncode == 3
    config = resolved.read_text()
    for text, message in (
        ("{}", "eval.json is damaged"),
        (config.replace('"budget": 300', '"budget": 0'), "the evaluator failed"),
    ):
        resolved.write_text(text)
        broken = evaluate(*command, e.url)
        assert (broken.returncode, broken.stderr.count("\n")) == (2, 1)
        assert message in broken.stderr
    resolved.write_text(config)
    with ScriptedEndpoint(oracle) as endpoint:  # the endpoint is now at another port
        assert evaluate(*command, endpoint.url).returncode == 0
        assert endpoint.count == 4
        file = out / "bounded" / "rows.jsonl"
        whole = file.read_text()
        file.write_text(whole[:-40])
        assert evaluate(*command, endpoint.url).returncode == 0
        assert file.read_text() == whole
        assert endpoint.count == 4
        file.write_text(whole.replace('"scored"', "scored", 1))
        assert "rows.jsonl, line 1 is damaged" in evaluate(*command, endpoint.url).stderr
        (out / "bounded" / "run.json").write_text("")
        assert "run.json is damaged" in evaluate(*command, endpoint.url).stderr


def test_a_terminated_run_ends_its_evaluator_and_resumes(tmp_path: Path) -> None:
    def slow(messages: Messages) -> str:
        time.sleep(0.2)
        return oracle(messages)

    with ScriptedEndpoint(slow) as endpoint:
        out = tmp_path / "run"
        args = ["--model", "m", "--base-url", endpoint.url, "--data", own_episodes(tmp_path, 16), "--out", out]
        args += ["--max-concurrent", "2"]
        process = subprocess.Popen([sys.executable, "-m", "eval", "supersede", *map(str, args)], stderr=subprocess.PIPE)
        while endpoint.count < 10:
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert b"interrupted; the same command resumes" in errors
        assert sum(row["scored"] for row in rows_of(out)) < 16
        assert evaluate(*args).returncode == 0  # no evaluator holds the folder
        assert sum(row["scored"] for row in rows_of(out)) == 16


def test_a_busy_endpoint_is_asked_again(tmp_path: Path) -> None:
    with ScriptedEndpoint(oracle, lambda messages, count: "429" if count == 2 else None) as endpoint:
        out = tmp_path / "run"
        data = own_episodes(tmp_path, 1)
        done = evaluate("--model", "m", "--base-url", endpoint.url, "--data", data, "--out", out)
        assert done.returncode == 0, done.stderr
        assert rows_of(out)[0]["verdict"] == "correct"
        assert endpoint.count == 5


def test_an_endpoint_that_is_down_scores_nothing(tmp_path: Path) -> None:
    data = own_episodes(tmp_path, 2)
    done = evaluate("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--data", data, "--out", tmp_path / "r")
    assert done.returncode == 3
    assert all(not row["scored"] and "ProviderError" in row["unscored_reason"] for row in rows_of(tmp_path / "r"))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--budget", "0"], "budget is 0"),
        (["--data", "orcle"], "did you mean 'oracle'"),
        (["--max-calls", "3"], "8 calls are needed, --max-calls allows 3"),
        (["--samples", "0"], "--samples is 0"),
        (["--wording", "plane"], "did you mean 'plain'"),
        (["--base-url", "localhost:1"], "does not begin with http"),
        (["--base-url", "http://localhost:99999/v1"], "names no host and port"),
        (["--bugdet", "5"], "unknown option '--bugdet'; did you mean '--budget'"),
        (["--budget", "1.5"], "argument --budget: invalid int value"),
        (["--temperature", "nan"], "--temperature is nan"),
        (["--stale-weight", "inf"], "--stale-weight is inf"),
        (["--adapter", "x"], "--adapter is for local models"),
        (["--base-url", "https://example.org/v1", "--api-key-var", "UNSET_KEY"], "UNSET_KEY is not set"),
    ],
)
def test_bad_input_gets_one_line_and_writes_nothing(tmp_path: Path, args: list[str], message: str) -> None:
    base = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--data", str(own_episodes(tmp_path, 2))]
    done = evaluate(*base, "--out", tmp_path / "run", *args)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_max_turns_below_the_rollout_is_refused_before_any_call(tmp_path: Path) -> None:
    program = [str(BIN / "eval"), "--no-serve"] if OLD_API else [str(BIN / "vf-eval")]
    with ScriptedEndpoint(echo) as endpoint:
        command = [program[0], "supersede-env", *program[1:], "--no-rich", "--no-push", "--model", "m"]
        command += ["--client.base-url", endpoint.url, "--client.api-key-var", "SCRIPTED_KEY"]
        command += ["-o", str(tmp_path / "o"), "--env.taskset.data", str(own_episodes(tmp_path, 1))]
        command += ["--env.agent.max-turns", "3"]
        environment = os.environ | {"SCRIPTED_KEY": "none"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode != 0
        assert "max_turns is 3, but secret-id-0 takes 4 turns" in done.stdout + done.stderr
        assert endpoint.count == 0


def test_validation_proves_every_gold(tmp_path: Path) -> None:
    """The good row is valid; the one whose superseded value would be graded right is not."""
    file = own_episodes(tmp_path, 1)
    bad, without = record(1, stale=["Harbour1x2"]), record(2, gold="")
    file.write_text(file.read_text() + json.dumps(bad) + "\n" + json.dumps(without) + "\n")
    program = str(BIN / ("validate" if OLD_API else "vf-validate"))
    command = [program, "supersede-env", "--taskset.data", str(file), "--runtime.type", "subprocess", "--no-rich"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    outcomes = json.loads(done.stdout[done.stdout.index("{\n") :])["outcomes"]
    assert (outcomes["valid"], outcomes["error"]) == (1, 1), done.stdout + done.stderr
    assert "n = 2 (1 unscorable: secret-id-2: no gold answer)" in done.stdout + done.stderr


@pytest.mark.skipif(OLD_API, reason="verifiers 0.3.x has MultiTurnEnv")
def test_multiturn_says_in_one_line_that_it_needs_the_old_api() -> None:
    import supersede_env

    with pytest.raises(ImportError, match=r"load_environment needs verifiers 0\.3\.x") as caught:
        supersede_env.load_environment()
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not OLD_API, reason="MultiTurnEnv lives in verifiers 0.3.x")
def test_multiturn_options_are_checked(tmp_path: Path) -> None:
    from rewards.errors import UserError
    from supersede_env import load_environment

    empty = tmp_path / "empty.jsonl"
    empty.touch()
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"presett": "quick"}, "did you mean 'preset'"),
        ({"budget": 0}, "budget is 0"),
        ({"preset": "quick", "num_episodes": 2, "max_turns": 1}, "max_turns is 1"),
        ({"preset": "quick", "num_episodes": 2, "max_turns": "9"}, "max_turns is '9': give a number"),
        ({"stale_weight": float("nan")}, "stale_weight is nan: give a number"),
        ({"data": str(empty)}, "empty.jsonl: no episode to play"),
    )
    for options, message in cases:
        with pytest.raises(UserError, match=message):
            load_environment(**options)


@pytest.mark.skipif(not OLD_API, reason="MultiTurnEnv lives in verifiers 0.3.x")
def test_multiturn_fails_a_rollout_that_was_stopped_before_its_answer(tmp_path: Path) -> None:
    def fault(messages: Messages, count: int) -> str | None:
        return "window" if "Harbour0x1 now" in messages[-1]["content"] else None

    with ScriptedEndpoint(oracle, fault) as endpoint:
        command = [str(BIN / "vf-eval"), "supersede-env", "-m", "m", "-b", endpoint.url, "-k", "SCRIPTED_KEY"]
        command += ["-n", "2", "-r", "1", "-s", "-o", str(tmp_path), "--disable-tui"]
        command += ["-a", json.dumps({"data": str(own_episodes(tmp_path, 2))})]
        environment = os.environ | {"SCRIPTED_KEY": "none"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (results,) = tmp_path.glob("evals/*/*/results.jsonl")
    rows = {row["example_id"]: row for row in map(json.loads, results.read_text().splitlines())}
    errors = {example: row["error"] for example, row in rows.items()}
    assert errors[1] is None
    assert [rows[example]["metrics"]["is_correct"] for example in (0, 1)] == [0, 1]
    assert [rows[example]["metrics"]["turns"] > 0 for example in (0, 1)] == [False, True]
    assert "stopped by prompt_too_long before its last turn" in str(errors[0])
