"""What `prime env push` does, short of sending: its own code where it is installed, else the rules it applies.

Its client and its uploads are replaced by ones that record what would be sent; the build, the content hash, the reading
of metadata and the source archive are its own.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import zipfile
from pathlib import Path

from rewards.errors import UserError
from train.hub_build import build
from train.hub_places import Place, clean, run
from train.hub_sources import pyproject
from train.hub_spec import Package
from train.hub_wheels import Check

PUSH = """
import json, socket, sys
from types import SimpleNamespace
from typer.testing import CliRunner
from prime_cli.commands import env
folder, archive = sys.argv[1:]
sent = []

class Client:
    config = SimpleNamespace(team_id=None, frontend_url="")
    def post(self, path, json=None, **_):
        sent.append((path, json))
        if path.endswith("/resolve"):
            return {"data": {"id": "local", "owner": {"name": "nobody", "type": "user"}, "created": True}}
        link = "record:wheel" if path.endswith("/wheels") else "record:source"
        return {"data": {"wheel_id": "w", "version_id": "v", "upload_url": link, "success": True}}
    get = patch = post

def put(url, content, **_):
    if url == "record:source":
        open(archive, "wb").write(content)
    sent.append((url, len(content)))
    return SimpleNamespace(raise_for_status=lambda: None)

def refuse(*args, **_):
    raise OSError("nothing is sent from here")

env.APIClient, env.httpx.put = Client, put
socket.socket.connect = refuse
done = CliRunner().invoke(env.app, ["push", "--path", folder])
if done.exit_code:
    sys.exit((done.output or "").strip() or repr(done.exception))
print("SENT " + json.dumps(sent))
"""


def with_prime(package: Package, folder: Path, tools: Place, scratch: Path) -> list[Check]:
    """Run the Hub's own push on a copy, with the network replaced; then build from what it would have archived."""
    copy = scratch / f"push-{package.name}"
    shutil.copytree(folder, copy)
    archive = scratch / f"{package.name}.tar.gz"
    surroundings = clean(scratch) | {"PATH": f"{tools.folder / 'bin'}:{clean(scratch)['PATH']}"}
    surroundings |= {"UV_CACHE_DIR": str(scratch / "uv-cache"), **_registry()}
    done = run([tools.python, "-c", PUSH, str(copy), str(archive)], scratch, surroundings)
    if done.status:
        return [("prime env push, recorded", done.problem)]
    line = next(line for line in done.said.splitlines() if line.startswith("SENT "))
    return [
        ("prime env push, recorded", _sent(package, json.loads(line[5:]))),
        ("its archive builds the same wheel", _archive(package, archive, copy, scratch)),
    ]


def by_rules(package: Package, folder: Path) -> list[Check]:
    """The rules of `prime env push` for a machine that cannot have it: what it reads is there."""
    project = pyproject(package)["project"]
    missing = [key for key in ("name", "version", "description", "tags", "license", "dependencies") if not project[key]]
    package_file = folder / package.module / "__init__.py"
    wrong = f"no {missing[0]}" if missing else "" if package_file.is_file() else "no top-level package"
    return [("push metadata (own rules)", wrong)]


def _registry() -> dict[str, str]:
    """How the user's installers find their index: the build inside the push needs it, too."""
    import os

    return {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_", "HTTP", "http"))
    }


def _sent(package: Package, sent: list[list]) -> str:
    bodies = {path.rpartition("/")[2]: body for path, body in sent if isinstance(body, dict)}
    wheel, version = bodies.get("wheels"), bodies.get("versions")
    if wheel is None or version is None:
        return f"it sends no wheel or no source archive, but {sorted(bodies)}"
    wanted = {"description": package.description, "tags": list(package.tags), "license": "Apache-2.0"}
    wrong = [name for name, value in wanted.items() if wheel["metadata"][name] != value]
    if wrong:
        return f"{wrong[0]} would be {wheel['metadata'][wrong[0]]!r}"
    if wheel["semantic_version"] != package.version or wheel["content_hash"] != version["content_hash"]:
        return "version or content hash differ between wheel and source archive"
    return (
        ""
        if str(wheel.get("runtime_hint")).lower() == "verifiers_v1"
        else f"its runtime class would be {wheel.get('runtime_hint')}"
    )


def _archive(package: Package, archive: Path, pushed: Path, scratch: Path) -> str:
    """Build from the archive, as `prime env pull` does for a private environment, and compare the files."""
    folder = scratch / f"pulled-{package.name}"
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (first,) = (pushed / "dist").glob("*.whl")
    try:
        again = build(folder, folder / "dist").wheel
    except UserError as error:
        return str(error)
    names = [set(zipfile.ZipFile(wheel).namelist()) for wheel in (first, again)]
    different = sorted(names[0] ^ names[1])
    return f"differs in {different[0]}" if different else ""
