"""`bridge report` as typed: from runs and evaluations to a page, and errors that say what is accepted."""

from pathlib import Path

from cli_commands import fine, names, refused, typed
from subprocess_python import fresh


def test_a_page_of_a_run_and_an_evaluation(tiny: str, folder: Path) -> None:
    fine("replay", tiny, "--out", "run")
    evaluation = fine(
        "evaluate", tiny, "--order", "fcfs", "--order", "sjf", "--sequences", 2, "--length", 2, "--json"
    )
    (folder / "e.json").write_text(evaluation)
    assert fine("report", "run", "e.json", "--html", "page.html", "--title", "Two") == (
        "page written to page.html\n"
    )
    page = (folder / "page.html").read_text()
    assert "<title>Two</title>" in page
    assert 'id="schedules"' in page
    assert "sjf+easy" in page
    fine("report", "run", "e.json", "--html", "again.html", "--title", "Two")
    assert (folder / "again.html").read_text() == page


def test_what_is_accepted_is_said(tiny: str, folder: Path) -> None:
    for wrong in (tiny, "nowhere", "."):
        said = refused("report", wrong, "--html", "page.html")
        assert said.startswith((f"{wrong}: ", f"{wrong}:1: "))
        assert "A report takes run folders" in said
    assert names(folder) == {"tiny.swf"}


def test_the_page_must_be_html(tiny: str, folder: Path) -> None:
    fine("replay", tiny, "--out", "run")
    assert "saved as .html" in refused("report", "run", "--html", "page.pdf")
    assert typed("report", "run").status == 2
    assert typed("report", "--html", "page.html").status == 2
    assert names(folder) == {"tiny.swf", "run"}


def test_plotly_is_not_imported_by_other_commands() -> None:
    code = "import bridge.cli.main, bridge.cli.report, sys; sys.exit('plotly' in sys.modules)"
    assert fresh(code).returncode == 0
