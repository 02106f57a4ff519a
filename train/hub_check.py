"""The whole check of both packages, as a list of findings; `python -m train.hub check` prints them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rewards.errors import UserError
from tests.scripted_endpoint import ScriptedEndpoint
from train import hub_places, hub_push, hub_trials, hub_wheels
from train.hub_build import Built, build
from train.hub_places import Place
from train.hub_rollouts import played_by
from train.hub_sources import assemble
from train.hub_spec import ROOT, Package
from train.hub_tables import stale

VERSIONS = ("0.3.1", "0.4.0")

DEVELOPMENT_VERIFIERS = "0.3.1.dev62"
"""What prime-rl 0.8.0 pins, as a release of the registry."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: `problem` is empty when it held."""

    package: str
    place: str
    check: str
    problem: str


Say = Callable[[Finding], None]


def findings(
    packages: tuple[Package, ...],
    scratch: Path,
    quick: bool,
    like: Path | None,
    golds: int | None,
    versions: tuple[str, ...],
) -> Iterator[Finding]:
    """All checks in order, cheap ones first. `like` is an environment whose freeze is imitated (prime-rl's);
    `golds` is how many of a package's default tasks are validated, None for all; `versions` of verifiers
    are installed on."""
    made: list[tuple[Package, Built]] = []
    for package in packages:
        yield Finding(package.name, "sources", "card's generated parts", stale(package))
        built = build(assemble(package, scratch / "src"), scratch / "dist")
        made.append((package, built))
        for check, problem in hub_wheels.checks(package, built):
            yield Finding(package.name, "wheel", check, problem)
    if len(made) == 2:
        both = hub_wheels.shared_files(made[0][1].wheel, made[1][1].wheel)
        yield Finding("both", "wheels", "no file owned by both", ", ".join(sorted(both)[:3]))
    uv, tools = hub_places.tools(scratch / "tools")
    if not quick:
        for package, built in made:
            pushed = (
                hub_push.with_prime(package, built.folder, tools, scratch)
                if tools
                else hub_push.by_rules(package, built.folder)
            )
            for check, problem in pushed:
                yield Finding(package.name, "push", check, problem)
    for version in versions[:1] if quick else versions:
        yield from _installed(made, version, uv, scratch, quick, golds)
    if not quick:
        yield from _moves_nothing(made, uv, scratch, like)


def _installed(
    made: list[tuple[Package, Built]], version: str, uv: str | None, scratch: Path, quick: bool, golds: int | None
) -> Iterator[Finding]:
    """Each package alone and both together in fresh environments on this verifiers, then the programs."""
    groups = [[pair] for pair in made] if not quick or len(made) == 1 else []
    groups += [made] if len(made) > 1 else []
    for group in groups:
        label = "both" if len(group) > 1 else "alone"
        name = "-".join([version, *(package.name for package, _ in group)])
        place = hub_places.fresh(scratch / name, uv)
        constraints = ("-c", str(ROOT / "constraints" / f"verifiers-{version}.txt"))
        done = place.install(*constraints, f"verifiers=={version}")
        before = {} if done.status else place.frozen()
        done = done if done.status else place.install(*constraints, *(str(built.wheel) for _, built in group))
        title = " + ".join(package.name for package, _ in group)
        yield Finding(title, f"{version} {label}", "installs in a fresh environment", done.problem)
        if done.status:
            continue
        added = set(place.frozen()) - set(before) - {package.name for package, _ in group}
        declared = {name for package, _ in group for name in package.needs}
        check = f"adds to verifiers alone: {', '.join(sorted(added)) or 'nothing'}"
        yield Finding(title, f"{version} {label}", check, ", ".join(sorted(added - declared)))
        inside = {package.name for package, _ in group}
        for package, _ in group:
            others = [other.module for other, _ in made if other.name not in inside]
            others += [name.replace("-", "_") for name in hub_wheels.HEAVY if name not in before]
            folder = scratch / f"{name}-{package.name}-probe"
            folder.mkdir()
            problem = hub_trials.probe(package, place, others, folder)
            yield Finding(package.name, f"{version} {label}", "imports and loads, both APIs", problem)
        if label == "both" or len(made) == 1:
            if quick:
                continue
            for package, _ in group:
                folder = scratch / f"{version}-{package.name}-empty"
                with ScriptedEndpoint(played_by(package)[package.plays]) as endpoint:
                    for check, problem in hub_trials.programs(package, place, version, endpoint, folder, golds):
                        yield Finding(package.name, f"{version} {label}", check, problem)


