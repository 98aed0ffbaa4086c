"""`bridge report` as typed: from runs and evaluations to a page, and errors that say what is accepted."""

from pathlib import Path

from cli_commands import file_names, run_bridge, run_ok, run_refused
from subprocess_python import run_python


def test_a_page_of_a_run_and_an_evaluation(tiny: str, folder: Path) -> None:
    run_ok("replay", tiny, "--out", "run")
    evaluation = run_ok(
        "evaluate", tiny, "--order", "fcfs", "--order", "sjf", "--sequences", 2, "--length", 2, "--json"
    )
    (folder / "e.json").write_text(evaluation)
    assert run_ok("report", "run", "e.json", "--html", "page.html", "--title", "Two") == (
        "page written to page.html\n"
    )
    page = (folder / "page.html").read_text()
    assert "<title>Two</title>" in page
    assert 'id="schedules"' in page
    assert "sjf+easy" in page
    run_ok("report", "run", "e.json", "--html", "again.html", "--title", "Two")
    assert (folder / "again.html").read_text() == page


def test_what_is_accepted_is_said(tiny: str, folder: Path) -> None:
    for wrong in (tiny, "nowhere", "."):
        said = run_refused("report", wrong, "--html", "page.html")
        assert said.startswith((f"{wrong}: ", f"{wrong}:1: "))
        assert "A report takes run folders" in said
    assert file_names(folder) == {"tiny.swf"}


def test_the_page_must_be_html(tiny: str, folder: Path) -> None:
    run_ok("replay", tiny, "--out", "run")
    assert "saved as .html" in run_refused("report", "run", "--html", "page.pdf")
    assert run_bridge("report", "run").status == 2
    assert run_bridge("report", "--html", "page.html").status == 2
    assert file_names(folder) == {"tiny.swf", "run"}


def test_plotly_is_not_imported_by_other_commands() -> None:
    code = "import bridge.cli.main, bridge.cli.report, sys; sys.exit('plotly' in sys.modules)"
    assert run_python(code).returncode == 0
