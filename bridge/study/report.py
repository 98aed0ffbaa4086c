"""The page of a study: one table, one picture, a few sentences; what else is known is folded."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.judge.stats import INTERVALS, TOO_FEW, mark_of
from bridge.learn.recipe import may_still_improve
from bridge.report.folding import collapsible, fold_tables
from bridge.report.table import Table, render
from bridge.study.headings import HEADS, heading, is_share
from bridge.study.results import document_of as document_of

Document = Mapping[str, Any]
#: Heading of what a study says beyond its first paragraph.
DETAILS = "What else was found"
#: A page opens with so many words of what the study says, or with its first sentence; the rest is folded.
OPENING_WORDS = 45
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?]) (?=[A-Z*`\[\d])")
#: Verdicts in a table's cells.
SHORT = {"not distinguishable": "≈"}


# Numbers.


def number(metric: str, value: float | None, sign: str = "") -> str:
    """Return a value in the metric's usual unit and digits; a dash if there is none."""
    _, factor, digits = HEADS.get(metric, ("", 1.0, 3))
    return "–" if value is None else f"{value * factor:{sign}.{digits}f}"


def interval(metric: str, of: Mapping[str, Any], sign: str = "") -> str:
    """Return a mean with its interval, in the metric's usual unit, or with what its seeds have."""
    mean, low, high = (number(metric, of[name], sign) for name in ("mean", "low", "high"))
    if of["low"] is None:
        seeds = " to ".join(number(metric, one, sign) for one in of.get("seeds", ()))
        return f"{mean} ({seeds and f'seeds {seeds}; '}no interval)"
    return f"{mean} [{low}, {high}]{mark_of(of['kind'])}"


def _percent(metric: str, one: Document, digits: int) -> str:
    return "" if one["percent"] is None or is_share(metric) else f"{one['percent']:+.{digits}f}"


def difference(metric: str, one: Document | None) -> str:
    """Return a difference in words and numbers; empty if there is none."""
    if one is None:
        return ""
    if "difference" not in one:
        return str(one["verdict"])
    verdict_text = "" if one["difference"]["low"] is None else f"{SHORT.get(one['verdict'], one['verdict'])} "
    percent = _percent(metric, one, 0)
    return f"{verdict_text}{percent and f'{percent} %: '}{interval(metric, one['difference'], '+')}"


def _late(row: Document) -> int:
    """Count the seeds whose training may not have ended: their best epoch is one of the last."""
    return sum(map(may_still_improve, row.get("best_epochs", ()), row.get("epochs", ())))


def _seeds(row: Document) -> str:
    if not row["learnt"]:
        return "–"
    late = _late(row)
    return f"{row['seeds']} of {row['seeds_asked']}" + f" †{late}" * bool(late)


def _epochs(row: Document) -> str:
    """Return the best epoch of every seed, of how many; 0 is not known, without validation it is the last."""
    best, many = [str(epoch or "?") for epoch in row["best_epochs"]], row["epochs"]
    if not best or len(set(many)) == 1:
        return f"{', '.join(best) or 'the last'} of {many[0]}"
    return ", ".join(f"{one} of {epochs}" for one, epochs in zip(best, many, strict=True))


def _chosen(metric: str, kept: Document | None) -> str:
    return "–" if kept is None else f"{interval(metric, kept['mean'])} (seed {kept['seed']})"


# Tables.

_KEPT = "the best validated seed"


def tests_of(document: Document) -> list[str]:
    return list(dict.fromkeys(row["test"] for row in document["rows"]))


def summary(document: Document, test: str) -> Table:
    """Return the table of those that learn, each beside its base and the best rule; or else of all rows."""
    metric = document["metric"]
    rows = [row for row in document["rows"] if row["test"] == test]
    learnt = [row for row in rows if row["learnt"]]
    printed = any(row.get("published") is not None for row in rows)
    compared, best = (_by_row(document[name], test) for name in ("comparisons", "best_rules"))
    head = (
        ["row", "log"]
        + ["published"] * printed
        + ["seeds", "b", f"{heading(metric)} [95 %]", "against its base"]
    )
    table = Table(head + ["against the best rule"] * bool(learnt), words=(1, len(head) - 1, len(head)))
    for row in learnt or rows:
        name = (row["row"], row["log"])
        cells = [row["row"] + "*" * bool(row.get("oracle")), row["log"]]
        cells += [number(metric, row.get("published"))] if printed else []
        if not row["seeds"]:
            table.add(*cells, f"0 of {row['seeds_asked']}", "", _nothing(row))
            continue
        mean = row["mean"]
        cells += [_seeds(row), mean["b"], interval(metric, mean), _beside(metric, compared.get(name))]
        if rule := best.get(name):
            cells.append(_beside(metric, rule))
        table.add(*cells)
    return table


