"""Text of RLSchert's Figures 10 and 11: mean slowdown against the load and the size of the pool."""

import pandas as pd

from papers.rlschert.numbers import (
    COMMAND,
    against,
    estimate,
    markdown,
    results,
    smoke_of,
    smoke_warning,
)
from papers.rlschert.play import row_of
from papers.rlschert.rows import (
    BASE,
    HONEST,
    LABELS,
    LOADS,
    METHODS,
    SIZE_EPOCHS,
    SIZES,
    TEST,
    Sample,
)


def sweep(data: pd.DataFrame, samples: tuple[Sample, ...], label: str) -> list[str]:
    """Return a table of mean slowdowns, one column per load or size; half-widths of intervals behind ±."""
    rows = []
    for method in METHODS:
        cells = [method.row]
        seeds: set[str] = set()
        for sample in samples:
            found = results(data, row_of(method, "slowdown"), sample, label)
            if len(found):
                e = estimate(found, "slowdown")
                cells.append(f"{e.mean:.2f} ± {e.high - e.mean:.2f}")
                smoke = smoke_of(found)
                seeds.add(f"{len(found)}" + (f" (smoke: {smoke} epochs)" if smoke else ""))
            else:
                cells.append("not run")
        cells.insert(1, "none needed" if method.rule else ", ".join(sorted(seeds)) or "0")
        rows.append(cells)
    return markdown(("method", "seeds", *(sample.name for sample in samples)), rows)


def said(data: pd.DataFrame, samples: tuple[Sample, ...], label: str) -> list[str]:
    """Return a sentence per method: where it is better or worse than SAF."""
    lines = []
    for method in METHODS:
        if method is BASE:
            lines.append(f"- {method.row}: the one that others are compared with.")
            continue
        where: dict[str, list[str]] = {}
        smoke = 0
        for sample in samples:
            found = results(data, row_of(method, "slowdown"), sample, label)
            if len(found):
                base = results(data, BASE.row, sample, label)
                judged = against(estimate(found, "slowdown", base))
                where.setdefault(judged, []).append(sample.name)
                smoke = max(smoke, smoke_of(found))
        parts = [f"{judged} at {', '.join(names)}" for judged, names in where.items()]
        missing = f'not run; `{COMMAND} --row "{method.row}"`'
        lines.append(f"- {method.row}: {'; '.join(parts) or missing}.{smoke_warning(smoke)}")
    return [*lines, ""]


def _figure(data: pd.DataFrame, number: int, title: str, samples: tuple[Sample, ...], says: str) -> list[str]:
    text = [f"## Figure {number}: {title}", "", says, ""]
    for label in reversed(LABELS):
        text += [f"{label.capitalize()}:", "", *sweep(data, samples, label)]
    text += ["Honest, against SAF:", "", *said(data, samples, HONEST)]
    return [*text, f"![Figure {number}](rlschert-figure-{number}.svg)", ""]


def figures(data: pd.DataFrame) -> list[str]:
    """Return both."""
    return [
        *_figure(
            data,
            10,
            "mean slowdown against the load",
            LOADS,
            "Sequences of seed 18; the paper draws its numbers and prints none. Agents are those of Table 7, "
            "first seed: they have learnt at rate 0.7.",
        ),
        *_figure(
            data,
            11,
            "mean slowdown against the size of the pool",
            SIZES,
            f"The same at rate 0.7. A pool of another size is another picture: agents are trained for each "
            f"(`{COMMAND} --sizes`), for {SIZE_EPOCHS} epochs where it has not {TEST.units} units.",
        ),
    ]
