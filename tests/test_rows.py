"""A run's files when the disk gives out."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.rows import RunFolder, write_atomic
from rewards.errors import UserError


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").symlink_to("/dev/full")
    folder = RunFolder.__new__(RunFolder)
    folder.folder = tmp_path
    with pytest.raises(UserError, match=r"rows\.jsonl cannot be written: No space left on device"):
        folder.append([{"id": "a"}])


def test_a_failed_replacement_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "rows.jsonl"
    target.mkdir()  # a folder in the way: the rename fails after the text was written
    with pytest.raises(UserError, match="the same command resumes"):
        write_atomic(target, "text")
    assert list(tmp_path.iterdir()) == [target]
