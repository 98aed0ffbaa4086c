"""The page in a real browser: all is drawn, light and dark, narrow and wide, and nothing is loaded."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page_material import EVALUATION, EVIL, small_run, write_checkpoint, write_json, write_validation
from playwright.sync_api import Browser, Page, sync_playwright

from bridge.judge.run import write_run
from bridge.report.page import read_inputs, write_page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
#: Longest wait for an answer, s: a guard against hanging, not a measure.
PATIENCE = 60.0
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium or google-chrome on the PATH")
DRAWN = "document.documentElement?.dataset.charts === 'drawn'"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
GANTT = "[...document.querySelectorAll('.plot')].find(p => p.data[0].type === 'bar')"
#: The colour of the first chart's axis titles.
INK = "document.querySelector('.plot .xtitle').style.fill"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page of every kind of input, with names that would like to be scripts."""
    folder = tmp_path_factory.mktemp("page")
    run = small_run()
    jobs = run.jobs.assign(job_id=["A", EVIL, "C", "D", "R"])
    write_run(replace(run, jobs=jobs, config={"command": EVIL}), folder / "run")
    first, second = EVALUATION["policies"]
    named = EVALUATION | {"workload": EVIL, "policies": [first, second | {"agent": EVIL}]}
    inputs = [
        folder / "run",
        write_validation(folder / "val"),
        write_json(folder / "e.json", named),
        write_checkpoint(folder / "agent", name=EVIL),
    ]
    write_page(read_inputs(inputs), folder / "page.html", EVIL)
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=CHROMIUM)


def show(browser: Browser, page: Path, *, width: int = 1400, dark: bool = False) -> tuple[Page, list[str]]:
    """Load a page from disk and wait until it is drawn; return its tab, and its troubles so far.

    Troubles are errors in the console, exceptions, and everything that is loaded from elsewhere.
    """
    troubles: list[str] = []
    tab = browser.new_page(
        viewport={"width": width, "height": 900},
        is_mobile=width < 600,
        color_scheme="dark" if dark else "light",
    )
    tab.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "assert") else None)
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    here = ("file:", "data:", "blob:")
    tab.on("request", lambda asked: None if asked.url.startswith(here) else troubles.append(asked.url))
    tab.goto(page.resolve().as_uri())
    until(tab, DRAWN)
    return tab, troubles


def until(tab: Page, expression: str) -> Any:
    """Wait until an expression is truthy, and return its value (the page forbids ``wait_for_function``)."""
    end = time.monotonic() + PATIENCE
    while not (value := tab.evaluate(expression)):
        assert time.monotonic() < end, expression
        tab.wait_for_timeout(50)
    return value


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (390, False), (390, True)])
def test_all_charts_are_drawn_and_fit(browser: Browser, page: Path, width: int, dark: bool) -> None:
    tab, troubles = show(browser, page, width=width, dark=dark)
    charts = tab.evaluate("document.querySelectorAll('.plot').length")
    assert charts >= 15
    assert (
        tab.evaluate("document.querySelectorAll('.plot[data-drawn=yes] svg.main-svg').length") == 3 * charts
    )
    assert tab.evaluate("document.querySelectorAll('.broken').length") == 0
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    widest = (
        "Math.max(...[...document.querySelectorAll('.main-svg')].map(s => s.getBoundingClientRect().right))"
    )
    assert tab.evaluate(widest) <= width
    assert tab.evaluate(BACKGROUND) == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    assert troubles == []
    assert tab.evaluate("window.pwned === undefined && document.images.length === 0")


def test_charts_follow_the_system_into_the_dark_and_keep_their_zoom(browser: Browser, page: Path) -> None:
    tab, _ = show(browser, page)
    tab.evaluate(f"""{GANTT}.querySelector('[data-title="Zoom in"]').click()""")
    zoomed = [28.75, 86.25]  # the middle half of 115 s
    assert until(tab, f"{GANTT}.layout.xaxis.range[0] > 0 && {GANTT}.layout.xaxis.range") == zoomed
    assert tab.evaluate(INK) == "rgb(87, 96, 106)"
    tab.emulate_media(color_scheme="dark")
    until(tab, f"{INK} === 'rgb(163, 172, 181)'")  # the first chart, so that the others are under way
    until(tab, DRAWN)
    assert tab.evaluate(f"{GANTT}.layout.xaxis.range") == zoomed


def test_pointing_at_a_bar_names_its_job(browser: Browser, page: Path) -> None:
    tab, _ = show(browser, page)
    # B holds all four nodes from 10 s to 15 s
    at = tab.evaluate(
        f"""(() => {{
          const plot = {GANTT};
          plot.scrollIntoView({{behavior: 'instant', block: 'center'}});
          const {{ xaxis, yaxis }} = plot._fullLayout, box = plot.getBoundingClientRect();
          return [box.x + xaxis._offset + xaxis.d2p(12.5), box.y + yaxis._offset + yaxis.d2p(2)];
        }})()"""
    )
    tab.mouse.move(at[0] - 2, at[1])
    tab.mouse.move(*at)
    said = until(tab, f"{GANTT}.querySelector('.hoverlayer').textContent")
    assert said.startswith("job </script>")
    assert said.endswith("4 nodeswaited 10 sran 5 s")
