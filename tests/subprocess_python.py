"""Runs Python in a process of its own."""

import subprocess
import sys
from typing import Any


def run_python(code: str, *words: object, **how: Any) -> "subprocess.CompletedProcess[str]":
    """Run code with these words to its end; what it says is text."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, **how)