def _moves_nothing(
    made: list[tuple[Package, Built]], uv: str | None, scratch: Path, like: Path | None
) -> Iterator[Finding]:
    """Installing beside a 0.3.1 development verifiers adds packages and moves none.

    Both installers are asked, since each resolves for itself: pip what it would do, then uv (where it is) by doing it.
    """
    title, wheels = "both" if len(made) > 1 else made[0][0].name, [str(built.wheel) for _, built in made]
    place = hub_places.fresh(scratch / "development", uv)
    done = place.install(f"verifiers=={DEVELOPMENT_VERIFIERS}")
    where = f"beside {DEVELOPMENT_VERIFIERS}"
    yield Finding(title, where, "this verifiers installs", done.problem)
    if not done.status:
        yield from _additions(title, where, place, wheels, scratch)
        for package, _ in made:
            folder = scratch / f"development-{package.name}"
            folder.mkdir()
            problem = hub_trials.probe(package, place, [], folder)
            yield Finding(package.name, where, "imports and loads, both APIs", problem)
    if like is not None:
        imitation = Place(imitate(like, scratch / "imitation"), uv)
        yield from _additions(title, f"like {like.name}: {len(imitation.frozen())}", imitation, wheels, scratch)


def _additions(title: str, where: str, place: Place, wheels: list[str], scratch: Path) -> Iterator[Finding]:
    before = place.frozen()
    done = hub_places.pip_would(place, wheels, scratch)
    problem = done.problem
    if not problem:
        found = json.loads(done.said[done.said.index("{") :])["install"]
        added = {hub_places.normal(item["metadata"]["name"]): item["metadata"]["version"] for item in found}
        problem = _moved(before, before | added)
    yield Finding(title, where, "pip would move no version", problem)
    done = place.install(*wheels)
    yield Finding(title, where, "installing moves no version", done.problem or _moved(before, place.frozen()))


def refuse_no_environment(like: Path) -> None:
    """Raise `UserError` before the work and not after it."""
    if not (like / "bin" / "python").is_file() or not any(like.glob("lib/python*/site-packages")):
        raise UserError(f"--like {like}: not a virtual environment")


def imitate(like: Path, folder: Path) -> Path:
    """A throw-away environment that has the metadata of every distribution of `like`, and none of its code.

    Installers see the same versions; `like` itself is only read.
    """
    sites = sorted(like.glob("lib/python*/site-packages"))
    python = like / "bin" / "python"
    done = hub_places.run(
        [str(python), "-m", "venv", "--without-pip", str(folder)], folder.parent, hub_places.clean(folder.parent)
    )
    if done.status or not sites:
        raise UserError(f"--like {like}: it is no virtual environment, or its Python does not start")
    (target,) = folder.glob("lib/python*/site-packages")
    for info in sites[0].glob("*.dist-info"):
        (target / info.name).mkdir()
        for name in ("METADATA", "WHEEL", "INSTALLER", "top_level.txt"):
            if (info / name).is_file():
                shutil.copyfile(info / name, target / info.name / name)
        (target / info.name / "RECORD").write_text("")
    return folder


def _moved(before: dict[str, str], after: dict[str, str]) -> str:
    moved = [f"{name} {old} -> {after.get(name, 'gone')}" for name, old in before.items() if after.get(name) != old]
    return ", ".join(moved)
