"""What commands print: JSON, lines and tables; a run's metrics."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bridge.judge.run import Run


def show_json(document: Any) -> None:
    """Print a document as JSON."""
    click.echo(json.dumps(document, indent=2))


def show(document: Any, shown: Sequence[Any], as_json: bool) -> None:
    """Print a document as JSON, or what people see of it: lines, and tables as wide as the terminal."""
    if as_json:
        show_json(document)
        return
    for item in shown:
        if isinstance(item, str):
            click.echo(item)
        else:
            item.print()


def tell(made: "Run", out: Path | None, as_json: bool, by: Sequence[str] = ()) -> None:
    """Print a run's metrics, broken down by groups of jobs too, and where it was written."""
    shown: list[Any] = []
    if not as_json:
        from bridge.judge.metrics import breakdown
        from bridge.report.tables import breakdown_table, metrics_table

        threshold = made.config["experiment"].get("threshold", 10.0)
        groups = (breakdown(made.jobs, group, bsld_threshold=threshold) for group in by)
        shown = [metrics_table(made), *map(breakdown_table, groups)]
    show({"oracle": made.oracle, **made.metrics}, shown, as_json)
    if out is not None and not as_json:
        click.echo(f"run written to {out}; repeat it with: {made.config['command']}")
