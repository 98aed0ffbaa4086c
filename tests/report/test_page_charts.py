"""What the charts of the page hold: bars, curves, intervals, boxes, to the exact value."""

import math
import re
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import pytest
from page_material import EVALUATION, html_of, small_run
from schedules import EXAMPLE, schedule

from bridge.base.errors import BridgeError
from bridge.judge.metrics import compute_metrics
from bridge.judge.run import Run
from bridge.judge.stats import ConfidenceInterval
from bridge.report.evaluation_document import EvaluationDocument, parse
from bridge.report.page import runs
from bridge.report.page.charts import Sheet, fixed, forest, label, significant, waits_axis
from bridge.report.page.learning import _gap
from bridge.report.page.policies import evaluation_section
from bridge.report.plots import COLOURS
from bridge.report.table import Table


def plain(figure: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    document = figure.to_plotly_json()
    return document["data"], document["layout"]


def test_the_page_has_the_colours_of_all_pictures() -> None:
    css = resources.files("bridge.report.page").joinpath("page.css").read_text()
    light = css[: css.index("@media")]
    assert re.findall(r"--c\d: (#\w+);", light) == list(COLOURS)


def test_numbers_are_short() -> None:
    assert fixed([1.23456, 2.0, np.nan], 3) == [1.235, 2, None]
    assert significant([123456.7, 0.000123456, 0.0, np.inf]) == [123460, 0.00012346, 0, None]


def test_text_and_labels() -> None:
    assert "a&lt;b &amp; &#34;c&#34;" in Table(("a",), [['a<b & "c"']]).html()
    assert label('<b>"x"') == '&lt;b&gt;"x"'
    assert label("x" * 30 + "y" * 30, 11) == "xxxxx…yyyyy"
    page = Table(("a", "b", "c"), [["r", "1<2", "w"]], words=(2,)).html()
    assert '<td class="n">1&lt;2</td><td>w</td>' in page


def test_forest_has_one_row_per_mean_and_whiskers_where_they_are_known() -> None:
    found = [ConfidenceInterval(2.0, 1.0, 5.0, 9), None, ConfidenceInterval(4.0, math.nan, math.nan, 1)]
    data, layout = plain(forest(["a", "b", "c"], found, "x"))
    assert [(list(trace["x"]), list(trace["y"])) for trace in data] == [([2], [0]), ([4], [2])]
    assert data[0]["error_x"]["array"] == [3]
    assert data[0]["error_x"]["arrayminus"] == [1]
    assert "error_x" not in data[1]
    assert [one["text"] for one in layout["annotations"]] == ["a", "b", "c"]
    assert layout["xaxis"]["range"] == [0.72, 5.28]


def test_an_axis_of_waits_ends_with_the_longest() -> None:
    axis = waits_axis("wait", 4000.0)
    assert axis["ticktext"] == ["1 s", "10 s", "1 min", "10 min", "1 h"]
    assert axis["range"][1] == pytest.approx(np.log10(5200), abs=1e-3)


def test_means_of_few_jobs_have_no_interval() -> None:
    few = runs.mean_over_jobs(np.arange(99.0))
    assert (few.mean, np.isnan(few.low)) == (49.0, True)
    same = runs.mean_over_jobs(np.full(100, 3.0))
    assert (same.mean, same.low, same.high) == (3.0, 3.0, 3.0)


def test_curves_are_means_over_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SPANS", 5)  # of 23 s
    sheet = Sheet()
    runs.curves([("one", small_run())], sheet)
    (queue,), _ = plain(sheet.figures[0])
    (use,), layout = plain(sheet.figures[1])
    assert list(queue["x"]) == [0, 23, 46, 69, 92]
    # B waits from 0 to 10, D from 5 to 15
    assert list(queue["y"]) == [0.87, 0, 0, 0, 0]
    # A holds 2 nodes for 10 s, B 4 for 5 s, C 1 for 4 s, D 1 from 15 to 115
    assert list(use["y"]) == [round(100 * (20 + 20 + 4 + 8) / (4 * 23), 2), 25, 25, 25, 25]
    assert layout["xaxis"]["title"]["text"] == "time since the first submission (s)"


def bars(run: Run) -> dict[str, list[tuple[float, ...]]]:
    """Return, per class of wait, the bars of the only Gantt chart: start, length, middle, height."""
    sheet = Sheet()
    assert runs.schedule(("run", run), sheet)
    data, _ = plain(sheet.figures[0])
    return {t["name"]: list(zip(t["base"], t["x"], t["y"], t["width"], strict=True)) for t in data}


def test_gantt_places_jobs_on_the_lowest_nodes() -> None:
    expected = {"no wait": [(0, 10, 1, 2), (2, 4, 2.5, 1)], "≤ 10 min": [(10, 5, 2, 4), (15, 100, 0.5, 1)]}
    assert bars(small_run()) == expected


def test_gantt_draws_every_interval_of_told_nodes() -> None:
    run = small_run()
    run.jobs["allocated_resources"] = ["0 2", "0-3", "1", "3", ""]
    assert bars(run) == {
        "no wait": [(0, 10, 0.5, 1), (0, 10, 2.5, 1), (2, 4, 1.5, 1)],
        "≤ 10 min": [(10, 5, 2, 4), (15, 100, 3.5, 1)],
    }
    run.jobs["allocated_resources"] = ["0 2", "x", "1", "3", ""]
    with pytest.raises(BridgeError, match="host ids of job B"):
        bars(run)


def test_gantt_tells_the_job() -> None:
    sheet = Sheet()
    runs.schedule(("run", small_run()), sheet)
    data, _ = plain(sheet.figures[0])
    assert list(data[1]["customdata"]) == [
        "job B<br>4 nodes<br>waited 10 s<br>ran 5 s",
        "job D<br>1 node<br>waited 10 s<br>ran 1.67 min",
    ]


def test_gantt_of_many_jobs_draws_the_largest_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_BARS", 2)
    body = runs.schedule(("run", small_run()), sheet := Sheet())
    data, _ = plain(sheet.figures[0])
    assert [list(trace["x"]) for trace in data] == [[10], [100]]  # A and D: 20 and 100 of 144 node-seconds
    assert "Drawn are the 2 largest jobs, 83.3 % of the node-time." in html_of(body)


def test_classes_of_waits() -> None:
    waits = (0, 600, 601, 3600, 3601, 28_800, 28_801, 86_400, 86_401)
    jobs = schedule([(k, 0, wait, 1, 1) for k, wait in enumerate(waits)])
    found = bars(Run({}, {"nodes": 4}, jobs, compute_metrics(jobs, {"nodes": 4})))
    expected = {"no wait": 1, "≤ 10 min": 1, "≤ 1 h": 2, "≤ 8 h": 2, "≤ 1 day": 2, "longer": 1}
    assert {name: len(rows) for name, rows in found.items()} == expected


def draw_evaluation(**changes: Any) -> tuple[Sheet, str]:
    sheet = Sheet()
    return sheet, html_of(evaluation_section(parse(EVALUATION | changes, "e"), sheet))


def test_policy_against_policy() -> None:
    sheet, body = draw_evaluation()
    _, differences, scatter, box = (plain(figure) for figure in sheet.figures)
    assert list(differences[0][0]["x"]) == [-1]
    assert differences[0][0]["error_x"]["array"] == [1.5]
    assert differences[1]["shapes"][0]["x0"] == 0
    diagonal, agent = scatter[0]
    assert list(diagonal["x"]) == list(diagonal["y"])
    assert (list(agent["x"]), list(agent["y"])) == ([2, 4, 6, 8], [1, 4, 4, 7])
    assert list(agent["customdata"])[1] == "window from job 10"
    assert list(box[0][0]["x"]) == [-1, 0, -2, -1]
    assert "lower is better; the base is fcfs+easy" in body


def test_of_many_policies_agents_are_shown_first() -> None:
    first, second = EVALUATION["policies"]
    many = [first, *(first | {"order": f"rule{k}"} for k in range(5)), second]
    sheet, body = draw_evaluation(policies=many)
    shown = [trace["name"] for trace in plain(sheet.figures[-2])[0][1:] if trace["visible"] is True]
    assert shown == ["rule0+easy", "rule1+easy", "rule2+easy", "zoo/agent *"]
    assert "Click a name to show it." in body


def test_where_higher_is_better() -> None:
    first, second = EVALUATION["policies"]
    values = {"values": [0.5, 0.75, 0.25, 0.5]}
    sheet, body = draw_evaluation(metric="utilisation", policies=[first | values, second | values])
    assert list(plain(sheet.figures[2])[0][1]["x"]) == [50, 75, 25, 50]
    assert "above the dashed line the policy is better" in body
    assert "right of the line is better" in body


def test_wide_values_have_logarithmic_axes() -> None:
    first, second = EVALUATION["policies"]
    wide = [first | {"values": [1, 10, 100, 1000]}, second]
    assert plain(draw_evaluation(policies=wide)[0].figures[2])[1]["xaxis"]["type"] == "log"
    assert plain(draw_evaluation()[0].figures[2])[1]["xaxis"]["type"] == "linear"


def test_differences_outside_of_the_first_view_are_counted() -> None:
    first, second = EVALUATION["policies"]
    base, other = [0.0] * 1000, [*([1.0] * 999), 1e6]
    pair = [first | {"values": base}, second | {"values": other}]
    _, body = draw_evaluation(starts=None, policies=pair)
    assert "first shows 999 of 1,000 paired differences" in body


def test_an_evaluation_of_one_policy_compares_nothing() -> None:
    sheet, _ = draw_evaluation(policies=EVALUATION["policies"][:1])
    assert len(sheet.figures) == 1
    assert isinstance(parse(EVALUATION, "e"), EvaluationDocument)


def test_the_gap_of_two_curves() -> None:
    chosen, everything = (np.array([1.0, 2]), np.array([0.5, 1])), (np.array([2.0, 4]), np.array([0.5, 1]))
    assert _gap(chosen, everything) == 0.5
    assert _gap(chosen, chosen) == 0.0


def test_a_run_without_users_or_energy_leaves_their_rows_out() -> None:
    jobs = schedule(EXAMPLE)
    run = replace(small_run(), jobs=jobs, metrics=compute_metrics(jobs, {"nodes": 4}))
    body = html_of(runs.metrics([("run", run)], Sheet()))
    assert "wait, mean" in body
    assert "Jain" not in body
    assert "energy" not in body
