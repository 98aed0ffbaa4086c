"""Small pictures: nothing that is visible is lost, and none in the repository is large."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from bridge.report.plots import save
from bridge.report.svg import LARGEST, TOLERANCES, shrink, straighten

ROOT = Path(__file__).parents[2]
COORDINATES = st.floats(0, 500).map(lambda x: round(x, 3))


@given(st.lists(st.tuples(COORDINATES, COORDINATES), min_size=2, max_size=60), st.floats(0, 50))
def test_a_line_moves_by_the_tolerance_at_most(points: list[tuple[float, float]], tolerance: float) -> None:
    line = np.array(points)
    kept = np.flatnonzero(straighten(line, tolerance))
    assert kept[0] == 0
    assert kept[-1] == len(line) - 1
    for first, last in pairwise(kept):
        for point in line[first : last + 1]:  # its distance from the part that stands for it
            shares = np.linspace(0, 1, 2001)[:, None]
            between = line[first] + shares * (line[last] - line[first])
            step = float(np.linalg.norm(line[last] - line[first])) / 2000
            assert np.linalg.norm(between - point, axis=1).min() <= tolerance + step


def test_a_straight_line_has_two_points() -> None:
    line = np.stack([np.arange(100.0), 2 * np.arange(100.0)], axis=1)
    assert straighten(line, 0.1).sum() == 2


def test_a_shrunk_picture_says_and_shows_the_same(tmp_path: Path) -> None:
    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    x = np.linspace(0, 10, 5000)
    axes.plot(x, np.sin(x), label="sine")
    axes.set(xlabel="time (s)", title="a < b & c")
    axes.legend()
    path = tmp_path / "plain.svg"
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(path, format="svg")
    before = path.read_text()
    after = shrink(before)
    assert len(after) < 0.7 * len(before)
    trees = [ElementTree.fromstring(text) for text in (before, after)]
    for tag in ("path", "text", "use", "clipPath"):
        first, second = ([e for e in tree.iter() if e.tag.endswith("}" + tag)] for tree in trees)
        assert len(first) == len(second)
    assert "class=" in after
    curve = max(re.findall(r' d="M([^"]*)"', after), key=len)
    points = np.array(re.findall(r"[\d.]+", curve), np.float64).reshape(-1, 2)
    line = max(re.findall(r' d="([^"]*)"', before), key=len)
    true = np.array(re.findall(r"[ML] (\S+) (\S+)", line), np.float64)
    assert 10 < len(points) < len(true)
    heights = np.interp(true[:, 0], points[:, 0], points[:, 1])
    assert np.abs(heights - true[:, 1]).max() < 3 * TOLERANCES[0]  # steep parts: vertical distance is more
    save(figure, tmp_path / "saved.svg")
    assert len((tmp_path / "saved.svg").read_text()) < 0.7 * len(before)


def test_no_picture_of_the_documentation_is_large() -> None:
    pictures = [p for p in (ROOT / "docs").rglob("*") if p.suffix in (".svg", ".png", ".webp", ".jpg")]
    assert len(pictures) > 100
    assert [p.name for p in pictures if p.stat().st_size > LARGEST] == []


def test_a_group_with_nothing_in_it_goes_whole() -> None:
    group = '<g id="axes_2"><g id="matplotlib.axis_4"/><path d="M 0 0"/></g>'
    small = ElementTree.fromstring(shrink(f"<svg>{group}</svg>"))
    assert [element.tag for element in small.iter()] == ["svg", "path"]


def test_every_picture_of_the_documentation_can_be_drawn() -> None:
    for path in sorted((ROOT / "docs").rglob("*.svg")):
        ElementTree.parse(path)
