"""What long work says: who is told, and a training's lines."""

from collections.abc import Callable

from bridge.learn.recipe import AnyRecipe
from bridge.learn.trainer import Progress

#: Told what is being done.
Say = Callable[[str], None]


def reporting(recipe: AnyRecipe, base: str, say: Say) -> Callable[[Progress], None]:
    """Return what is called with every epoch: it says a line every tenth of them.

    Args:
        recipe: of the training.
        base: what the base policy is called.
        say: gets the lines.
    """
    epochs = recipe.training.epochs

    def report(p: Progress) -> None:
        if p.epoch % max(1, epochs // 10) == 0:
            say(
                f"  epoch {p.epoch}/{epochs}: {p.train_mean:.2f} ({base} {p.base_mean:.2f}), "
                f"validated {p.valid_mean:.2f} ({base} {p.valid_base:.2f}), {p.seconds:.1f} s"
            )

    return report
