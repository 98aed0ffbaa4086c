"""Folds of a page in Markdown: what a reader opens with a click, and how many words are in sight."""

import re
from collections.abc import Iterable
from html import escape

#: A page of results has at most so many words outside its folds.
MOST_WORDS = 400
_HIDDEN = re.compile(r"<details.*?</details>|<!--.*?-->", re.DOTALL)
_TABLE = re.compile(r"(?:^\|.*\n?)+", re.MULTILINE)


def collapsible(title: str, parts: Iterable[str]) -> list[str]:
    """Return Markdown that hides some parts behind a line to click on."""
    return ["<details markdown>", f"<summary>{escape(title)}</summary>", *parts, "</details>"]


def count_visible_words(page: str) -> int:
    """Count the words outside folds and comments; each mark of a table counts as one."""
    return len(_HIDDEN.sub("", page).split())


def fold_tables(page: str, most_words: int = MOST_WORDS) -> str:
    """Fold visible tables, the longest first, until the page has no more than `most_words` in sight."""
    while count_visible_words(page) > most_words:
        hidden = [match.span() for match in _HIDDEN.finditer(page)]
        tables = [
            match
            for match in _TABLE.finditer(page)
            if not any(first <= match.start() < end for first, end in hidden)
        ]
        if not tables:
            break
        longest = max(tables, key=lambda match: len(match[0].split()))
        page = page[: longest.start()] + _fold(longest[0]) + page[longest.end() :]
    return page


def _fold(table: str) -> str:
    """Return a table behind a line that says how many rows it has."""
    rows = len(table.splitlines()) - 2
    title = f"The table: {rows} row{'s' * (rows != 1)}"
    return "\n\n".join(collapsible(title, [table.rstrip("\n")])) + "\n" * table.endswith("\n")
