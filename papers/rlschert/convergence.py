"""RLSchert's Figures 7–9: how agents converge, beside SAF on the same sequences, epoch by epoch."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.learn.folder import PROGRESS
from bridge.report.style import COLOURS, LIMIT, new_figure, plain, save
from papers import store
from papers.rlschert.numbers import COMMAND, mean_of, results, smoke_of, smoke_warning
from papers.rlschert.play import Wanted, is_judged, row_of
from papers.rlschert.rows import CLAMP, HONEST, METHODS, Method, Sample
from papers.rlschert.train import Data

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]
FILE, PICTURE = "rlschert-convergence", "rlschert-figure-7.svg"
#: What results call a training, in place of what was played.
TRAINING = Sample("training", 0)
#: Epochs of the moving mean over an epoch's own sequences, which are new ones every time.
WINDOW = 10
#: An agent has converged when it is validated within this of its best.
NEAR = 0.01


@dataclass(frozen=True)
class Panel:
    """One of the figures: (title, objective, who kills)."""

    title: str
    objective: str
    kills: tuple[str, ...]

    @property
    def methods(self) -> list[Method]:
        """Who is in it."""
        return [m for m in METHODS if m.setting and m.kill in self.kills]


PANELS = (
    Panel("slowdown, no kills", "slowdown", ("none",)),
    Panel("completion time", "completion", ("none", "rule", "learned")),
    Panel("slowdown, kills", "slowdown", ("rule", "learned")),
)


def run(wanted: Wanted, data: Data) -> None:
    """Keep the training curves of all agents that exist."""
    for player in wanted.players(data, [m for m in METHODS if m.setting]):
        folder = player.folder(data)
        if folder is None or is_judged(FILE, player, TRAINING, data):
            continue
        result = {
            "row": player.row,
            "test": TRAINING.name,
            "label": player.label,
            "seed": player.seed,
            "digest": player.digest(TRAINING, data),
            "smoke": player.smoke,
            "agent": folder.name,
        }
        store.add(FILE, result | curve(pd.read_parquet(folder / PROGRESS)))


def curve(progress: pd.DataFrame) -> dict[str, object]:
    """Return what is drawn: means over SAF's, of each epoch's own sequences, and of validations."""
    validated = progress[progress["valid_mean"].notna()]
    return {
        "train": (progress["train_mean"] / progress["base_mean"]).to_numpy(np.float64),
        "epochs": validated["epoch"].to_numpy(np.int64),
        "valid": (validated["valid_mean"] / validated["valid_base"]).to_numpy(np.float64),
        "base": float(validated["valid_base"].iloc[-1]),
    }


def passes(epochs: npt.NDArray[np.int64], ratio: Floats) -> tuple[int, int]:
    """Return (first epoch that was validated below SAF, first since when every one was), -1 = none."""
    below = ratio < 1.0
    if not below.any():
        return -1, -1
    since = len(below) - int(np.argmin(below[::-1])) if not below.all() else 0
    return int(epochs[int(np.argmax(below))]), int(epochs[since]) if since < len(below) else -1


def converged(epochs: npt.NDArray[np.int64], ratio: Floats) -> int:
    """Return the first epoch that was validated within 1 % of the best."""
    return int(epochs[int(np.argmax(ratio <= ratio.min() * (1.0 + NEAR)))])


def text(data: pd.DataFrame) -> list[str]:
    """Return the section."""
    lines = []
    for panel in PANELS:
        for method in panel.methods:
            for label in (HONEST, CLAMP):
                found = results(data, row_of(method, panel.objective), TRAINING, label)
                if len(found):
                    lines.append(f"- {_sentence(panel, method, label, found)}")
    missing = f"Nobody has been trained here: `{COMMAND} --seeds 1`."
    return [
        "## Figures 7–9: convergence",
        "",
        "Validated means (seed 42, every few epochs, as the agent would be deployed) over SAF's; thin: the "
        f"epoch's own sequences, with exploration, moving mean over {WINDOW} epochs; in the first epochs "
        "(lessons) the teacher plays. Mean over seeds and, shaded, their range. SAF plays with the rule "
        "where the rule kills. The paper's agents pass SAF near iteration 100 and converge near 250. "
        f"*Converged*: first validated within {100 * NEAR:g} % of the best.",
        "",
        *(lines or [missing]),
        "",
        *([f"![Figures 7–9]({PICTURE})", ""] if lines else []),
    ]


def _sentence(panel: Panel, method: Method, label: str, found: pd.DataFrame) -> str:
    epochs, ratio = np.asarray(found["epochs"].iloc[0]), mean_of(found, "valid")
    first, since = passes(epochs, ratio)
    said = "is never validated below SAF" if first < 0 else f"passes SAF at epoch {first}"
    if first >= 0 and since != first:
        said += f", for good at epoch {since}" if since >= 0 else ", not for good"
    ours, base = float(ratio.min()), float(found["base"].iloc[0])
    return (
        f"{method.row} ({panel.objective}, {label}, {len(found)} seed{'s' if len(found) > 1 else ''}): "
        f"{said}; best {ours * base:.2f} beside SAF's {base:.2f} (means over seeds); "
        f"converged at epoch {converged(epochs, ratio)}.{smoke_warning(smoke_of(found))}"
    )


def draw(data: pd.DataFrame) -> Path | None:
    """Draw the three panels, honest agents; smoke rows are left out. None where nobody was trained."""
    figure = new_figure(11.0, 3.8)
    panels = figure.subplots(1, len(PANELS), sharex=True, sharey=True)
    drawn = False
    for axes, panel in zip(panels, PANELS, strict=True):
        for method, colour in zip(panel.methods, COLOURS, strict=False):
            found = results(data, row_of(method, panel.objective), TRAINING, HONEST)
            if not len(found) or smoke_of(found):
                continue
            drawn = True
            _line(axes, found, method, colour)
        axes.axhline(1.0, color=LIMIT, linewidth=0.8)
        axes.set_title(panel.title, fontsize="medium")
        axes.set_xlabel("epoch")
        axes.set_ylim(0.7, 1.7)
        plain(axes)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize="small")
    if not drawn:
        return None
    panels[0].set_ylabel("mean / SAF's")
    path = store.RESULTS / PICTURE
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)
    return path


def _line(axes: "Axes", found: pd.DataFrame, method: Method, colour: str) -> None:
    valid = np.stack([np.asarray(v, np.float64) for v in found["valid"]])
    epochs = np.asarray(found["epochs"].iloc[0])
    axes.plot(epochs, valid.mean(0), "o-", markersize=2, linewidth=1.2, color=colour, label=method.row)
    axes.fill_between(epochs, valid.min(0), valid.max(0), color=colour, alpha=0.2, linewidth=0)
    train = mean_of(found, "train")
    width = min(WINDOW, len(train))
    smooth = np.convolve(train, np.ones(width) / width, "valid")
    axes.plot(np.arange(width, len(train) + 1), smooth, linewidth=0.6, color=colour, alpha=0.8)
