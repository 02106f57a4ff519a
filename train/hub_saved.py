"""The saved rollouts of a package's report: five tasks three times a scripted policy, as `vf-eval -s` writes them.

They are made by the assembled sources, not by the repository's, and must agree with the card's table.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from rewards.errors import UserError
from tests.scripted_endpoint import ScriptedEndpoint
from train.hub_build import last_line
from train.hub_places import clean, run
from train.hub_rollouts import ROLLOUTS, TASKS, mean_reward, played_by
from train.hub_spec import Package


def can_save() -> bool:
    """The classic evaluator, whose files the Hub shows, is in verifiers 0.3 only."""
    return version("verifiers").startswith("0.3")


def save(package: Package, folder: Path, policy: str) -> Path:
    """Play `policy` through the classic evaluator in `folder`; returns the run's folder in outputs/evals/."""
    program = Path(sys.executable).with_name("vf-eval")
    model = f"scripted-{policy}"
    with ScriptedEndpoint(played_by(package)[policy]) as endpoint:
        counts = ["-n", str(TASKS), "-r", str(ROLLOUTS), "-a", json.dumps(dict(package.try_options))]
        command = [str(program), package.name, "-m", model, "-b", endpoint.url, "-k", "SCRIPTED_KEY", "-s", *counts]
        with tempfile.TemporaryDirectory() as home:
            own = {"PYTHONPATH": str(folder.resolve()), "PYTHONDONTWRITEBYTECODE": "1"}
            done = run(command, folder, clean(Path(home)) | own)
    found = sorted(folder.glob(f"outputs/evals/{package.name}--{model}/*/metadata.json"))
    if done.status or len(found) != 1:
        raise UserError(f"{package.name}: the rollouts of '{policy}' were not saved: {last_line(done.said)}")
    played, wanted = json.loads(found[0].read_text("utf-8"))["avg_reward"], mean_reward(package, policy)
    if abs(played - wanted) > 1e-9:
        raise UserError(f"{package.name}: '{policy}' got {played} from the evaluator and {wanted} from the protocol")
    for log in found[0].parent.glob("*.log"):  # of the evaluator's own server: times and folders of this machine
        log.unlink()
    return found[0].parent
