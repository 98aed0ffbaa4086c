"""What each paper's headline rows have: published, ours as the code, ours recommended, the best rule.

A table and a picture for the index and for the page of each paper, all from the records of the studies.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bridge.report.plots import COLOURS, LIMIT
from bridge.report.table import Table
from bridge.study.report import difference, number
from bridge.study.results import StudyResults
from bridge.study.spec import StudyRow
from papers import pictures, studies
from papers.lines import PAPERS, Headline, Line, Source

#: What there is of a row: its metric's value and its base's, on the same sequences.
KINDS = ("published", "ours, as the code", "ours, recommended", "best rule")
VERDICT = "recommended against the best rule"

_TICKS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 5.0)


@dataclass(frozen=True)
class Value:
    """A mean, and that of its base on the same sequences; `note`: seeds that are missing."""

    mean: float
    base: float | None = None
    note: str = ""
    oracle: bool = False

    @property
    def ratio(self) -> float | None:
        return self.mean / self.base if self.base else None

    def text(self, metric: str) -> str:
        """Return the value, how far it is from its base, and the note."""
        apart = "" if self.ratio is None else f"{100 * (self.ratio - 1):+.0f} %"
        inside = ", ".join(part for part in (apart, self.note) if part)
        return f"{number(metric, self.mean)}{'*' * self.oracle}" + (f" ({inside})" if inside else "")


@dataclass(frozen=True)
class HeadlineEntry:
    """A line of the table by kind, the verdict on ours, and `words`: ours by the paper's text."""

    label: str
    values: dict[str, Value | None]
    words: Value | None
    best: str
    verdict: str
    has_code: bool


@cache
def entries(headline: Headline) -> tuple[HeadlineEntry, ...]:
    return tuple(_entry(headline.paper, line) for line in headline.lines)


def _entry(paper: str, line: Line) -> HeadlineEntry:
    code = _value(paper, line.code, line.log)
    recommended = _value(paper, line.recommended, line.log)
    best, name, verdict = _best_rule(paper, line)
    values = {"published": _published(paper, line), KINDS[1]: code, KINDS[2]: recommended, KINDS[3]: best}
    words = None if code else _value(paper, line.words, line.log)
    return HeadlineEntry(line.label, values, words, name, verdict, line.code is not None)


@cache
def _findings(paper: str, table: str) -> StudyResults:
    return studies.findings(paper, table)


def forget() -> None:
    """Read the records again when they are asked for next."""
    _findings.cache_clear()
    entries.cache_clear()


def _base_of(results: StudyResults, source: Source) -> str:
    """Return the row that another is shown against; empty if there is none."""
    return source.base or next((one.base for one in results.study.compared if one.row == source.row), "")


def _value(paper: str, source: Source | None, log: str) -> Value | None:
    """Return what a row has; None where it has not been run."""
    if source is None:
        return None
    results = _findings(paper, source.table)
    row = results.row(source.row, log, source.test)
    if not row["seeds"]:
        return None
    one = results.comparison(source.row, _base_of(results, source), log, source.test)
    base = one["base_mean"] if one and "base_mean" in one else None
    few = f"{row['seeds']} of {row['seeds_asked']} seeds" if row["seeds"] < row["seeds_asked"] else ""
    return Value(row["mean"]["mean"], base, few, bool(row["oracle"]))


def _published(paper: str, line: Line) -> Value | None:
    if line.words is None:
        return None
    results = _findings(paper, line.words.table)
    row: StudyRow = results.rows[line.words.row]
    mean = row.published.get(line.log)
    base = results.rows.get(_base_of(results, line.words))
    return None if mean is None else Value(mean, base.published.get(line.log) if base else None)


def _best_rule(paper: str, line: Line) -> tuple[Value | None, str, str]:
    """Return the best rule on the recommended agent's sequences, its name, and the verdict on the agent."""
    source = line.recommended
    if source is None:
        return None, "", ""
    results = _findings(paper, source.table)
    if (one := results.best_rule(source.row, line.log, source.test)) is not None:
        base = results.comparison(source.row, _base_of(results, source), line.log, source.test)
        reference = base["base_mean"] if base and "base_mean" in base else None
        value = Value(one["base_mean"], reference)
        return value, one["base"], difference(results.study.metric, one)
    means = {
        name: row["mean"]["mean"]
        for name, row in _rules(results, line.log, source.test)
        if row["seeds"] and not row["oracle"]
    }
    if not means:
        return None, "", ""
    name = min(means, key=lambda one: means[one])
    return Value(means[name], means.get(_base_of(results, source))), name, ""


