"""Pages of results: templates (`*.md` beside the studies) filled with what was measured, and their index."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bridge.report import table as tables
from bridge.study.windows import Test
from papers import curves, pictures, store, study
from papers.mrsch import goals
from papers.study import Table
from papers.tables import HEADS, LINE, Results, everybody, line, others, rivals


@cache
def _templates() -> Environment:
    found = Environment(
        loader=FileSystemLoader(study.HERE),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    found.globals["table"] = lambda heads, rows: tables.Table(heads, rows).markdown().rstrip()
    found.globals["bullets"] = lambda sentences: "\n".join(f"- {sentence}" for sentence in sentences)
    return found


def render(template: str, **values: Any) -> str:
    """Return a template's text."""
    return _templates().get_template(template).render(values)


def block(template: str, name: str, **values: Any) -> str:
    """Return one block of a template: a section of a page."""
    found = _templates().get_template(template)
    return "".join(found.blocks[name](found.new_context(values)))


# Tables of agents on logs.


def charts(table: Table) -> list[Path]:
    """Draw what tables of many metrics have beside the curves."""
    if not table.more:
        return []
    made = [pictures.kiviat(table)]
    if table.policy == "sem":
        made.append(pictures.convergence(table))
    elif goals.has(table):
        made.append(goals.draw(table))
    return [path for path in made if path is not None]


def page(table: Table, shown: list[Path], curve: Path | None) -> str:
    """Return a table as Markdown.

    Args:
        table: what it is of.
        shown: its charts.
        curve: how its agents learnt.
    """
    explained = sorted(store.RESULTS.glob(f"{table.policy or '-'}-*-explained.svg"))
    return render(
        "table.md",
        of=table,
        heads=LINE,
        metrics=[HEADS[metric][0] for metric in table.more],
        parts=[_part(Results(table, test.name), test) for test in table.tests],
        charts=[path.stem for path in shown],
        goals=goals.said(table) if goals.has(table) else [],
        convergence=converging(table) if table.policy == "sem" else [],
        pictures=[
            path.stem for path in (curve, *(explained if any(r.headline for r in table.rows) else ())) if path
        ],
    )


def _part(results: Results, test: Test) -> dict[str, Any]:
    table, there = results.table, bool(results.metric)
    rows = [row for row in table.rows if any(t.name == test.name for t in row.tests)]
    everyone = {row.name: others(results, row) for row in table.rows}
    return {
        "test": test,
        "metric": results.metric,
        "lines": [line(results, row) for row in rows] if table.learns else [],
        "rivals": rivals(results) if table.more and there else [],
        "everybody": everybody(results) if table.more and there else [],
        "others": {name: text for name, text in everyone.items() if text},
    }


def converging(table: Table) -> list[str]:
    """Return how the agents of each row did while they learnt, episode by episode."""
    return [
        f"{row}: {_converging(found)}" for row, found in pictures.in_order(table, curves.read(table.name))
    ]


def _converging(found: list[curves.Curve]) -> str:
    learning = curves.together(found, "learning")
    last = len(learning) - 1
    there = ", ".join(
        f"{learning['mean'].iloc[k]:.2f} in episodes {k + 1}–{k + curves.WINDOW}"
        for k in (0, last // 2, last)
    )
    entropy = ", ".join(f"{value:.2f}" for value in curves.together(found, "entropy")["mean"])
    return (
        f"wait over the base's on the same episodes, with exploration: {there} "
        f"(mean of {curves.seeds_of(found)} seeds); "
        f"entropy of the policy at first, in the middle and at the end {entropy}."
    )


# All pages.


def index() -> str:
    """Return the list of the pages, and how many rows of each are complete."""
    lines = []
    for table in study.tables():
        if table.learns:
            seeds = store.agents(table.name).groupby("row")["seed"].nunique()
            have = sum(seeds.get(row.name, 0) >= row.seeds for row in table.rows)
            state = f"{have} of {len(table.rows)} rows complete"
        else:
            state = "complete" if len(store.read(table.name)) else "not run"
        lines.append(f"[{table.title}]({table.name}.md): {state}")
    more = [
        f"[{title}]({name}.md)" for name, title in MORE.items() if (store.RESULTS / f"{name}.md").exists()
    ]
    return render("index.md", lines=[*lines, *more])


#: Pages that are no tables of agents on logs.
MORE = {
    "sem-encoding": "SEM: running jobs in place of nodes",
    "both-worlds": "The same agents in both worlds",
    "mrsch-both-worlds": "Many resources in both worlds: staging and power",
    "rlschert": "RLSchert: pick or kill jobs on a time-stepped pool",
}


def write() -> list[Path]:
    """Write all tables and their index from what was measured."""
    written = [
        store.written(table.name, page(table, charts(table), pictures.curves(table)))
        for table in study.tables()
    ]
    return [*written, store.written("README", index())]
