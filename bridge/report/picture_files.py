"""Files of pictures: their kinds, by the suffix."""

from pathlib import Path

from bridge.base.errors import BridgeError


def kind_of_picture(path: Path) -> str:
    """Return png or svg; BridgeError: it is neither."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise BridgeError("pictures are saved as .png or .svg", where=str(path), remedy="Change the suffix.")
    return kind
