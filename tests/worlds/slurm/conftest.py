"""What several tests of the live world share."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")


@pytest.fixture(name="look")
def browser(tmp_path: Path) -> Callable[[str], str]:
    """Return what a browser makes of a page: its document after scripts have run."""
    if CHROMIUM is None:
        pytest.skip("Chromium (Debian's package chromium) is not installed")

    def look(address: str) -> str:
        words = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        words += [f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=2000", "--dump-dom", address]
        done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=True)
        return done.stdout

    return look
