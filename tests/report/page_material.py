"""What the tests of the page share: one small input of each kind, and a reader of HTML."""

import json
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from schedules import example

from bridge.judge.metrics import compute_metrics
from bridge.judge.run import Run, write_run
from bridge.report.page.charts import Block
from bridge.report.table import render

#: A name that must never be read as HTML, nor end a script.
EVIL = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">'
EVALUATION: dict[str, Any] = {
    "workload": "small",
    "metric": "bsld",
    "length": 10,
    "sequences": 4,
    "starts": [0, 10, 20, 30],
    "policies": [
        {
            "order": "fcfs",
            "backfill": "easy",
            "candidate_order": "",
            "estimator": "requested",
            "oracle": False,
            "mean": 5.0,
            "ci95": {"mean": 5.0, "low": 3.0, "high": 7.0},
            "difference": None,
            "verdict": "",
            "values": [2.0, 4.0, 6.0, 8.0],
        },
        {
            "agent": "zoo/agent",
            "estimator": "requested",
            "news": {"of": "later versions"},
            "oracle": True,
            "mean": 4.0,
            "ci95": {"mean": 4.0, "low": None, "high": None},
            "difference": {"mean": -1.0, "low": -2.5, "high": 0.5},
            "verdict": "not distinguishable",
            "values": [1.0, 4.0, 4.0, 7.0],
        },
    ],
}

#: As `bridge bound --json` prints it, but for the values of the sequences.
BOUND: dict[str, Any] = {
    "workload": "small",
    "metric": "bsld",
    "estimator": "requested",
    "length": 10,
    "sequences": 4,
    "rows": [
        {"known": "what is believed", "policy": "f4+easy", "oracle": False, "mean": 40.0},
        {
            "known": "run times",
            "policy": "saf+easy",
            "oracle": True,
            "mean": 30.0,
            "difference_percent": {"mean": -25.2, "low": -40.6, "high": 5.0},
        },
        {
            "known": "run times",
            "policy": "lookahead(saf)",
            "oracle": True,
            "mean": 32.0,
            "difference_percent": {"mean": -20.0, "low": None, "high": None},
        },
    ],
    "rules": {},
}


def small_run(oracle: bool = False) -> Run:
    """Return the example schedule as a run of four nodes."""
    jobs = example()
    return Run(
        {"command": "bridge replay x"}, {"nodes": 4}, jobs, compute_metrics(jobs, {"nodes": 4}), oracle
    )


def write_json(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def validation(policy: str = "fcfs+easy") -> dict[str, Any]:
    """Return a validation whose detailed world doubles the waits."""
    from bridge.judge.world_agreement import as_dict, compare_worlds

    document = as_dict(
        [compare_worlds(policy, small_run(), slow_run())], {"workload": "small", "world": "simgrid"}
    )
    plain: dict[str, Any] = json.loads(json.dumps(document))
    return plain


def slow_run() -> Run:
    """Return the example schedule with everything but submissions twice as late."""
    jobs = example()
    for column in ("starting_time", "finish_time", "execution_time"):
        jobs[column] *= 2
    jobs["waiting_time"] = jobs["starting_time"] - jobs["submission_time"]
    return Run({}, {"nodes": 4}, jobs, compute_metrics(jobs, {"nodes": 4}))


def write_validation(folder: Path, policy: str = "fcfs+easy") -> Path:
    write_json(folder / "validation.json", validation(policy))
    write_run(small_run(), folder / policy / "fast")
    write_run(slow_run(), folder / policy / "simgrid")
    return folder


def write_checkpoint(folder: Path, **agent: Any) -> Path:
    told = {"name": "tiny", "metric": "bsld", "setting": {"rate": 0.5, "deep": {"er": 1}}, "seed": None}
    write_json(folder / "agent.json", told | agent)
    write_json(folder / "evaluation.json", EVALUATION)
    progress = {
        "epoch": [1, 2, 3],
        "seconds": [2.0, 2.0, 2.0],
        "train_mean": [9.0, 7.0, 8.0],
        "base_mean": [8.0, 8.0, 8.0],
        "valid_mean": [np.nan, 6.0, np.nan],
        "policy_loss": [-0.5, -0.25, -0.125],
        "remark": ["of", "no", "interest"],
    }
    pd.DataFrame(progress).to_parquet(folder / "progress.parquet")
    # of the chosen half are 1 and half 2, of all half are 2 and half 4
    rows = [("slack", kind, value, share) for kind, value, share in CURVES]
    pd.DataFrame(rows, columns=["feature", "kind", "value", "cdf"]).to_parquet(folder / "explanation.parquet")
    return folder


CURVES = (("chosen", 1.0, 0.5), ("chosen", 2.0, 1.0), ("all", 2.0, 0.5), ("all", 4.0, 1.0))


def html_of(body: Iterable[Block]) -> str:
    section = {"anchor": "one", "title": "One", "lead": "", "body": list(body), "parts": []}
    return render("section.html.j2", section=section)


class Parsed(HTMLParser):
    """The tags of a page, its scripts, its tables as text, and all text that is shown."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.rows: list[list[str]] = []
        self.shown = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "link"):
            self._open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = attrs, text + data
        elif inside != "style":
            self.shown += data
        if inside in ("td", "th"):
            self.rows[-1][-1] += data

    def row(self, heading: str) -> list[str]:
        return next(row[1:] for row in self.rows if row and row[0] == heading)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]
