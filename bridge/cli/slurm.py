"""`bridge slurm`: set up a cluster for an agent, look after its gate, start fake nodes to try it on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.base.counted import counted
from bridge.cli import options as shared
from bridge.cli.terminal import show
from bridge.config.options import Command, options
from bridge.worlds.slurm.settings import AgentConfig

if TYPE_CHECKING:
    from bridge.report.table import Table
    from bridge.slurm_demo.demo import Demo
    from bridge.slurm_demo.monitor import DemoMonitor

#: Who decides in the demo.
_AGENT = "zoo/rlbackfilling-lublin-1"


@click.group()
def slurm() -> None:
    """Prepare a Slurm for an agent, and check its state.

    \b
      bridge slurm setup --partition batch --out /etc/bridge     writes gate, scripts, watchdog
      bridge slurm doctor --partition batch --directory /etc/bridge
                                                                 tells what is missing, and what that costs
      bridge decide sjf+easy --slurm --partition batch --directory /etc/bridge --kick kick
    """


@slurm.command(cls=Command)
@click.option(
    "--partition",
    "partitions",
    metavar="P",
    multiple=True,
    required=True,
    help="A partition whose jobs wait for the agent. May be repeated.",
)
@shared.folder_option("--out", "A new folder that all users can read.", required=True)
@click.option(
    "--kick", metavar="P", default="kick", show_default=True, help="Name of the partition for kicks."
)
@shared.number(
    "--grace",
    "Time that a node waits after a job, so that the agent can decide on the next job.",
    type=click.FloatRange(0, 5),
    default=0.05,
    metavar="S",
)
@click.option(
    "--user", metavar="NAME", default="", help="The account under which the agent runs.  [default: yours]"
)
def setup(partitions: tuple[str, ...], out: Path, kick: str, grace: float, user: str) -> None:
    """Write the files that an administrator installs: gate, scripts, watchdog, lines for slurm.conf."""
    from bridge.worlds.slurm.client import Client
    from bridge.worlds.slurm.install import configuration, write

    client = Client()
    configured = configuration(client)
    for partition in partitions:
        client.nodes(partition)
    for path in write(out, partitions, configured, kick=kick, grace=grace, user=user):
        click.echo(path)
    rest = "copy job_submit.lua beside slurm.conf, and reconfigure."
    click.echo(f"Now add the lines of {out / 'slurm.conf'}, {rest}")


@slurm.command(cls=Command)
@options(AgentConfig, "partition", "directory", "kick")
@shared.json_option
@click.pass_context
def doctor(
    ctx: click.Context, partition: str | None, directory: Path | None, kick: str | None, as_json: bool
) -> None:
    """Check this cluster for an agent: list what is missing, and what that costs."""
    from bridge.report.table import Table
    from bridge.worlds.slurm.client import Client
    from bridge.worlds.slurm.install import check_cluster

    if not partition:
        raise click.UsageError("doctor needs --partition P")
    findings = check_cluster(Client(), partition, directory, kick or "kick")
    rows = ((f.what, *(("yes", f.detail) if f.is_ok else ("no", f.detail, f.remedy))) for f in findings)
    table = Table(("", "", "found", "why"), rows, words=(2, 3))
    document = [{"name": f.what, "well": f.is_ok, "found": f.detail, "advice": f.remedy} for f in findings]
    show(document, [table], as_json)
    ctx.exit(1 if any(finding.status == "broken" for finding in findings) else 0)


@slurm.command(cls=Command)
@click.argument("what", type=click.Choice(("open", "close", "status")))
@click.option(
    "--directory",
    "--dir",
    metavar="DIR",
    required=True,
    type=shared.FOLDER,
    help="The folder that `bridge slurm setup` has written.",
)
@options(AgentConfig, "partition")
def gate(what: str, directory: Path, partition: str | None) -> None:
    """Open the gate (Slurm's own backfill gets the queue back), close it, or show its status."""
    from bridge.worlds.slurm import gate as gates
    from bridge.worlds.slurm.client import Client

    place = gates.gate_of(directory, partition or "")
    if what == "open":
        if not partition:
            raise click.UsageError("gate open needs --partition P, whose held jobs are released")
        click.echo(f"released {counted(gates.open_gate(place, Client()), 'job')}")
    elif what == "close":
        gates.close_gate(place)
    gate_status = gates.status(place)
    beat = "never" if gate_status.heartbeat is None else f"{gate_status.heartbeat:.0f} s ago"
    who = "an agent decides" if gate_status.alive else "Slurm decides"
    click.echo(f"the gate is {'open' if gate_status.is_open else 'closed'}; last heartbeat: {beat}; {who}")


@slurm.command(cls=Command)
@options(AgentConfig, "partition")
@click.option(
    "--policy",
    default="fcfs+easy",
    show_default=True,
    help="The policy that is assumed to start the queue's jobs.",
)
@shared.file_option("--out", "The file to write.  [default: print the state]")
@shared.force_option
def state(partition: str | None, policy: str, out: Path | None, force: bool) -> None:
    """Write the present state of a partition, for `bridge forecast` and `bridge whatif`."""
    from bridge.base import files
    from bridge.serve.observer import PartitionObserver
    from bridge.worlds.slurm.client import Client

    if not partition:
        raise click.UsageError("state needs --partition P")
    if out is not None:
        shared.check_output(out, force)
    document = json.dumps(PartitionObserver(Client(), partition, policy).read().document, indent=1) + "\n"
    if out is None:
        click.echo(document, nl=False)
    else:
        with files.open_write(out) as file:
            file.write(document.encode())


@slurm.command(cls=Command)
@shared.folder_option("--out", "A new folder for the results.", required=True)
@shared.policy_option(f"The policy that decides.  [default: {_AGENT}; sjf+easy without PyTorch]")
@shared.number("--jobs", "Number of jobs from bundled-128.", 10, 1000, default=200)
@shared.number("--nodes", "Number of fake nodes.", 4, 512, default=64)
@shared.number(
    "--factor", "All times of the workload are divided by this.", type=click.FloatRange(1), default=900.0
)
@shared.number("--port", "First port that is used.", 1025, 60000, default=27000)
@shared.json_option
def demo(
    out: Path, policy: str | None, jobs: int, nodes: int, factor: float, port: int, as_json: bool
) -> None:
    """Let an agent decide live for a Slurm of fake nodes. Compare with the fast world and Slurm's backfill.

    The result is a page, OUT/demo.html. The demo needs root and Debian's packages of Slurm. It writes only
    to OUT.

    \b
      bridge slurm demo --out runs/slurm-demo
    """
    from bridge.slurm_demo.demo import Demo

    shared.check_folder(out / "x")
    out.mkdir(parents=True, exist_ok=True)
    out.chmod(0o755)
    policy = policy or (_AGENT if find_spec("torch") else "sjf+easy")
    _carry_out(Demo(policy, jobs, nodes, factor, port, out), as_json)


@slurm.group()
def cluster() -> None:
    """Start and end a cluster of fake nodes in one folder, for trials."""


@cluster.command()
@click.argument("folder", type=shared.FOLDER)
@shared.number("--nodes", "Number of nodes.", 1, 1000, default=64)
@shared.number("--port", "First port; nodes + 3 ports are used.", 1025, 60000, default=27000)
def up(folder: Path, nodes: int, port: int) -> None:
    """Start the cluster, with gate and kicks. This needs root and Debian's packages of Slurm."""
    from bridge.slurm_demo.cluster import start

    conf = start(folder, nodes=nodes, port=port)
    click.echo(f"up: {counted(nodes, 'node')}; export SLURM_CONF={conf}")


@cluster.command()
@click.argument("folder", type=shared.FOLDER)
def down(folder: Path) -> None:
    """End the cluster and remove the folder."""
    from bridge.slurm_demo.cluster import stop

    stop(folder)


@slurm.command(cls=Command)
@shared.number("--seconds", "Watch for so long.", type=click.FloatRange(1), default=600.0)
@shared.number("--interval", "Seconds between two readings.", type=click.FloatRange(0.05), default=0.1)
@shared.json_option
def shadow(seconds: float, interval: float, as_json: bool) -> None:
    """Predict what Slurm's own schedulers start, by the protocol `slurm`, and report the hit rate.

    It only reads. Each start of Slurm's is compared with what a pass of the same scheduler starts, and where,
    from all that was there before it. Readings do not tell the order of what happens between two of them. So
    a second hit rate is that of the order which explains the starts best. Jobs that wait for another job, and
    components of others, count as misses: nothing is predicted of them.

    \b
      bridge slurm shadow --seconds 3600
    """
    from bridge.worlds.slurm.client import Client
    from bridge.worlds.slurm.own_shadow import OwnShadow

    watching, end = OwnShadow(Client()), time.monotonic() + seconds
    watching.run(lambda: time.monotonic() > end, interval)
    document = watching.report.document()
    starts = document["starts"]
    lines = ["no starts"] if not starts else [
        f"{counted(starts, 'start')}, predicted on the same nodes: {100 * document['hit rate']:.1f} %, "
        f"and {100 * document['hit rate if the order is free']:.1f} % if the order between readings is free"
    ]  # fmt: skip
    lines += [
        f"{miss['job']}: on {','.join(miss['nodes'])}, predicted {','.join(miss['predicted'] or ['nothing'])}"
        for miss in document["misses"]
    ]
    show(document, lines, as_json)


@slurm.command(cls=Command)
@click.argument("folders", nargs=-1, required=True, type=shared.FOLDER, metavar="DIR…")
@click.option(
    "--clock",
    type=click.Choice(("recorded", "own")),
    default="recorded",
    show_default=True,
    help="When passes run. recorded: at the times of the case. own: by Slurm's rules, from a random time on.",
)
@shared.number(
    "--seed",
    "With --clock own: random seed of the times at which Slurm's schedulers first run.",
    0,
    default=0,
)
@shared.file_option("--out", "Write the starts here, as CSV: case,job,episode,start,nodes.")
@shared.force_option
@shared.json_option
def case(
    folders: tuple[Path, ...],
    clock: str,
    seed: int,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Play recorded cases of a real Slurm with the protocol slurm, and compare starts and nodes.

    A case is a folder with cluster.conf, assoc.txt, jobs.csv, events.csv, cycles.csv, result.csv and
    case.json. The decisions of the real Slurm are only used for the comparison.

    \b
      bridge slurm case cases/* --out starts.csv
      bridge slurm case cases/fairtree --clock own --seed 3
    """
    from bridge.base import files
    from bridge.worlds.fast.slurm.agreement import agreement_document, play_case, starts_csv

    if out is not None:
        shared.check_output(out, force)
    played = [play_case(folder, clock, seed) for folder in folders]
    if out is not None:
        with files.open_write(out) as file:
            file.write(starts_csv(played).encode())
    document = agreement_document(played)
    show(document, [_agreement_table(document)], as_json)


def _agreement_table(document: list[dict[str, Any]]) -> Table:
    from bridge.report.table import Table

    counts = ("starts", "within_tolerance", "same_nodes", "never_started_there")
    rows = [(str(one["case"]), *(str(one[name]) for name in counts)) for one in document]
    if len(rows) > 1:
        rows.append(("all", *(str(sum(one[name] for one in document)) for name in counts)))
    return Table(("case", "starts", "within 3 s", "same nodes", "never started there"), rows, words=(0,))


#: Seconds between lines of the demo where no terminal is there to be drawn on.
_QUIET = 10.0


def _carry_out(demo: Demo, as_json: bool) -> None:
    from bridge.judge.compare import compare_runs
    from bridge.report.page import read_inputs, write_page
    from bridge.report.tables import comparison_table

    who = f"first {demo.policy}, then Slurm's own backfill"
    click.echo(f"{counted(demo.jobs, 'job')} on {counted(demo.nodes, 'fake node')}: {who}", err=True)
    with _live_display() as see:
        live = demo.live(see)
    with _live_display() as see:
        backfill = demo.backfill(see)
    names = ("live", "fast", "slurm-backfill")
    runs, document = demo.write(live, backfill)
    page, inputs = demo.folder / "demo.html", read_inputs([demo.folder / name for name in names])
    write_page(inputs, page, f"{demo.policy} beside a real Slurm")
    table = comparison_table(compare_runs(runs, names))
    numbers = {
        name: f"{value:.3g}" if isinstance(value, float) else value for name, value in document.items()
    }
    lines = [f"{name}: {value}" for name, value in numbers.items()]
    document["page"] = str(page)
    show(document, [table, *lines, f"Look at {page}"], as_json)


@contextmanager
def _live_display() -> Iterator[Callable[[DemoMonitor, str], None]]:
    """Yield what shows a trial: a table that lives, or a line now and then."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4) as display:
            yield lambda watching, title: display.update(watching.table(title), refresh=True)
        return
    last = 0.0

    def say(watching: DemoMonitor, title: str) -> None:
        nonlocal last
        if time.monotonic() > last + _QUIET:
            last = time.monotonic()
            click.echo(f"{title}: {watching.line()}", err=True)

    yield say