def _rules(results: StudyResults, log: str, test: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows that learn nothing."""
    for name, row in results.rows.items():
        if not row.policy and (name, log) in results.expected_seeds:
            yield name, results.row(name, log, test)


def table(headline: Headline) -> Table:
    metrics = _metrics(headline)
    lines = Table([headline.of, *KINDS, VERDICT], words=(1, 5, 6))
    for entry, metric in zip(entries(headline), metrics, strict=True):
        published, _, recommended, best = (entry.values[kind] for kind in KINDS)
        lines.add(
            entry.label,
            published.text(metric) if published else "no number",
            _code(entry, metric),
            recommended.text(metric) if recommended else "not run",
            f"{entry.best}: {best.text(metric)}" if best else "not run",
            entry.verdict or "not run",
        )
    return lines


def _code(entry: HeadlineEntry, metric: str) -> str:
    """Return ours as the code; where it has not been run, ours by the paper's text behind the word."""
    if (code := entry.values[KINDS[1]]) is not None:
        return code.text(metric)
    missing = "not run" if entry.has_code else "no public code"
    return f"{missing}; by the paper's text: {entry.words.text(metric)}" if entry.words else missing


def _metrics(headline: Headline) -> list[str]:
    sources = (line.recommended or line.words for line in headline.lines)
    return [_findings(headline.paper, source.table).study.metric for source in sources if source]


def draw(headline: Headline) -> Path | None:
    """Draw every value of a paper's table over its base's, a row a line; None where nothing has a base."""
    lines = entries(headline)
    ratios = [
        (k, kind, v.ratio) for k, e in enumerate(lines) for kind, v in e.values.items() if v and v.ratio
    ]
    if not ratios:
        return None
    figure, (axes,) = pictures.panels(7.5, 1.1 + 0.27 * len(lines))
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    for kind, mark, colour in zip(KINDS, "Dso|", (*COLOURS[:3], LIMIT), strict=True):
        points = [(ratio, k) for k, one, ratio in ratios if one == kind]
        if points:
            size: dict[str, Any] = {"markersize": 5.5}
            if mark == "|":
                size = {"markersize": 13, "markeredgewidth": 2.0}
            axes.plot(*zip(*points, strict=True), mark, color=colour, label=kind, **size)
    axes.axvline(1.0, color=LIMIT, linewidth=0.8)
    axes.set_yticks(range(len(lines)), [entry.label for entry in lines], fontsize=8)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xscale("log")
    low, high = min(ratio for *_, ratio in ratios), max(ratio for *_, ratio in ratios)
    ticks = [
        tick
        for tick in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 5.0)
        if low / 1.2 <= tick <= high * 1.2
    ]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("value over its base's on the same sequences; left of 1 is better")
    pictures.below(figure, dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True)))
    return pictures.saved(figure, f"{headline.paper}-headline")


def sentence(headline: Headline) -> str:
    """Return how many recommended agents are better than the best rule, and how many rows are not run."""
    lines = entries(headline)
    verdicts = [entry.verdict for entry in lines if entry.verdict]
    better, worse = (sum(one.startswith(word) for one in verdicts) for word in ("better", "worse"))
    text = (
        f"Compared with the best rule, of {len(verdicts)} recommended agents: {better} better, {worse} "
        f"worse, {len(verdicts) - better - worse} not distinguishable."
    )
    missing = sum(entry.has_code and entry.values[KINDS[1]] is None for entry in lines)
    text += f" In {missing} of {len(lines)} rows no training *as the code* was run." if missing else ""
    values = (value for entry in lines for value in (*entry.values.values(), entry.words))
    oracle = any(value and value.oracle for value in values)
    return text + " Policies marked * read true run times." * oracle


def of(paper: str) -> Headline:
    """Return a paper's headline rows."""
    return next(headline for headline in PAPERS if headline.paper == paper)
