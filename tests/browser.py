"""A browser for tests and measurements, where one is installed: Chromium without a window."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def program() -> str | None:
    """The browser's path, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def document(page: Path, fragment: str = "") -> str:
    """The page's document, as HTML, after its script has run."""
    found = program()
    assert found, "no browser"
    command = [found, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"]
    command += ["--virtual-time-budget=5000", "--dump-dom", f"{page.absolute().as_uri()}{fragment}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
