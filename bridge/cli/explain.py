"""`bridge explain`: what an agent looks at, feature by feature."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bridge.cli.options import malformed_option, read_log
from bridge.cli.progress import progress_bar, say_if_compiling
from bridge.errors import BridgeError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bridge.learn.checkpoint import Checkpoint
    from bridge.learn.explain import Explanation
    from bridge.workload.select import Jobs


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("--workload", metavar="LOG", help="A file or a name.  [default: the log it was trained on]")
@click.option(
    "--sequences", type=click.IntRange(min=1), default=100, show_default=True, help="Held-out sequences."
)
@click.option(
    "--out",
    metavar="FILE.png",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the distributions, too, as .png or .svg.",
)
@click.option("--no-save", is_flag=True, help="Leave explanation.parquet in CHECKPOINT as it is.")
@malformed_option
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def explain(
    checkpoint: Path,
    workload: str | None,
    sequences: int,
    out: Path | None,
    no_save: bool,
    malformed: str,
    as_json: bool,
) -> None:
    """Tell what the agent in the folder CHECKPOINT looks at.

    It plays held-out sequences of the log, as it decides once deployed. For each feature the values of what
    it chose (an inspector: rejected) are compared with those of all that it was shown; the further apart the
    two distributions are (Kolmogorov–Smirnov distance, 0 to 1), the more the feature tells of its choice.

    \b
    Examples:
      bridge explain agents/rlbackfilling-bundled-128-s1 --out explanation.png
    """
    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise BridgeError("pictures are saved as .png or .svg", where=str(out), remedy="Change the suffix.")

    from bridge.learn import explain as engine
    from bridge.learn.checkpoint import load

    agent = load(checkpoint)
    jobs, held_out = _jobs(agent, workload, malformed)
    prepared = agent.recipe.setup.prepare(jobs, agent.recipe.policy())
    length = agent.recipe.training.length
    starts = _starts(jobs, held_out, length, sequences)
    say_if_compiling()
    with progress_bar("explain", len(starts), "sequences") as advance:
        found = engine.explain(agent, prepared, starts, length, advance)
    if not no_save:
        engine.write(checkpoint / engine.FILE, found)
    chosen = "rejected" if agent.recipe.decision == "inspect" else "chosen"
    if out is not None:
        from bridge.report.plots import explanation, save

        curves = [(f.name, f.distance, engine.curve(f.chosen), engine.curve(f.all)) for f in found.features]
        save(explanation(curves, chosen, "all"), out)
    if as_json:
        click.echo(json.dumps(_plain(found, agent, jobs.name, len(starts), length), indent=2))
        return
    _table(found, chosen, f"{agent.name} on {jobs.name}", len(starts), length)


def _jobs(agent: "Checkpoint", workload: str | None, malformed: str) -> "tuple[Jobs, int]":
    """Return the jobs, and the first one that the agent's training has not seen."""
    from bridge.learn.agent import first_unseen, require_same

    name = workload or agent.origin.workload
    records = read_log(name, malformed)
    jobs = agent.recipe.setup.select(records)
    if workload is None:
        require_same(agent, name, records, f"Give --workload {name} if this is the log that you mean.")
    return jobs, first_unseen(agent, name, records, jobs)


def _starts(jobs: "Jobs", first: int, length: int, sequences: int) -> "NDArray[np.int64]":
    """Return the first jobs of sequences spread evenly over the part of the log from `first` on."""
    import numpy as np

    last = len(jobs) - length
    if last < first:
        raise BridgeError(
            f"{len(jobs) - first:,} held-out jobs are too few for a sequence of {length}",
            where=jobs.name,
            remedy="Give a longer log with --workload.",
        )
    return np.unique(np.linspace(first, last, sequences).astype(np.int64))


def _table(found: "Explanation", chosen: str, title: str, sequences: int, length: int) -> None:
    from bridge.learn.explain import QUANTILES
    from bridge.report.table import Table

    shares = " / ".join(f"{q:.0%}" for q in QUANTILES)
    table = Table(
        ("feature", "distance", f"{chosen} are", chosen, "all"),
        title=f"{title}: {found.chosen:,} of {found.rows:,} rows {chosen} in {found.decisions:,} decisions, "
        f"{sequences:,} sequences of {length:,} jobs",
        caption=f"Quantiles {shares}; distance of the two distributions: Kolmogorov–Smirnov.",
    )
    for feature in found.features:
        own, rest = feature.quantiles()
        tends = "–" if feature.distance == 0 else "larger" if feature.larger else "smaller"
        table.add(feature.name, f"{feature.distance:.3f}", tends, _numbers(own), _numbers(rest))
    table.print()


def _numbers(values: list[float]) -> str:
    return " / ".join(f"{v:.3g}" for v in values)


def _plain(
    found: "Explanation", agent: "Checkpoint", workload: str, sequences: int, length: int
) -> dict[str, object]:
    from bridge.learn.explain import QUANTILES

    return {
        "checkpoint": str(agent.folder),
        "decision": agent.recipe.decision,
        "workload": workload,
        "sequences": sequences,
        "length": length,
        "decisions": found.decisions,
        "chosen": found.chosen,
        "rows": found.rows,
        "quantiles": list(QUANTILES),
        "features": [
            {
                "feature": f.name,
                "distance": f.distance,
                "chosen_are": None if f.distance == 0 else "larger" if f.larger else "smaller",
                "chosen_quantiles": f.quantiles()[0],
                "all_quantiles": f.quantiles()[1],
            }
            for f in found.features
        ],
    }
