"""Pieces of HTML: escaped text, tables, figures; and names that are safe inside a chart."""

import html
from collections.abc import Collection, Sequence
from dataclasses import dataclass

#: Longest name inside a chart; tables have the whole.
LONGEST = 44


def text(value: object) -> str:
    """Return anything as text that HTML shows as it is, in elements and in attributes."""
    return html.escape(str(value))


def label(value: object, longest: int = LONGEST) -> str:
    """Return a name for a chart: shortened in the middle, without what plotly.js reads as markup."""
    name = str(value)
    if len(name) > longest:
        half = (longest - 1) // 2
        name = f"{name[:half]}…{name[-half:]}"
    return html.escape(name, quote=False)


@dataclass(frozen=True)
class Section:
    """A topic of the page.

    Attributes:
        anchor: its id.
        title, lead: plain text; the lead says in a sentence what is seen.
        body: HTML.
        entries: (anchor, title) of its parts, for the table of contents.
    """

    anchor: str
    title: str
    lead: str
    body: str
    entries: tuple[tuple[str, str], ...] = ()


def part(anchor: str, title: str, *body: str) -> str:
    """Return a part of a section under its own heading."""
    return f'<h3 id="{text(anchor)}">{text(title)}</h3>\n' + "\n".join(body)


def note(said: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{text(said)}</p>" if said else ""


def charts(*drawn: str) -> str:
    """Return charts side by side, as many as there is room for."""
    return '<div class="charts">\n' + "\n".join(filter(None, drawn)) + "\n</div>"


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str = "",
    words: Collection[int] = (),
) -> str:
    """Return a table of plain text that scrolls by itself where it is wider than the page.

    Args:
        headings: one per column.
        rows: cells; the first of each is the row's heading.
        caption: what is in it.
        words: columns beside the first that hold words, not numbers.
    """

    def kind(column: int) -> str:
        return "" if column == 0 or column in words else ' class="n"'

    head = "".join(f'<th scope="col"{kind(k)}>{text(name)}</th>' for k, name in enumerate(headings))
    lines = []
    for row in rows:
        cells = [f'<th scope="row">{text(row[0])}</th>']
        cells += [f"<td{kind(k)}>{text(cell)}</td>" for k, cell in enumerate(row[1:], 1)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    body = "\n".join(lines)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(caption or "Table")}"><table>'
        f"{title}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )
