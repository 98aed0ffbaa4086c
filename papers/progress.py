"""What a training says while it runs: a line every tenth of its epochs."""

from collections.abc import Callable
from typing import Any

#: Told what is being done.
Say = Callable[[str], None]


def reporting(epochs: int, base: str, say: Say) -> Callable[[Any], None]:
    """Return what a trainer calls with the progress of each epoch.

    Args:
        epochs: of the training.
        base: what the base policy is called.
        say: gets the lines.
    """
    every = max(1, epochs // 10)

    def report(p: Any) -> None:
        if p.epoch % every == 0:
            say(
                f"  epoch {p.epoch}/{epochs}: {p.train_mean:.2f} ({base} {p.base_mean:.2f}), "
                f"validated {p.valid_mean:.2f} ({base} {p.valid_base:.2f}), {p.seconds:.1f} s"
            )

    return report
