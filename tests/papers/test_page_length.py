"""Pages of results are short: what is long is folded, tables by themselves."""

from pathlib import Path

import pytest

from bridge.report.folding import MOST_WORDS, count_visible_words, fold_tables
from bridge.report.table import Table

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.md")), ids=lambda path: path.stem)
def test_no_page_is_longer_than_400_words_outside_folds(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert page.count("<details") == page.count("</details>")
    assert count_visible_words(page) <= MOST_WORDS == 400


def table(rows: int) -> str:
    return Table(["name", "value"], [("a", k) for k in range(rows)]).markdown()


def test_words_in_folds_and_comments_do_not_count() -> None:
    assert count_visible_words("one two <details>\nthree\n</details> four <!-- five\nsix -->") == 3


def test_the_longest_table_is_folded_first_and_no_more_than_needed() -> None:
    page = f"# Title\n\n{table(2)}\nBetween.\n\n{table(20)}\nBehind.\n"
    folded = fold_tables(page, 40)
    fold = "<details markdown>\n\n<summary>The table: 20 rows</summary>\n\n" + table(20) + "\n</details>\n"
    assert folded == page.replace(table(20), fold)
    assert count_visible_words(folded) == 24
    assert fold_tables(folded, 40) == folded


def test_a_page_that_is_short_and_one_without_tables_stay_as_they_are() -> None:
    page = f"# Title\n\n{table(2)}\n"
    assert fold_tables(page) == page
    assert fold_tables("word " * 500) == "word " * 500


def test_a_table_within_a_fold_is_not_folded_again() -> None:
    page = f"<details>\n\n{table(20)}\n</details>\n\n{table(1)}\n"
    folded = fold_tables(page, 0)
    assert folded.count("<details") == 2
    assert "<summary>The table: 1 row</summary>" in folded
