"""Trials of installed packages in an empty folder, from the wheel alone: import, load, evaluate, validate, replay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.scripted_endpoint import ScriptedEndpoint
from train.hub_places import Place, clean, run
from train.hub_spec import SHARED, Package
from train.hub_wheels import Check

TASKS = 5
VALIDATED = 25
"""Tasks whose gold is proved by default, on each version."""

PROBE = """
import importlib.metadata, importlib.util, json, sys, time
name, module, options, absent = json.loads(sys.argv[1])
for other in absent:
    assert importlib.util.find_spec(other) is None, f"{other} can be imported here"
start = time.process_time()
home = __import__(module)
light = time.process_time() - start
assert "verifiers" not in sys.modules, "importing the package imports verifiers"
assert "site-packages" in home.__file__, home.__file__
from verifiers.v1.utils.loaders import load_taskset, taskset_config_type
taskset = load_taskset(taskset_config_type(name)(id=name, **options))
task = next(iter(taskset))
assert task.data.prompt, "a task without a prompt"
if importlib.metadata.version("verifiers").startswith("0.3"):
    import verifiers
    environment = verifiers.load_environment(name, **options)
    assert len(environment.get_dataset()), "no rows"
else:
    try:
        home.load_environment
    except ImportError as error:
        assert "0.3" in str(error), error
    else:
        raise AssertionError("load_environment promises what this verifiers has not")
print(f"import {light:.2f} s of CPU, task {task.data.name}")
"""


def probe(package: Package, place: Place, others: list[str], folder: Path) -> str:
    """Import, both loaders, and that nothing else came along."""
    options = dict(package.try_options) | (
        {"num_episodes": 3} if package.name == "supersede-env" else {"num_worlds": 1}
    )
    absent = [*SHARED, "train", "eval", "configs", *others]
    words = json.dumps([package.name, package.module, options, absent])
    return run([place.python, "-c", PROBE, words], folder, clean(folder)).problem


def programs(
    package: Package, place: Place, version: str, endpoint: ScriptedEndpoint, folder: Path, golds: int | None
) -> Iterator[Check]:
    """The evaluator, its replay, the validator (on the default tasks) and, on 0.3, the classic evaluator."""
    folder.mkdir()
    old = version.startswith("0.3")
    evaluate, validate, replay = ("eval", "validate", "replay") if old else ("vf-eval", "vf-validate", "vf-replay")
    chosen = [word for name, value in package.try_options for word in (f"--env.taskset.{name}", value)]
    served = ["--client.base-url", endpoint.url, "--client.api-key-var", "SCRIPTED_KEY"]
    command = [package.name, "--model", "scripted", *served, "-n", str(TASKS), "-r", "1", *chosen]
    done = run([place.program(evaluate), *command, "--no-rich", "--no-push"], folder, clean(folder))
    played = _rewards(folder, "scripted")
    yield f"{evaluate}: {TASKS} tasks", done.problem or _wanting(played, TASKS)
    source = next((folder / "outputs").glob(f"{package.name}--scripted*"), None)
    if source is not None:
        done = run([place.program(replay), str(source.relative_to(folder)), "--no-rich"], folder, clean(folder))
        again = _rewards(folder, "replay")
        same = "" if again == played else f"rewards were {played} and are {again}"
        yield f"{replay}: the same rewards", done.problem or same
    limit = ["-n", str(golds)] if golds else []
    command = [package.name, *limit, "--runtime.type", "subprocess", "--no-rich"]
    done = run([place.program(validate), *command], folder, clean(folder))
    told, problem = _validated(folder, golds)
    yield f"{validate}: {told} golds", done.problem or problem
    if old:
        options = json.dumps(dict(package.try_options))
        command = [package.name, "-m", "scripted", "-b", endpoint.url, "-k", "SCRIPTED_KEY", "-s", "-a", options]
        done = run([place.program("vf-eval"), *command], folder, clean(folder))
        rows = [row for file in folder.glob("outputs/evals/*/*/results.jsonl") for row in file.read_text().splitlines()]
        failed = [row for row in rows if json.loads(row).get("error")]
        wrong = f"{len(rows)} rows, {len(failed)} failed" if len(rows) != 15 or failed else ""
        yield "vf-eval (classic): 5 x 3 by default", done.problem or wrong


def _rewards(folder: Path, mark: str) -> list[tuple[str, float, bool]]:
    """(task, reward, ok) of every trace of the runs whose folder's name has `mark`, in the order of tasks."""
    found = []
    for file in folder.glob(f"outputs/*--{mark}*/**/traces.jsonl"):
        for line in file.read_text().splitlines():
            record = json.loads(line)
            for trace in record.get("traces", [record]):
                reward = sum(part["score"] * part["weight"] for part in trace["rewards"].values())
                found.append((trace["task"]["data"]["name"], reward, trace["ok"]))
    return sorted(found)


def _wanting(played: list[tuple[str, float, bool]], tasks: int) -> str:
    if len(played) != tasks:
        return f"{len(played)} traces"
    if not all(ok for _, _, ok in played):
        return "a rollout failed"
    return "" if any(reward > 0 for _, reward, _ in played) else "no rollout earned a reward"


def _validated(folder: Path, golds: int | None) -> tuple[int, str]:
    """(tasks whose gold is proved, what is wrong)."""
    files = list(folder.glob("outputs/*--validate--*/summary.json"))
    if len(files) != 1:
        return 0, "no summary"
    outcomes = json.loads(files[0].read_text())["outcomes"]
    valid, total = outcomes["valid"], sum(outcomes.values())
    return valid, "" if valid == total and valid == (golds or total) and valid else f"outcomes: {outcomes}"
