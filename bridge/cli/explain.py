"""`bridge explain`: what an agent looks at, feature by feature."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from bridge.cli import options as shared
from bridge.cli.show import TERMINAL, show
from bridge.config import Count, Of
from bridge.config.options import options, typed
from bridge.errors import BridgeError
from bridge.workload.catalogue import read_log

if TYPE_CHECKING:
    from bridge.learn.checkpoint import Checkpoint
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

    workload: Annotated[str | None, Of(metavar="LOG")] = None
    sequences: Count = 100
    out: Annotated[Path | None, Of(metavar="FILE.png")] = None
    no_save: Annotated[bool, Of(option="--no-save")] = False


@click.command()
@click.argument("checkpoint", type=shared.FILE)
@options(Explaining)
@shared.malformed_option
@shared.json_option
@click.pass_context
def explain(ctx: click.Context, /, checkpoint: Path, malformed: str, as_json: bool, **_: Any) -> None:
    """Tell what the agent in the folder CHECKPOINT looks at; zoo/NAME is one that comes with bridge.

    It plays held-out sequences of the log, as it decides once deployed. For each feature the values of what
    it chose (an inspector: rejected) are compared with those of all that it was shown; the further apart the
    two distributions are (Kolmogorov–Smirnov distance, 0 to 1), the more the feature tells of its choice.

    \b
    Examples:
      bridge explain agents/rlbackfilling-bundled-128-s1 --out explanation.png
    """
    asked = Explaining(**typed(ctx, Explaining))
    out = asked.out
    if out is not None and out.suffix.lower() not in (".png", ".svg"):
        raise BridgeError("pictures are saved as .png or .svg", where=str(out), remedy="Change the suffix.")

    from bridge.learn import explain as engine
    from bridge.learn.checkpoint import load
    from bridge.report.tables import explanation_table

    folder = Path(shared.log_or_agent(str(checkpoint)))  # one that comes with bridge stays as it is
    agent = load(folder)
    jobs, held_out = _jobs(agent, asked.workload, malformed)
    prepared = agent.recipe.setup.prepare(jobs, agent.recipe.policy())
    length = agent.recipe.training.length
    starts = engine.spread(jobs, held_out, length, asked.sequences)
    TERMINAL.compiling()
    with TERMINAL.bar("explain", len(starts), "sequences") as advance:
        found = engine.explain(agent, prepared, starts, length, advance)
    if not asked.no_save and folder == checkpoint:
        engine.write(folder / engine.FILE, found)
    chosen = "rejected" if agent.recipe.decision == "inspect" else "chosen"
    if out is not None:
        from bridge.report.plots import explanation, save

        curves = [(f.name, f.distance, engine.curve(f.chosen), engine.curve(f.all)) for f in found.features]
        save(explanation(curves, chosen, "all"), out)
    document = {
        "checkpoint": str(agent.folder),
        "decision": agent.recipe.decision,
        "workload": jobs.name,
        "sequences": len(starts),
        "length": length,
        **found.as_dict(),
    }
    title = f"{agent.name} on {jobs.name}"
    show(document, [explanation_table(document, chosen, title)], as_json)


def _jobs(agent: "Checkpoint", workload: str | None, malformed: str) -> "tuple[Jobs, int]":
    """Return the jobs, and the first one that the agent's training has not seen."""
    from bridge.learn.agent import first_unseen, require_same

    name = workload or agent.origin.workload
    records = read_log(name, malformed)
    jobs = agent.recipe.setup.select(records)
    if workload is None:
        require_same(agent, name, records, f"Give --workload {name} if this is the log that you mean.")
    return jobs, first_unseen(agent, name, records, jobs)
