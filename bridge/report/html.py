"""HTML from templates that show every text as it is; sections of the page; names for charts."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from jinja2 import Environment

#: Longest name inside a chart; tables have the whole.
LONGEST = 44


class Html(Protocol):
    """What writes itself as HTML."""

    def __html__(self) -> str: ...


#: Text (a paragraph), HTML, or charts that stand side by side, as many as there is room for; empty: nothing.
Block = str | Html | Sequence[Html]


@dataclass(frozen=True)
class Section:
    """A topic of the page.

    Attributes:
        anchor: its id.
        title, lead: plain text; the lead says in a sentence what is seen.
        body: what stands in it.
        parts: (title, body) of each part under a heading of its own; one without a body is left out.
    """

    anchor: str
    title: str
    lead: str
    body: Sequence[Block] = ()
    parts: Sequence[tuple[str, Sequence[Block]]] = ()

    def __html__(self) -> str:
        return render("section.html.j2", section=self)


def section(
    anchor: str, title: str, lead: str, named: Iterable[tuple[str, Iterable[Block]]]
) -> Section | None:
    """Return a section with one part per name; None if no part has a body."""
    parts = [(name, list(body)) for name, body in named]
    return Section(anchor, title, lead, parts=parts) if any(body for _, body in parts) else None


def render(template: str, **values: Any) -> str:
    """Return a template of the folder ``page`` with its values; text is escaped, `Html` stays as it is."""
    return _templates().get_template(template).render(values)


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("page")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def label(value: object, longest: int = LONGEST) -> str:
    """Return a name for a chart: shortened in the middle, without what plotly.js reads as markup."""
    return html.escape(shortened(value, longest), quote=False)


def shortened(value: object, longest: int) -> str:
    """Return a text of at most ``longest`` characters, shortened in the middle."""
    name, half = str(value), (longest - 1) // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[-half:]}"