def _beside(metric: str, one: Document | None) -> str:
    """Return a difference, and what it is a difference to; empty if there is none."""
    of = f" ({one['base']}: {number(metric, one['base_mean'])})" if one and "difference" in one else ""
    return f"{difference(metric, one)}{of}"


def _nothing(row: Document) -> str:
    """Return why there is nothing of a row."""
    return "failed, see the notes" if row.get("failed") else "not run"


def _by_row(comparisons: Iterable[Document], test: str) -> dict[tuple[str, str], Document]:
    """Return the first comparison of every row and log."""
    rows: dict[tuple[str, str], Document] = {}
    for one in comparisons:
        if one["test"] == test:
            rows.setdefault((one["row"], one["log"]), one)
    return rows


def details(document: Document, test: str) -> list[Table]:
    """Return all rows of a test with all metrics, and all comparisons."""
    metric = document["metric"]
    rows = [row for row in document["rows"] if row["test"] == test]
    others = list(dict.fromkeys(m for row in rows for m in row.get("more", ())))
    head = ["log", "published", "seeds", "windows (apart)", "b", heading(metric), *map(heading, others)]
    has_best = any(row.get("kept") for row in rows)
    head += [_KEPT] * has_best
    every = Table(["row", *head, "by seed", "best epoch"], caption=f"Rows, {test}", words=(1,))
    for row in rows:
        cells = [row["row"] + "*" * bool(row.get("oracle")), row["log"]]
        cells.append(number(metric, row.get("published")))
        if not row["seeds"]:
            every.add(*cells, f"0 of {row['seeds_asked']}", "", "", _nothing(row))
            continue
        seeds = epochs = "–"
        if row["learnt"]:
            seeds = ", ".join(number(metric, value) for value in row["by_seed"].values())
            epochs = _epochs(row)
        windows = f"{row['windows']} ({row['windows_apart']})"
        more = [number(m, row["more"].get(m)) for m in others]
        more += [_chosen(metric, row.get("kept"))] * has_best
        mean = interval(metric, row["mean"])
        every.add(*cells, _seeds(row), windows, row["mean"]["b"], mean, *more, seeds, epochs)
    head = ["log", "seeds of both", "b", f"difference in {heading(metric)}", "%", "says"]
    pairs = Table(["row − base", *head], caption=f"Comparisons, {test}", words=(1, 6))
    for one in (one for one in document["comparisons"] if one["test"] == test):
        cells = [f"{one['row']} − {one['base']}", one["log"], f"{one['seeds']}, {one['base_seeds']}"]
        if "difference" not in one:
            pairs.add(*cells, "–", "", "", one["verdict"])
            continue
        interval_text, b = interval(metric, one["difference"], "+"), one["difference"]["b"]
        pairs.add(*cells, b, interval_text, _percent(metric, one, 1), one["verdict"])
    return [table for table in (every, pairs) if table.rows]


def tables_of(document: Document) -> list[Table]:
    return [table for test in tests_of(document) for table in details(document, test)]


# Sentences.


def sentences(document: Document, test: str) -> list[str]:
    """Summarize a test: how many windows it has, and the verdicts if there are any."""
    rows = [row for row in document["rows"] if row["test"] == test and row["seeds"]]
    if not rows:
        return ["Nothing has been run."]
    windows = sorted({(row["windows"], row["windows_apart"], row["length"]) for row in rows})
    apart, blocks = (_range(of) for of in ((n for _, n, _ in windows), (row["mean"]["b"] for row in rows)))
    many, _, length = windows[0]
    of = f"{counted(many, 'window')} of {length} {rows[0]['unit']} a log, of which {apart} share no job"
    lines = [f"{of}: b = {blocks} independent blocks."]
    if many == 1:
        return ["One sequence a log: no interval, and its difference says little."]
    learnt = {(row["row"], row["log"]) for row in rows if row["learnt"]}
    for name, whom in (("comparisons", "their base"), ("best_rules", "the best rule of this page")):
        documents = _by_row(document[name], test)
        verdicts = [one["verdict"] for key, one in documents.items() if key in learnt or not learnt]
        if verdicts and (learnt or name == "comparisons"):
            better, worse = (verdicts.count(word) for word in ("better", "worse"))
            few = verdicts.count(TOO_FEW)
            rest = len(verdicts) - better - worse - few
            all_of = f"Compared with {whom}, of {counted(len(verdicts), 'agent' if learnt else 'row')}"
            none = f", {few} with too few blocks for a verdict" * bool(few)
            lines.append(f"{all_of}: {better} better, {worse} worse, {rest} not distinguishable{none}.")
    return lines


def split_opening(text: str) -> tuple[str, str]:
    """Return a text's first sentence, with those behind it as long as all are short, and the rest."""
    paragraph, _, more = text.strip().partition("\n\n")
    first, *others = _BETWEEN_SENTENCES.split(" ".join(paragraph.split()))
    while others and len(f"{first} {others[0]}".split()) <= OPENING_WORDS:
        first = f"{first} {others.pop(0)}"
    return first, "\n\n".join(part for part in (" ".join(others), more) if part)


