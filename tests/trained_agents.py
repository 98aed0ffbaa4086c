"""Agents that tests of commands and experiments share: trained for a second, they decide oddly."""

from pathlib import Path

from bridge.cli.main import main

#: Jobs of the bundled workload's part behind what these agents have seen.
UNSEEN = 1800

_CONFIG = """\
[training]
epochs = 2
trajectories = 4
length = 64
part = [0.0, 0.6]
validation = [0.0, 0.6]
validate_every = 1
iterations = 2
critic_iterations = 2
"""


def train(folder: Path, *words: str) -> Path:
    """Train an agent on the bundled workload, 2 epochs of 4 episodes of 64 jobs, and return its folder."""
    config = folder.parent / "tiny.toml"
    config.write_text(_CONFIG)
    assert main(["train", *words, "--config", str(config), "--threads", "1", "--out", str(folder)]) == 0
    return folder
