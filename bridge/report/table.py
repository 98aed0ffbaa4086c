"""A table once, for the terminal, a page and Markdown: headings, rows of text, which columns hold words."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment
    from rich.table import Table as RichTable

#: Where room is short, words longer than this are broken: in the first column, in others that hold words.
FIRST, OTHERS = 6, 16
GLUE = "\N{NO-BREAK SPACE}"
#: Between a number and its unit no line is broken.
_UNIT = re.compile(r"(?<=\d) (?=(?:[^\W\d]{1,4}|%)(?:\W|$))")
#: What commands a terminal, or turns the direction of text: names of others may hold it.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Table:
    """Rows of text under headings; the first column names the row, the others hold numbers, or words.

    Args:
        headings: one per column; where all are empty the table has no head.
        rows: cells of any kind, kept as text without control characters; rows that are too short are filled
            up with empty cells.
        title, caption: plain text above and below; may be empty.
        words: columns beside the first that hold words, not numbers.
    """

    def __init__(
        self,
        headings: Iterable[str],
        rows: Iterable[Sequence[object]] = (),
        *,
        title: str = "",
        caption: str = "",
        words: Collection[int] = (),
    ) -> None:
        self.headings = list(headings)
        self.title, self.caption = title, caption
        self.rows: list[list[str]] = []
        self._words = {0, *words}
        self._lines: set[int] = set()
        for row in rows:
            self.add(*row)

    def add(self, *cells: object) -> None:
        texts = [_COMMANDS.sub("\N{REPLACEMENT CHARACTER}", str(cell)) for cell in cells]
        self.rows.append(texts + [""] * (len(self.headings) - len(texts)))

    def line(self) -> None:
        """Draw a line before the next row; a terminal shows it."""
        self._lines.add(len(self.rows))

    def print(self) -> None:
        """Print it to the terminal, as wide as that is."""
        from rich.console import Console

        Console().print(self)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Segment]":
        """Print it to one of Rich's consoles.

        Where there is too little room, cells are wrapped between words, columns of words before those of
        numbers. Nothing is cut off, and a number is broken only where not even one has room in its column.
        """
        from rich.segment import Segment

        for piece in console.render(self._rich(options.max_width), options):
            yield Segment(piece.text.replace(GLUE, " "), piece.style, piece.control)

    def _rich(self, width: int) -> "RichTable":
        """Return it as one of Rich's, for a terminal of so many columns, with `GLUE` within cells."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        bare = not any(self.headings)
        table = RichTable(
            title=Text(self.title, style="italic") if self.title else None,
            caption=Text(self.caption, style="dim") if self.caption else None,
            title_justify="left",
            caption_justify="left",
            box=None if bare else box.HEAVY_HEAD,
            show_header=not bare,
            padding=(0, 2, 0, 0) if bare else (0, 1),
        )
        count = len(self.headings)
        widths = self._widths(width - 2 * count if bare else width - 3 * count - 1)
        for k, heading in enumerate(self.headings):
            table.add_column(
                Text(heading),
                justify="left" if k in self._words else "right",
                style="bold" if bare and k == 0 else "",
                width=widths[k],
                overflow="fold",
            )
        for k, row in enumerate(self.rows):
            if k in self._lines:
                table.add_section()
            table.add_row(*(Text(_UNIT.sub(GLUE, cell)) for cell in row))
        return table

    def _widths(self, room: int) -> list[int]:
        """Return how wide each column is set, at most ``room`` together where that can be."""
        from rich.cells import cell_len

        columns = list(zip(self.headings, *self.rows, strict=True))
        widths = [max(cell_len(part) for cell in column for part in cell.split("\n")) for column in columns]
        words = [re.split("[ \n]", _UNIT.sub(GLUE, "\n".join(column))) for column in columns]
        least = [max(map(cell_len, cells)) for cells in words]
        broken = [min(n, OTHERS if k else FIRST) if k in self._words else n for k, n in enumerate(least)]
        words_first = sorted(range(len(widths)), key=lambda k: (k not in self._words, -widths[k]))
        excess = sum(widths) - room
        for floor, order in ((least, words_first), (broken, words_first)):
            for k in order:
                cut = max(0, min(excess, widths[k] - floor[k]))
                widths[k] -= cut
                excess -= cut
        return widths

    def html(self) -> str:
        """Return it for a page; it scrolls by itself where it is wider than that."""
        values = {"headings": self.headings, "rows": self.rows, "caption": self.caption}
        return render("table.html.j2", words=self._words, **values)

    __html__ = html

    def markdown(self) -> str:
        """Return it as a table of GitHub's Markdown, with a newline at the end."""
        rows = [
            [cell.replace("|", "\\|").replace("\n", " ") for cell in r] for r in (self.headings, *self.rows)
        ]
        rows.insert(1, ["---" if k in self._words else "--:" for k in range(len(self.headings))])
        return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def render(template: str, **values: Any) -> str:
    """Return a template of the folder ``page`` with its values; HTML stays as it is, text is escaped."""
    return _templates().get_template(template).render(values)


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = FileSystemLoader(Path(__file__).with_name("page"))
    spacing: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    return Environment(loader=folder, autoescape=True, undefined=StrictUndefined, **spacing)
