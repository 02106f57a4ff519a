"""The Hub packages, without network: sources that stand alone, cards that are current, findings that can fail.

`python -m train.hub check` proves the rest in fresh environments: installation, evaluators, replay, the Hub's own push.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rewards.errors import UserError
from train import hub, hub_spec, hub_tables, hub_wheels
from train.hub_sources import assemble, rewrite, third_party
from train.hub_spec import OPTIONAL, PACKAGES, ROOT, WITH_VERIFIERS, Package

ALONE = """
import importlib.abc, json, sys
module, rows, folder = json.loads(sys.argv[1])

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in {"rewards", "generators", "train", "eval", "configs", "tests", "torch", "verifiers"}:
            raise ModuleNotFoundError(f"{name} is not in the package", name=name)

sys.meta_path.insert(0, Blocked())
sys.path.insert(0, folder)
import importlib, pkgutil
home = importlib.import_module(module)
assert home.__file__.startswith(folder), home.__file__
for found in pkgutil.walk_packages(home.__path__, module + "."):
    if found.name.rpartition(".")[2] not in ("taskset", "multiturn", "openenv", "__main__"):
        importlib.import_module(found.name)
data = importlib.import_module(module + ".data")
if module == "supersede_env":
    for split in ("train", "validation"):
        made = data.load_episodes(data.DataConfig(split, num_episodes=2)).episodes
        rows[split] = [episode.to_record() for episode in made]
    protocol, view = importlib.import_module(module + ".protocol"), made[0].view
    rows["prompt"] = protocol.NotesRollout(view, protocol.ProtocolConfig()).prompt()
    longmemeval = importlib.import_module(module + ".longmemeval")
else:
    config = data.DataConfig("heldout", "easy", num_questions=3)
    made = data.load_tasks(config, pictures=False, judged=False, premises=False)
    rows["heldout"] = [task.to_record() for task in made]
    reading = importlib.import_module(module + ".reading")
    reading.reader_of(reading.ReaderConfig())
