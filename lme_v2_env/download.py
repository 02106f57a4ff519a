"""Fetch the published LongMemEval-V2 files: `python -m lme_v2_env.download DIR [--tier small]`.

Files come from the pinned revision and are compared with their sha256. What is already there and equal is kept, so that
the command resumes. Screenshots (5.9 GB) only with `--screenshots`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from lme_v2_env.dataset import load_questions
from lme_v2_env.trajectory import LARGEST_PICTURE
from rewards.commands import Parser, answered
from rewards.errors import UserError

HUB_DATASET = "xiaowu0162/longmemeval-v2"
HUB_REVISION = "f152293e235517d504809563c833d7190b8c713b"
"""The pinned revision of the published dataset (Apache-2.0)."""

SHA256 = {
    "questions.jsonl": "0a3ae5ebea938c24d7800e1e0b0828e08ae1646f939a53853b2b8cdc08e292b7",
    "trajectories.jsonl": "363cec9a8e87aa8d9101ce4e600aadbf7031d674056ebe4f969e8424abc5f3c6",
    "haystacks/lme_v2_small.json": "9b5301defb23a088a5f06e45ff8d5f35e569d78305a66d492046a9fff9b46593",
    "haystacks/lme_v2_medium.json": "4756d5126347f0d18f045bb6c47b08cb3b23e9db24386cc48a9b2879e7969b59",
}

SCREENSHOTS = ("web_screenshots", "enterprise_screenshots_base", "enterprise_screenshots_patch")
"""Archives (or folders) below trajectory_screenshots/, in this order: a patch replaces whole trajectories."""

Fetch = Callable[[str, Path], Path]
"""(file in the dataset, folder to keep it in) -> where it lies."""


def download(
    folder: Path,
    tiers: Iterable[str] = ("small", "medium"),
    *,
    screenshots: bool = False,
    fetch: Fetch | None = None,
    checksums: dict[str, str] | None = None,
) -> list[str]:
    """Bring the files into `folder`; returns what was fetched now. Raises `UserError`.

    `fetch` and `checksums` stand in for the Hub and its files.
    """
    fetch, checksums = fetch or hub_fetch, SHA256 if checksums is None else checksums
    names = ["questions.jsonl", *(f"haystacks/lme_v2_{tier}.json" for tier in tiers), "trajectories.jsonl"]
    fetched = []
    for name in names:
        target, expected = folder / name, checksums[name]
        if target.is_file() and sha256_of(target) == expected:
            continue
        got = fetch(name, folder)
        found = sha256_of(got)
        if found != expected:
            raise UserError(
                f"{name}: its sha256 is {found[:12]}..., expected {expected[:12]}...: delete it and start again"
            )
        fetched.append(name)
    if screenshots:
        for question in load_questions(folder / "questions.jsonl"):
            if question.image is not None and not question.image.is_file():
                fetch(question.image.relative_to(folder).as_posix(), folder)
                fetched.append(question.image.name)
        for name in SCREENSHOTS[:2]:
            archive = f"trajectory_screenshots/{name}.tar.gz"
            if not (folder / archive).is_file():
                fetch(archive, folder)
                fetched.append(archive)
        unpack_screenshots(folder)
    return fetched


def hub_fetch(name: str, folder: Path) -> Path:
    """One file from the Hub at the pinned revision."""
    try:
        from huggingface_hub import hf_hub_download
    except ModuleNotFoundError as error:
        raise UserError("downloading needs: pip install huggingface_hub") from error
    try:
        return Path(
            hf_hub_download(
                HUB_DATASET, name, repo_type="dataset", revision=HUB_REVISION, local_dir=folder, etag_timeout=10
            )
        )
    except Exception as error:  # the client raises many kinds, of several libraries; all mean: not to be had
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise UserError(f"{name} could not be downloaded ({reason}); the same command resumes") from error


def unpack_screenshots(folder: Path) -> int:
    """Put every trajectory's pictures at screenshots/<trajectory id>/; returns for how many this was done now.

    Links where the file system has them, copies elsewhere. Members that would leave the folder are refused.
    """
    source, target = folder / "trajectory_screenshots", folder / "screenshots"
    placed = 0
    for name in SCREENSHOTS:
        unpacked, archive = source / name, source / f"{name}.tar.gz"
        if not unpacked.is_dir() and archive.is_file():
            partial = source / f".{name}.{os.getpid()}"
            try:
                with tarfile.open(archive) as tar:
                    tar.extractall(partial, filter=_picture)
            except UserError:
                shutil.rmtree(partial, ignore_errors=True)
                raise
            except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
                shutil.rmtree(partial, ignore_errors=True)
                raise UserError(f"{archive.name} cannot be unpacked: {error}") from error
            inner = partial / name
            os.replace(inner if inner.is_dir() else partial, unpacked)
            shutil.rmtree(partial, ignore_errors=True)
        if unpacked.is_dir():
            placed += sum(_place(child, target / child.name, name.endswith("_patch")) for child in unpacked.iterdir())
    if not target.is_dir():
        raise UserError(f"{source}: no screenshots in it ({', '.join(SCREENSHOTS)})")
    return placed


def _picture(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """A folder or a file of a picture's size below `folder`; anything else is refused, links too: none is published."""
    if PurePosixPath(member.name).is_absolute():
        raise UserError(f"{member.name!r} in the archive leaves its folder")
    if not (member.isdir() or member.isfile()):
        raise UserError(f"{member.name!r} in the archive is neither a file nor a folder")
    if member.size > LARGEST_PICTURE:
        raise UserError(f"{member.name!r} in the archive is larger than {LARGEST_PICTURE >> 20} MiB")
    return tarfile.data_filter(member, folder)


def _place(child: Path, target: Path, replace: bool) -> bool:
    if not child.is_dir() or (target.exists() and not replace):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    elif target.is_dir():
        shutil.rmtree(target)
    try:
        target.symlink_to(os.path.relpath(child, target.parent), target_is_directory=True)
    except OSError:
        shutil.copytree(child, target)
    return True


def sha256_of(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


EXAMPLE = """example:
  python -m lme_v2_env.download longmemeval-v2 --tier small"""


def main(args: list[str]) -> int:
    parser = Parser("python -m lme_v2_env.download", (__doc__ or "").split("\n")[0], EXAMPLE)
    parser.add_argument("folder", type=Path, help="where to put it; what is there already is not fetched again")
    parser.add_argument("--tier", choices=("small", "medium", "both"), default="both")
    parser.add_argument("--screenshots", action="store_true", help="5.9 GB more; needed by readers that take pictures")
    options = parser.read(args)
    return answered("download", lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    tiers = ("small", "medium") if options.tier == "both" else (options.tier,)
    fetched = download(options.folder, tiers, screenshots=options.screenshots)
    print(f"{options.folder}: {', '.join(fetched) or 'everything was there'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
