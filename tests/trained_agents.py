"""Agents that tests of commands and experiments share: trained for a second, they decide oddly."""

from pathlib import Path

from bridge.cli.main import main

#: Jobs of the bundled workload's part behind what these agents have seen.
UNSEEN = 1800

#: A training of a second, of an agent of the event-driven scheduler.
CONFIG = """\
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
#: The same of an agent of the time-stepped pool; further lines go to its table `training`.
POOL_CONFIG = """\
[pool]
units = 12

[network]
hidden = [8]

[training]
epochs = 2
sequences = 2
steps = 20
rate = 0.5
valid_sequences = 2
validate_every = 1
"""


def train(folder: Path, *words: str) -> Path:
    """Train an agent on the bundled workload, 2 epochs of 4 episodes of 64 jobs, and return its folder."""
    config = folder.parent / "tiny.toml"
    config.write_text(CONFIG)
    assert main(["train", *words, "--config", str(config), "--threads", "1", "--out", str(folder)]) == 0
    return folder
