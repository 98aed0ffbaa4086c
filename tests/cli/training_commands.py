"""What the tests of `bridge train` and `bridge explain` share: a training of a second."""

import json
import re
import shlex
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from cli_commands import start_bridge
from trained_agents import CONFIG

#: What a training leaves.
FILES = {"agent.json", "weights.safetensors", "resume.safetensors", "progress.parquet"}
TINY_CONFIG = "test_from = 0.6\n\n" + CONFIG
#: Options of every such training; the config lies in the working folder.
TINY = ("--config", "tiny.toml", "--threads", "1")


def write_config(folder: Path, more: str = "") -> None:
    """Write ``tiny.toml``; further lines go to its table `training`."""
    (folder / "tiny.toml").write_text(TINY_CONFIG + more)


#: Longer than any of these commands should need, s: only a broken command takes that long.
PATIENCE = 180.0


def interrupted(out: str, epochs: int, *words: str) -> tuple[int, bytes]:
    """Train, press Ctrl-C behind the first epoch, and return the epochs that are saved and what was said."""
    process = start_bridge("train", *words, "--epochs", str(epochs), "--out", out)
    deadline = time.monotonic() + PATIENCE
    while not (Path(out) / "resume.safetensors").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    told, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, told) == (130, b""), (process.returncode, told, err)
    assert b"Traceback" not in err
    again = f"go on with `bridge train --resume --out {shlex.quote(out)}`"
    found = re.search(rf"(\d+) of {epochs} epochs are saved; {re.escape(again)}".encode(), err)
    assert found, err
    return int(found[1]), err


def agent(folder: Path | str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(folder) / "agent.json").read_text())
    return found


def epochs_of(out: str) -> list[int]:
    epochs: list[int] = pq.read_table(f"{out}/progress.parquet")["epoch"].to_pylist()
    return epochs
