"""How every picture looks: colours that colour-blind readers can tell apart, time axes, saving."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.errors import BridgeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito, "Color Universal Design" (2008), without black and with the yellow last.
COLOURS: tuple[str, ...] = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#8C8C8C",
    "#F0E442",
)
#: Text colour that reads well on each of them.
DARK_ON: dict[str, str] = dict.fromkeys(COLOURS, "black") | dict.fromkeys(("#0072B2", "#009E73"), "white")
RUNNING, WAITING, LIMIT = COLOURS[0], COLOURS[1], "#333333"
DPI = 150


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure of ``width`` × ``height`` inches that knows nothing of pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def plain(axes: "Axes", *, grid: str = "y") -> None:
    """Take the frame off and put a faint grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(visible=True, axis=grid, color="#dddddd", linewidth=0.6)  # type: ignore[arg-type]


def time_unit(span: float) -> tuple[float, str]:
    """Return the unit that suits a time axis of ``span`` seconds: its length in s, and its name."""
    for limit, unit, name in ((600, 1.0, "s"), (10_800, 60.0, "min"), (259_200, 3600.0, "h")):
        if span <= limit:
            return unit, name
    return 86_400.0, "days"


def save(figure: "Figure", path: Path | str) -> None:
    """Save a figure as PNG or SVG, by the suffix; an existing file is replaced only if all went well.

    Raises:
        BridgeError: another suffix, or the file cannot be written.
    """
    import matplotlib as mpl

    from bridge.files import replacing

    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise BridgeError("pictures are saved as .png or .svg", where=str(path), remedy="Change the suffix.")
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
    with replacing(path) as out, mpl.rc_context({"svg.hashsalt": "bridge", "svg.fonttype": "none"}):
        figure.savefig(out, format=kind, dpi=DPI, metadata=metadata)
