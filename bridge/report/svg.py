"""Makes pictures small: SVG with as many digits and points as an eye can see."""

import re
from collections import Counter
from hashlib import sha256

import numpy as np

from bridge.base.arrays import Flags, Floats

#: How far a line may move, in points (1/72 inch): the first that makes a picture small enough.
TOLERANCES = (0.3, 0.5, 0.8, 1.0)
#: Bytes of a picture in a repository, at most.
LARGEST = 60_000
#: Lines of fewer points stay as they are.
FEW = 12

_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_COMMENT = re.compile(r"\s*<!--.*?-->", re.DOTALL)
_PATH = re.compile(r'(?<= d=")[^"]*(?=")')
_NUMBER = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_ATTRIBUTE = re.compile(r'(?<= )(?:x|y|transform|width|height|style)="[^"]*"')
#: What draws nothing: a turn by no degrees, names of groups, fonts that stand in for the first one.
_NO_TURN = re.compile(r' transform="rotate\(-?0 [^)]*\)"')
_GROUP = re.compile(r"<g\b([^>]*)>|</g>")
_NAME = re.compile(r'(?: id="[A-Za-z.0-9]+_\d+")?')
_STYLE = re.compile(r'style="([^"]*)"')
_FONTS = re.compile(r"'DejaVu Sans', [^\"]*?sans-serif")
_POINT = re.compile(r"[ML]\s*(\S+)\s+(\S+)\s*")


def shrink(text: str) -> str:
    """Return a picture that looks the same: without metadata, with rounded numbers and straightened lines."""
    text = _COMMENT.sub("", _METADATA.sub("", text))
    text = _ATTRIBUTE.sub(
        lambda match: _NUMBER.sub(lambda number: _round(float(number[0]), 2), match[0]), text
    )
    text = _NO_TURN.sub("", _without_groups(_FONTS.sub("'DejaVu Sans', sans-serif", text)))
    text = re.sub(r"\s*\n\s*", "\n", _with_classes(text))
    for tolerance in TOLERANCES:
        small = _PATH.sub(lambda match: _shorten(match[0], tolerance), text)  # noqa: B023  (called at once)
        if len(small) <= LARGEST:
            break
    return small


def _without_groups(text: str) -> str:
    keeps: list[bool] = []

    def tag(match: re.Match[str]) -> str:
        if match[0] == "</g>":
            return match[0] if keeps.pop() else ""
        if match[1].endswith("/"):  # nothing is in it
            return ""
        keeps.append(not _NAME.fullmatch(match[1]))
        return match[0] if keeps[-1] else ""

    return _GROUP.sub(tag, text)


def _with_classes(text: str) -> str:
    """Return a picture whose repeated styles stand once; a class is named by what it says."""
    if "</style>" not in text:
        return text
    counts = Counter(_STYLE.findall(text))
    names = {style: f"c{sha256(style.encode()).hexdigest()[:6]}" for style, n in counts.items() if n > 2}
    text = _STYLE.sub(lambda match: f'class="{names[match[1]]}"' if match[1] in names else match[0], text)
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    return text.replace("</style>", f"{rules}</style>", 1)


def _shorten(path: str, tolerance: float) -> str:
    """Return a path with rounded numbers; a line of many points with those that make a difference."""
    points = _POINT.findall(path)
    if len(points) >= FEW and not _POINT.sub("", path).strip():
        line = np.array(points, np.float64)
        kept = line[straighten(line, tolerance)]
        rest = " ".join(f"{_round(x, 1)} {_round(y, 1)}" for x, y in kept[1:].tolist())
        return f"M{_round(kept[0, 0], 1)} {_round(kept[0, 1], 1)}L{rest}"
    return " ".join(_NUMBER.sub(lambda number: _round(float(number[0]), 2), path).split())


def _round(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def straighten(line: Floats, tolerance: float) -> Flags:
    """Return which points of a line, [n, 2], to keep: without the others it moves by `tolerance` at most.

    The method of Ramer, Douglas and Peucker: keep the point that is farthest from the straight line between
    the ends, and go on at both sides, until none is farther than the tolerance.
    """
    keep = np.zeros(len(line), np.bool_)
    keep[[0, -1]] = True
    parts = [(0, len(line) - 1)]
    while parts:
        first, last = parts.pop()
        if last - first < 2:
            continue
        start, step = line[first], line[last] - line[first]
        offset = line[first + 1 : last] - start
        length = float(step @ step)
        along = np.clip(offset @ step / length, 0.0, 1.0) if length else np.zeros(len(offset))
        distance = np.linalg.norm(offset - along[:, None] * step, axis=1)
        farthest = int(distance.argmax())
        if distance[farthest] > tolerance:
            middle = first + 1 + farthest
            keep[middle] = True
            parts += [(first, middle), (middle, last)]
    return keep
