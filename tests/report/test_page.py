"""The page as a file: whole, self-contained, the same every time, and deaf to what names contain."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from page_material import (
    BOUND,
    EVALUATION,
    EVIL,
    Parsed,
    small_run,
    validation,
    write_checkpoint,
    write_json,
    write_validation,
)

from bridge.base.errors import BridgeError
from bridge.judge.run import write_run
from bridge.report.page import ReportInputs, page, read_inputs, write_page
from bridge.report.page.inputs import CheckpointReport

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
SECTIONS = [
    *("verdict", "bounds", "futures", "metrics", "over-time"),
    *("schedules", "policies", "worlds", "training", "explanations"),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("inputs")
    write_run(small_run(), folder / "one")
    write_run(small_run(oracle=True), folder / "two")
    return [
        folder / "one",
        folder / "two",
        write_validation(folder / "val"),
        write_json(folder / "e.json", EVALUATION),
        write_checkpoint(folder / "agent"),
        write_json(folder / "bound.json", BOUND),
        picture(folder),
    ]


def picture(folder: Path) -> Path:
    (folder / "now.svg").write_text(SVG)
    return folder / "now.svg"


@pytest.fixture(scope="module")
def html(inputs: list[Path]) -> str:
    return page(read_inputs(inputs), "All & everything")


@pytest.fixture(scope="module")
def parsed(html: str) -> Parsed:
    return Parsed(html)


def test_sections_are_there_in_order_and_say_what_is_seen(parsed: Parsed) -> None:
    sections = [attrs["id"] for attrs in parsed.all("section")]
    assert sections == SECTIONS
    leads = [attrs for attrs in parsed.all("p") if attrs.get("class") == "lead"]
    assert len(leads) == len(SECTIONS)
    assert "All & everything" in parsed.shown


def test_the_page_begins_with_the_verdict(parsed: Parsed) -> None:
    shown = parsed.shown.partition("This file")[0].rpartition("The outcome in short.")[2]
    outcome, _, rest = shown.partition("Metrics")
    assert "95 % interval of the difference" in outcome
    assert "jobs start otherwise" in outcome
    assert "Mean bounded slowdown of each policy" in outcome
    assert "Mean bounded slowdown of each policy" not in rest.partition("Policy against policy")[0]


def test_how_much_is_left_stands_in_the_verdict_and_in_a_table(parsed: Parsed) -> None:
    said = "with true run times −25\u00a0%."
    assert (
        f"How much is left on small, against f4+easy, the best rule in hindsight (40.00): {said}"
        in parsed.shown
    )
    table = parsed.shown.partition("what nobody can know.")[2].partition("The present")[0]
    assert "lookahead(saf) *" in table
    assert "−41\u00a0% … +5\u00a0%" in table
    assert "4 sequences of 10 jobs" in table


def test_a_picture_is_inside_as_it_is(parsed: Parsed) -> None:
    (drawn,) = parsed.all("img")
    assert base64.b64decode(str(drawn["src"]).partition("base64,")[2]).decode() == SVG
    assert drawn["alt"] == "now.svg"


def test_the_table_of_contents_leads_to_every_part(parsed: Parsed) -> None:
    ids = [attrs["id"] for _, attrs in parsed.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] or "" for attrs in parsed.all("a")]
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    assert {f"#{name}" for name in SECTIONS} < set(links)
    assert {"#schedule-1", "#schedules-1", "#policies-2", "#worlds-1", "#training-1"} & set(links) == {
        "#schedules-1",
        "#policies-2",
        "#worlds-1",
        "#training-1",
    }


def test_everything_is_inside(html: str, parsed: Parsed) -> None:
    for tag, attrs in parsed.tags:
        assert "src" not in attrs or (tag == "img" and str(attrs["src"]).startswith("data:image/"))
        assert (attrs.get("href") or "#").startswith("#")
    assert not parsed.all("link")
    assert "@import" not in html[: html.index("</style>")]
    assert html.count("* plotly.js v") == 1


def test_only_the_two_scripts_may_run_and_nothing_may_be_loaded(parsed: Parsed) -> None:
    running = [text for attrs, text in parsed.scripts if "type" not in attrs]
    assert len(running) == 2
    (policy,) = (a["content"] for a in parsed.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in running]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}'; "
        "style-src 'unsafe-inline'; img-src data: blob:"
    )


def test_every_chart_has_its_data_and_a_caption(parsed: Parsed) -> None:
    plots = [attrs["id"] for attrs in parsed.all("div") if attrs.get("class") == "plot"]
    data = {attrs["id"]: json.loads(text) for attrs, text in parsed.scripts if "type" in attrs}
    assert list(data) == [f"{name}-data" for name in plots]
    assert plots == [f"chart-{k}" for k in range(1, len(plots) + 1)]
    assert all(one["data"] and one["layout"]["height"] for one in data.values())
    assert len(parsed.all("figcaption")) == len(plots)


def test_numbers_can_be_read_without_scripting(parsed: Parsed) -> None:
    assert parsed.row("wait, mean") == ["5 s", "5 s"]
    assert parsed.row("bounded slowdown, max") == ["1.50", "1.50"]
    assert parsed.row("fcfs+easy") == ["5", "3 … 7", "base", "", "", ""]
    assert parsed.row("zoo/agent *") == ["4", "–", "−1", "−2.50 … +0.5000", "75 %", "not distinguishable"]
    assert parsed.row("wait.mean")[:2] == ["5 s", "11.75 s"]
    assert parsed.row("training bsld, agent") == ["9", "8", "7", "2", "9", "1"]
    assert parsed.row("policy loss") == ["−0.5", "−0.125", "−0.5", "1", "−0.125", "3"]
    assert parsed.row("setting.deep") == ['{"er": 1}']
    assert parsed.row("seed") == ["–"]
    assert parsed.row("slack") == ["1", "2", "0.500"]
    assert parsed.row("D") == ["1", "5 s", "15 s", "10 s", "1.67 min"]


def test_oracles_are_marked(parsed: Parsed) -> None:
    assert ["", "one", "two *"] in parsed.rows
    assert "an estimator read true run times" in parsed.shown


def test_the_same_inputs_give_the_same_bytes(html: str, inputs: list[Path], tmp_path: Path) -> None:
    write_page(read_inputs(inputs), tmp_path / "a.html", "All & everything")
    assert (tmp_path / "a.html").read_bytes() == html.encode()


def test_nothing_of_the_machine_or_the_hour_is_in_it(html: str, inputs: list[Path]) -> None:
    own = html[: html.index("<script>")]  # without plotly.js
    assert str(inputs[0].parent) not in own
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", own)


def test_names_are_never_markup(tmp_path: Path) -> None:
    run = small_run()
    run.jobs["job_id"] = [EVIL + str(k) for k in range(len(run.jobs))]
    write_run(replace(run, config={"command": EVIL}), tmp_path / "run")
    evil = EVALUATION | {"workload": EVIL, "metric": EVIL}
    evil["policies"] = [{"agent": EVIL, "values": [1, 2]}, {"agent": EVIL, "values": [2, 3], "verdict": EVIL}]
    del evil["starts"]
    write_json(tmp_path / "e.json", evil)
    told = validation()
    told["inputs"] = {"workload": EVIL, "platform": EVIL}
    told["policies"][0] |= {"policy": EVIL, "reason": EVIL}
    write_json(tmp_path / "validation.json", told)
    write_checkpoint(tmp_path / "agent", name=EVIL, metric=EVIL, **{EVIL: EVIL})
    names = ("run", "e.json", "validation.json", "agent")
    made = page(read_inputs([tmp_path / name for name in names]), EVIL)
    parsed = Parsed(made)
    assert [attrs.get("type") for attrs, _ in parsed.scripts if "type" not in attrs] == [None, None]
    assert not parsed.all("img")
    assert parsed.shown.count(EVIL) > 8
    for attrs, text in parsed.scripts:
        if "type" in attrs:
            assert not set("<>&") & set(text)
            assert "<" not in re.sub("</?(br|extra)>", "", json.dumps(json.loads(text)))


def test_half_a_surrogate_pair_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "agent.json").write_text('{"name": "\\ud800"}')
    with pytest.raises(BridgeError, match="holds half a surrogate pair"):
        read_inputs([tmp_path / "agent"])
    material = ReportInputs(checkpoints=[("\ud800", CheckpointReport({"name": "\ud800"}, None, None, None))])
    write_page(material, tmp_path / "a.html")
    assert b"<td>?</td>" in (tmp_path / "a.html").read_bytes()


def test_only_sections_with_something_in_them(tmp_path: Path) -> None:
    document = EVALUATION | {"policies": EVALUATION["policies"][:1]}
    material = read_inputs([write_json(tmp_path / "e.json", document)])
    assert [attrs["id"] for attrs in Parsed(page(material)).all("section")] == ["policies"]


def test_a_run_in_which_nothing_started(tmp_path: Path) -> None:
    run = small_run()
    write_run(replace(run, jobs=run.jobs.iloc[4:], metrics={"jobs.total": 1}), tmp_path / "run")
    parsed = Parsed(page(read_inputs([tmp_path / "run"])))
    assert [attrs["id"] for attrs in parsed.all("section")] == ["metrics"]
    assert parsed.row("jobs") == ["1"]


def test_saving(tmp_path: Path) -> None:
    material = read_inputs([write_json(tmp_path / "e.json", EVALUATION)])
    with pytest.raises(BridgeError, match=r"saved as \.html"):
        write_page(material, tmp_path / "a.pdf")
    with pytest.raises(BridgeError, match="cannot write"):
        write_page(material, tmp_path / "gone" / "a.html")
    assert [path.name for path in tmp_path.iterdir()] == ["e.json"]
