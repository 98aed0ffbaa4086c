"""TensorBoard's event files of a training, beside its checkpoint."""

import math
from pathlib import Path

from bridge.errors import BridgeError
from bridge.files import cannot_write
from bridge.learn.trainer import Progress

FOLDER = "tensorboard"
#: Progress's fields by the name of their curve.
CURVES = {
    "metric/train": "train_mean",
    "metric/train base": "base_mean",
    "metric/validation": "valid_mean",
    "metric/validation base": "valid_base",
    "reward": "reward_mean",
    "update/kl": "kl",
    "update/entropy": "entropy",
    "update/clip fraction": "clip_fraction",
    "update/iterations": "iterations",
    "loss/policy": "policy_loss",
    "loss/value": "value_loss",
    "time/decisions": "decisions",
    "time/seconds": "seconds",
}


class Events:
    """Writes one step per epoch.

    Args:
        folder: the checkpoint's; the files lie in its folder ``tensorboard``.
        done: epochs done before; later steps of an earlier, killed training are not shown.

    Raises:
        BridgeError: TensorBoard is not installed, or the folder cannot be written.
    """

    def __init__(self, folder: Path, done: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise BridgeError(
                "TensorBoard is not installed",
                where="--tensorboard",
                remedy="Run `pip install tensorboard`, or leave the option out: "
                "progress.parquet has the same curves.",
            ) from None
        self._path = folder / FOLDER
        try:
            self._writer = SummaryWriter(str(self._path), purge_step=done + 1)
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def write(self, entry: Progress) -> None:
        """Write an epoch's values; what was not measured has none."""
        try:
            for curve, field in CURVES.items():
                value = float(getattr(entry, field))
                if not math.isnan(value):
                    self._writer.add_scalar(curve, value, entry.epoch)
            self._writer.flush()
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def close(self) -> None:
        """Finish the file."""
        try:
            self._writer.close()
        except OSError as error:
            raise cannot_write(self._path, error) from error
