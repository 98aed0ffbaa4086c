"""What the tests of `bridge train` and `bridge explain` share: a training of a second."""

from pathlib import Path

TINY_CONFIG = """\
test_from = 0.6

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
#: Options of every such training; the config lies in the working folder.
TINY = ("--config", "tiny.toml", "--threads", "1")


def write_config(folder: Path, more: str = "") -> None:
    """Write ``tiny.toml``; further lines go to its table `training`."""
    (folder / "tiny.toml").write_text(TINY_CONFIG + more)