print(json.dumps(rows))
"""


@pytest.fixture(scope="module")
def assembled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("hub")
    return {package.name: assemble(package, out) for package in PACKAGES}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_the_package_alone_gives_the_same_tasks(package: Package, assembled: dict[str, Path], tmp_path: Path) -> None:
    """Every module imports and every bank loads with this folder alone; the tasks equal the repository's."""
    words = json.dumps([package.module, {}, str(assembled[package.name])])
    done = subprocess.run([sys.executable, "-I", "-c", ALONE, words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    if package.module == "supersede_env":
        from supersede_env.data import DataConfig, load_episodes

        for split in ("train", "validation"):
            episodes = load_episodes(DataConfig(split, num_episodes=2)).episodes
            assert rows[split] == json.loads(json.dumps([episode.to_record() for episode in episodes]))
        assert rows["prompt"][1]["content"].startswith("NOTES so far")
    else:
        from lme_v2_env.data import DataConfig as LmeData
        from lme_v2_env.data import load_tasks

        config = LmeData("heldout", "easy", num_questions=3)
        tasks = load_tasks(config, pictures=False, judged=False, premises=False)
        assert rows["heldout"] == json.loads(json.dumps([task.to_record() for task in tasks]))


def test_no_file_is_owned_by_both(assembled: dict[str, Path]) -> None:
    owned = [
        {str(path.relative_to(folder)) for path in (folder / package.module).rglob("*") if path.is_file()}
        for package, folder in zip(PACKAGES, assembled.values(), strict=True)
    ]
    assert all(owned)
    assert not owned[0] & owned[1]
    for package, files in zip(PACKAGES, owned, strict=True):
        assert {f"{package.module}/{name}" for name in package.data} <= files
        assert {name.partition("/")[0] for name in files} == {package.module}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_metadata_and_imports(package: Package, assembled: dict[str, Path]) -> None:
    folder = assembled[package.name]
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert "verifiers>=0.3.1.dev59,<0.5" in project["dependencies"]
    assert project["license"] == "Apache-2.0"
    assert project["tags"]
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    found = third_party((folder / package.module).rglob("*.py"), [package.module])
    needed = {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}
    assert set(found) <= needed | WITH_VERIFIERS | OPTIONAL
    assert needed <= set(found), "a dependency that nothing imports"
    assert not any(found.get(name) for name in OPTIONAL)
    sources = [path.read_text() for path in (folder / package.module).rglob("*.py")]
    assert not [text for text in sources if re.search(r"python -m (rewards|generators)\b", text)]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_cards_are_current_and_whole(package: Package) -> None:
    assert hub_tables.stale(package) == "", "run: python -m train.hub tables"
    card = (ROOT / package.module / "README.md").read_text()
    assert hub_wheels.card_problem(card) == ""
    from lme_v2_env.scoring import METRICS as LME_METRICS

    named = re.findall(r"METRICS = \((.*?)\)", (ROOT / package.module / "multiturn.py").read_text(), re.DOTALL)
    names = re.findall(r'"(\w+)"', named[0]) if named else LME_METRICS
    metrics = card.partition("## Metrics")[2].partition("## Evaluation reports")[0]
    assert names
    missing = [name for name in names if f"`{name}`" not in metrics and not name.startswith("stop_")]
    assert missing == []


def test_a_changed_default_makes_the_card_stale(tmp_path: Path) -> None:
    """The check can fail, and `rewrite` mends it."""
    package = PACKAGES[0]
    for name in ("supersede_env", "lme_v2_env"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    source = tmp_path / "supersede_env" / "taskset.py"
    source.write_text(source.read_text().replace("budget: int = 300", "budget: int = 301"))
    assert hub_tables.stale(package, tmp_path) == "out of date: arguments"
    hub_tables.rewrite(package, tmp_path)
    assert hub_tables.stale(package, tmp_path) == ""
    assert "| `budget` | int | `301` |" in (tmp_path / "supersede_env" / "README.md").read_text()
    source.write_text(
        source.read_text().replace('    """Show the dates', '    "" """Show the dates').replace('"""B:', '1 + """B:')
    )
    with pytest.raises(UserError, match="budget has no docstring"):
        hub_tables.stale(package, tmp_path)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("from rewards.text import x\n", "from env._rewards.text import x\n"),
        ("if a:\n    from generators import webworld\n", "if a:\n    from env._generators import webworld\n"),
        ("from rewards.a import (\n    b,\n    c,\n)\n", "from env._rewards.a import (\n    b,\n    c,\n)\n"),
        ("import json\nrewards = 1\n", "import json\nrewards = 1\n"),
        ('s = "from rewards.text import x"\n', 's = "from rewards.text import x"\n'),
        ('"""Run `python -m generators.timelines`."""\n', '"""Run `python -m env._generators.timelines`."""\n'),
        ("from rewardsome import x\n", "from rewardsome import x\n"),
    ],
)
def test_rewriting(text: str, wanted: str) -> None:
    assert rewrite(text, "env", "a.py") == wanted


def test_what_cannot_be_rewritten_is_refused() -> None:
    with pytest.raises(UserError, match=r"a.py, line 2: write `from rewards.text import"):
        rewrite("import json\nimport rewards.text\n", "env", "a.py")


def test_beside_the_development_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_spec, "_installed", lambda name: name in ("supersede-envs", "lme-v2-env"))
    with pytest.raises(UserError, match="pip uninstall lme-v2-env"):
        hub_spec.refuse_beside()
    monkeypatch.setattr(hub_spec, "_installed", lambda name: name != "supersede-envs")
    hub_spec.refuse_beside()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chek"], "did you mean 'check'"),
        (["check", "--only", "supersede"], "did you mean 'supersede-env'"),
        (["check", "--quik"], "did you mean '--quick'"),
        (["build"], "--out"),
    ],
)
def test_errors_are_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = hub.main(words)
    except SystemExit as error:
        status = error.code
    assert status == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
