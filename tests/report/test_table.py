"""One table in three forms: a terminal's of any width, a page's, Markdown."""

import pytest
from rich.console import Console

from bridge.report.table import Table

VERDICT = Table(
    ("policy", "mean", "95 % CI", "− base", "95 % CI", "verdict"),
    [
        ("fcfs+easy", "123,456.78", "123,456.7 … 234,567.8", "base", "", ""),
        (
            "an-agent-with-a-name",
            "1.00",
            "-1.7 … 2.8",
            "-123,455.78",
            "-123,456.7 … -9.8",
            "not distinguishable",
        ),
    ],
    title="bundled-128: wait",
    caption="* oracle",
    words=(5,),
)


def terminal_text(table: Table, width: int) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(table)
    return captured.get().splitlines()


def cells(lines: list[str]) -> list[str]:
    """Return each column's text, put together again where it was wrapped, without spaces."""
    rows = [line.strip("│").split("│") for line in lines if line.startswith("│")]
    return ["".join(column).replace(" ", "") for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("width", [70, 80, 100, 120, 200])
def test_nothing_is_cut_off_and_no_number_is_broken_on_a_usual_screen(width: int) -> None:
    lines = terminal_text(VERDICT, width)
    assert max(map(len, lines)) <= width
    wanted = ["".join(row[k] for row in VERDICT.rows).replace(" ", "") for k in range(6)]
    assert cells(lines) == wanted
    if width < 80:
        return
    words = " ".join(lines).replace("│", " ").split()
    assert {"123,456.78", "234,567.8", "-123,455.78", "-9.8", "distinguishable"} <= set(words)
    assert "…" in words and lines[0].strip() == "bundled-128: wait" and lines[-1].strip() == "* oracle"


def test_a_wide_terminal_shows_a_row_in_a_line() -> None:
    lines = terminal_text(VERDICT, 200)
    assert sum(line.startswith("│") for line in lines) == 2
    assert "an-agent-with-a-name │" in lines[5]


def test_a_number_keeps_its_unit() -> None:
    table = Table(("", "difference"), [("wait", "+41.42 min (+35.3 %)")])
    lines = terminal_text(table, 26)
    assert "+41.42 min │" in lines[3] and "(+35.3 %) │" in lines[4]
    assert not any("\xa0" in line for line in lines)


def test_text_is_no_markup_and_short_rows_are_filled_up() -> None:
    table = Table(("[bold]a[/bold]", "b", "c"), [("[red]x", "1")])
    table.line()
    table.add("<y>", 2, "|")
    lines = terminal_text(table, 80)
    assert "[bold]a[/bold]" in lines[1] and "[red]x" in lines[3] and lines[4].startswith("├")
    assert table.rows == [["[red]x", "1", ""], ["<y>", "2", "|"]]
    assert '<th scope="row">&lt;y&gt;</th><td class="n">2</td>' in table.html()
    assert (
        table.markdown()
        == "| [bold]a[/bold] | b | c |\n| --- | --: | --: |\n| [red]x | 1 |  |\n| <y> | 2 | \\| |\n"
    )


def test_without_headings_there_are_no_lines() -> None:
    facts = Table(("", ""), [("source", "a paper, " * 20), ("x", "y")], words=(1,))
    lines = terminal_text(facts, 80)
    assert lines[0].startswith("source  a paper,") and lines[1].startswith("        paper, a")
    assert lines[-1].rstrip() == "x       y" and max(map(len, lines)) <= 80


def test_the_widest_words_are_broken_first() -> None:
    table = Table(("", "", ""), [("missing", "batsim", f"https://{'x' * 60}.org/")], words=(1, 2))
    assert terminal_text(table, 60)[0].split() == ["missing", "batsim", f"https://{'x' * 33}"]


def test_colours_are_left_out_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    VERDICT.print()
    said = capsys.readouterr().out
    assert "distinguishable" in said and "\x1b[3" not in said.replace("\x1b[3m", "")


def test_names_of_others_command_no_terminal() -> None:
    table = Table(["job"], [["a\x1b[31mb\x1b]0;t\x07\r\x00"], ["fdp.\u202eexe"], ["é\n日本"]])
    assert table.rows == [["a\ufffd[31mb\ufffd]0;t\ufffd\ufffd\ufffd"], ["fdp.\ufffdexe"], ["é\n日本"]]
