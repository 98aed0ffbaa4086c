"""The page in a real browser: all is drawn, light and dark, narrow and wide, and nothing is loaded."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from page_browser import Browser, chromium
from page_material import EVALUATION, EVIL, small_run, write_checkpoint, write_json, write_validation

from bridge.judge.run import write_run
from bridge.report.page import read_inputs, write_page

pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium or google-chrome on the PATH")
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
    program = chromium()
    assert program is not None
    with Browser(program) as found:
        yield found


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (390, False), (390, True)])
def test_all_charts_are_drawn_and_fit(browser: Browser, page: Path, width: int, dark: bool) -> None:
    browser.open(page, width=width, dark=dark)
    charts = browser.value("document.querySelectorAll('.plot').length")
    assert charts >= 15
    assert (
        browser.value("document.querySelectorAll('.plot[data-drawn=yes] svg.main-svg').length") == 3 * charts
    )
    assert browser.value("document.querySelectorAll('.broken').length") == 0
    assert browser.value("document.documentElement.scrollWidth") == width
    widest = (
        "Math.max(...[...document.querySelectorAll('.main-svg')].map(s => s.getBoundingClientRect().right))"
    )
    assert browser.value(widest) <= width
    assert browser.value(BACKGROUND) == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    assert browser.troubles() == []
    assert browser.value("window.pwned === undefined && document.images.length === 0")


def test_charts_follow_the_system_into_the_dark_and_keep_their_zoom(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.value(f"""{GANTT}.querySelector('[data-title="Zoom in"]').click()""")
    zoomed = [28.75, 86.25]  # the middle half of 115 s
    assert browser.until(f"{GANTT}.layout.xaxis.range[0] > 0 && {GANTT}.layout.xaxis.range") == zoomed
    assert browser.value(INK) == "rgb(87, 96, 106)"
    browser.scheme(dark=True)
    browser.until(f"{INK} === 'rgb(163, 172, 181)'")  # the first chart, so that the others are under way
    browser.drawn()
    assert browser.value(f"{GANTT}.layout.xaxis.range") == zoomed


def test_pointing_at_a_bar_names_its_job(browser: Browser, page: Path) -> None:
    browser.open(page)
    # B holds all four nodes from 10 s to 15 s
    at = browser.value(
        f"""(() => {{
          const plot = {GANTT};
          plot.scrollIntoView({{behavior: 'instant', block: 'center'}});
          const {{ xaxis, yaxis }} = plot._fullLayout, box = plot.getBoundingClientRect();
          return [box.x + xaxis._offset + xaxis.d2p(12.5), box.y + yaxis._offset + yaxis.d2p(2)];
        }})()"""
    )
    browser.move(at[0] - 2, at[1])
    browser.move(*at)
    said = browser.until(f"{GANTT}.querySelector('.hoverlayer').textContent")
    assert said.startswith("job </script>")
    assert said.endswith("4 nodeswaited 10 sran 5 s")