def _range(numbers: Iterable[int]) -> str:
    least, *_, most = sorted({*numbers}) * 2
    return f"{least}" if least == most else f"{least} to {most}"


def notes_of(document: Document) -> list[str]:
    """Return the notes below the tables."""
    rows = document["rows"]
    notes = [
        f"{document['done']} of {document['cells']} cells are done.",
        f"{INTERVALS} The intervals of agents also include the variance between their seeds. ≈ means not "
        "distinguishable: the interval of the difference contains 0. Windows (apart): the number in "
        "brackets says how many windows share no job. If there are few seeds, or blocks that differ much, an "
        "interval may contain values that the metric cannot have.",
    ]
    if any(row["learnt"] and row["seeds"] == 1 for row in rows):
        notes.append("With one seed an interval does not include the variance of the training itself.")
    trained = [row for row in rows if row["learnt"] and row["test"] == tests_of(document)[0]]
    if any(best == 0 for row in trained for best in row.get("best_epochs", ())):
        notes.append("? means that an old record does not tell the best epoch.")
    if late := sum(map(_late, trained)):
        notes.append(
            "† marks how many seeds have their best epoch in the last fifth of the training "
            f"({late} of all {sum(row['seeds'] for row in trained)}). If validation does not change any "
            "more, this happens to one seed in five by chance."
        )
    if any(row.get("kept") for row in rows):
        notes.append(
            f"{_KEPT.capitalize()} is the result if you train so many seeds and keep the one that is best "
            "on the validation sequences. Its interval comes from the windows alone."
        )
    if any(row.get("oracle") for row in rows):
        notes.append("A * after a row's name means that the row reads true run times (oracle).")
    if left_out := document["left_out"]:
        notes.append(f"These rows are left out, and so are the differences to them: {', '.join(left_out)}.")
    return notes + [f"Failed: {one['cell']}: {one['error']}" for one in document["failed"]]


# Pages.


def markdown(
    document: Document, name: str, command: str, more: Sequence[str] = (), table: Table | None = None
) -> str:
    """Return the page as Markdown; long tables are folded, see `fold_tables`.

    `name`: of the picture's file, without its suffix; empty = none. `command`: that carries the study out.
    `more`: paragraphs that are folded, behind the tables. `table`: in place of the summary.
    """
    tests = tests_of(document)
    opening, rest = split_opening(document["says"])
    parts = [f"# {document['title']}", opening, (table or summary(document, tests[0])).markdown()]
    picture = f"![{name}]({name}.svg)" if name else ""
    windows, *verdicts = sentences(document, tests[0])
    sentence_text = " ".join(verdicts or [windows])
    sentence_text = f"{tests[0]}: {sentence_text}" if table is not None and len(tests) > 1 else sentence_text
    parts += [sentence_text, picture, f"`{command}`"]
    if further := [text for text in (rest, document["details"]) if text]:
        parts += collapsible(DETAILS, further)
    for test in tests[1 if table is None else 0 :]:
        parts += collapsible(f"{test}: {sentences(document, test)[0]}", [summary(document, test).markdown()])
    inside = [text for one in tables_of(document) for text in (f"{one.caption}:", one.markdown())]
    parts += collapsible("All rows and comparisons", inside)
    notes = [*([windows] if verdicts else []), *notes_of(document)]
    parts += collapsible("Notes", ["\n".join(f"- {note}" for note in notes)])
    if more:
        parts += collapsible("Further pictures", more)
    return fold_tables("\n\n".join(part.strip() for part in parts if part) + "\n")


def page(document: Document, picture: str, command: str) -> str:
    """Return the page as HTML, in one file; see `markdown`."""
    tests = tests_of(document)
    return render(
        "study.html.j2",
        title=document["title"],
        says=document["says"],
        details=(DETAILS, document["details"]),
        tables=[summary(document, test) for test in tests],
        sentences=sentences(document, tests[0]),
        picture=picture,
        command=command,
        folded=tables_of(document),
        notes=notes_of(document),
    )


def write(document: Document, name: str, folder: Path, command: str) -> list[Path]:
    """Write a study's page as Markdown and HTML, its picture, and all as JSON; returns the files."""
    from bridge.study.picture import draw

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BridgeError(f"cannot be made ({error.strerror})", where=str(folder)) from error
    picture = draw(document, tests_of(document)[0], folder / f"{name}.svg")
    svg = picture.read_text(encoding="utf-8") if picture else ""
    texts = {
        f"{name}.md": markdown(document, name if picture else "", command),
        f"{name}.html": page(document, svg[svg.find("<svg") :] if svg else "", command),
        f"{name}.json": json.dumps(document, indent=1) + "\n",
    }
    for file, text in texts.items():
        with atomic_write(folder / file) as out:
            out.write(text.encode())
    return [*(folder / file for file in texts), *([picture] if picture else [])]
