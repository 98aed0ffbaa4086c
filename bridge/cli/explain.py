"""`bridge explain`: what an agent looks at, feature by feature."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, show
from bridge.config import Constraint, Count
from bridge.config.options import given_on_command_line, options
from bridge.report.picture_files import kind_of_picture
from bridge.workload.catalogue import read_log

if TYPE_CHECKING:
    from bridge.learn.checkpoint import LogAgent
    from bridge.workload.select import Jobs


@dataclass(frozen=True)
class Explaining:
    """What an agent is watched on, and where the outcome goes.

    Attributes:
        workload: a file or a name.  [default: the log it was trained on]
        sequences: held-out sequences.
        out: draw the distributions, too, as .png or .svg.
        no_save: leave explanation.parquet in CHECKPOINT as it is.
    """

    workload: Annotated[str | None, Constraint(metavar="LOG")] = None
    sequences: Count = 100
    out: Annotated[Path | None, Constraint(metavar="FILE.png")] = None
    no_save: Annotated[bool, Constraint(option="--no-save")] = False


@click.command()
@click.argument("checkpoint", type=shared.FILE)
@options(Explaining)
@shared.malformed_option
@shared.json_option
@click.pass_context
def explain(ctx: click.Context, /, checkpoint: Path, malformed: str, as_json: bool, **_: Any) -> None:
    """Show which features determine the decisions of an agent (its folder, or zoo/NAME).

    The agent plays held-out sequences of the log. For each feature, the command compares two distributions:
    the jobs that the agent chose (an inspector: rejected) and all jobs that it could choose. The larger the
    Kolmogorov–Smirnov distance (0 to 1), the more the choice depends on the feature.

    \b
    Examples:
      bridge explain agents/rlbackfilling-bundled-128-s1 --out explanation.png
    """
    explain_options = Explaining(**given_on_command_line(ctx, Explaining))
    out = explain_options.out
    if out is not None:
        kind_of_picture(out)

    from bridge.learn import explain as engine
    from bridge.learn.checkpoint import load
    from bridge.report.tables import explanation_table

    folder = Path(shared.log_or_agent(str(checkpoint)))  # one that comes with bridge stays as it is
    agent = load(folder)
    jobs, held_out = _jobs(agent, explain_options.workload, malformed)
    prepared = agent.recipe.setup.build_scenario(jobs, agent.recipe.policy())
    length = agent.recipe.training.length
    starts = engine.spaced_starts(jobs, held_out, length, explain_options.sequences)
    with TERMINAL.bar("explain", len(starts), "sequences") as advance:
        result = engine.explain(agent, prepared, starts, length, advance)
    if not explain_options.no_save and folder == checkpoint:
        engine.write(folder / engine.FILE, result)
    chosen = "rejected" if agent.recipe.decision == "inspect" else "chosen"
    if out is not None:
        from bridge.report.plots import explanation, save

        curves = [
            (f.name, f.distance, engine.empirical_cdf(f.chosen), engine.empirical_cdf(f.all))
            for f in result.features
        ]
        save(explanation(curves, chosen, "all"), out)
    document = {
        "checkpoint": str(agent.folder),
        "decision": agent.recipe.decision,
        "workload": jobs.name,
        "sequences": len(starts),
        "length": length,
        **result.as_dict(),
    }
    title = f"{agent.name} on {jobs.name}"
    show(document, [explanation_table(document, chosen, title)], as_json)


def _jobs(agent: "LogAgent", workload: str | None, malformed: str) -> "tuple[Jobs, int]":
    """Return the jobs, and the first one that the agent's training has not seen."""
    from bridge.learn.agent import first_unseen_job, require_same

    name = workload or agent.origin.workload
    records = read_log(name, malformed)
    jobs = agent.recipe.setup.select(records)
    if workload is None:
        require_same(agent, name, records, f"Give --workload {name} if this is the log that you mean.")
    return jobs, first_unseen_job(agent, name, records, jobs)
