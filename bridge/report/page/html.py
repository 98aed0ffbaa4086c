"""Pieces of HTML: escaped text, parts, figures; and names that are safe inside a chart."""

import html
from collections.abc import Iterable, Sequence
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


def section(anchor: str, title: str, lead: str, named: Iterable[tuple[str, Sequence[str]]]) -> Section | None:
    """Return a section with one part per name; None if there is none.

    Args:
        anchor, title, lead: see `Section`.
        named: (name, body); one without a body is left out.
    """
    numbered = ((f"{anchor}-{k}", name, body) for k, (name, body) in enumerate(named, 1))
    made = [(at, name, part(at, name, *body)) for at, name, body in numbered if body]
    if not made:
        return None
    return Section(anchor, title, lead, "\n".join(m[2] for m in made), tuple((m[0], m[1]) for m in made))


def note(said: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{text(said)}</p>" if said else ""


def charts(*drawn: str) -> str:
    """Return charts side by side, as many as there is room for."""
    return '<div class="charts">\n' + "\n".join(filter(None, drawn)) + "\n</div>"
