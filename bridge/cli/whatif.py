"""`bridge whatif`: the same futures of a machine under several rules."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.cli import decide_slurm
from bridge.cli import options as shared
from bridge.cli.terminal import show
from bridge.config.fields import record_of
from bridge.config.options import Command
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    from bridge.forecasting.state import MachineState

#: What decides for a Slurm with other nodes, where no policy is named.
_ON_CHANGED_NODES = "fcfs+easy"


@click.command(cls=Command)
@click.argument("source", metavar="[RUN|STATE]", required=False, type=shared.FILE)
@decide_slurm.at_option
@shared.policies_option
@click.option(
    "--drain", metavar="N", help="Take N nodes out of service. On a cluster give their names: n[1-4]."
)
@click.option(
    "--add", metavar="N", help="Add N nodes. On a cluster, GROUP:N adds N nodes like those of GROUP."
)
@decide_slurm.submit_option("Add a waiting job. May be repeated.")
@shared.number(
    "--futures", "Number of futures.  [default: 100]", 2, 10_000, default=100, show_default=False, metavar="N"
)
@shared.number("--seed", "Same seed, same futures.  [default: 0]", 0, default=0, show_default=False)
@decide_slurm.observed_options
@shared.field_options(
    SchedulerConfig, cluster="Refused: the cluster is that of the RUN or of Slurm; a STATE is of one pool."
)
@shared.json_option
def whatif(
    source: Path | None,
    at: float | None,
    policies: tuple[str, ...],
    drain: str | None,
    add: str | None,
    submits: tuple[str, ...],
    futures: int,
    seed: int,
    slurm: bool,
    partition: str | None,
    history: Path | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Play the same futures of a machine under several rules, and compare the rules in each future.

    The first --policy is the base. Without --policy, the base is the policy of the state. With --drain, --add
    or --submit, the base is the machine without the change, and the rules are played on the changed machine.
    With --slurm and one --policy, the base is Slurm's own schedulers. They also decide with --submit alone.

    \b
      bridge whatif runs/sp2 --at 2592000 --policy fcfs+easy --policy sjf+easy --policy saf+easy
      bridge whatif now.json --drain 16
      bridge whatif --slurm --partition batch --policy sjf+easy
    """
    from bridge.forecasting.whatif import whatif
    from bridge.judge.fidelity import describe, folder_distance
    from bridge.judge.metrics import note_without_waits
    from bridge.report.tables import whatif_table

    words = {"at": at, "partition": partition, "history": history}
    decide_slurm.refuse_observed(slurm, source, {name for name, value in words.items() if value is not None})
    shared.refuse_cluster(cluster)
    if drain and add:
        raise click.UsageError("--drain and --add: choose one")
    change = bool(drain or add or submits)
    if len(policies) < (1 if slurm else 2) and not change:
        least = "a rule" if slurm else "two rules"
        raise click.UsageError(f"name {least} at least (--policy), or a change (--drain, --add, --submit)")
    by_slurm = slurm and not drain and not add and len(policies) == (0 if change else 1)
    first = "" if by_slurm or not (slurm or policies) else [*policies, _ON_CHANGED_NODES][0]
    state, _ = decide_slurm.state(source, at, first, partition, history)
    names = ["", *policies] if by_slurm and not change else [*policies] or [""]
    states = [state]
    if change:
        states += [_changed(state, drain or "", add or "", submits)] * len(names)
        names = [names[0], *names]
    outcomes = whatif(states, names, futures=futures, seed=seed)
    document: dict[str, Any] = {
        "now": state.now / 1e6, "futures": futures, "seed": seed, "changed": change,
        "policies": [record_of(one) for one in outcomes],
    }  # fmt: skip
    lines = []
    if source is not None and (distance := folder_distance(source)):
        document["fidelity"] = record_of(distance)
        lines.append(describe(distance))
    if note := note_without_waits(one.values["wait"].mean for one in outcomes):
        lines.append(note)
    show(document, [whatif_table(outcomes, change, futures), *lines], as_json)


def _changed(state: "MachineState", drain: str, add: str, submits: tuple[str, ...]) -> "MachineState":
    """Return the state after the change that the options name."""
    from bridge.forecasting.whatif import change_site, change_state

    if state.site is not None and (drain or add):
        if submits:
            raise click.UsageError("--submit beside --drain or --add: not on a cluster")
        return change_site(state, drain, add)
    for name, text in (("drain", drain), ("add", add)):
        if text and not (text.isdigit() and int(text) > 0):
            raise click.UsageError(f"--{name} {text}: write how many nodes; names are of a run on a cluster")
    return change_state(state, nodes=int(add or 0) - int(drain or 0), submits=submits)
