"""`bridge validate`: policies in the fast world against the same policies on a detailed platform."""

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.cli.options import ESTIMATOR_HELP, cross_protocol_option, rule_options, typed_options, warn_about
from bridge.cli.progress import say_if_compiling
from bridge.cli.run import detailed_options, given, run_detailed, run_fast
from bridge.cli.slotted import (
    VALIDATES,
    VALIDATES_TOO,
    has_slotted,
    refuse_options,
    scheduler_option,
    slotted_validation_options,
)
from bridge.cli.slotted_worlds import validate_pool
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from rich.table import Table

    from bridge.experiment.spec import Experiment
    from bridge.judge.agreement import Agreement, Rank

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("policies", metavar="POLICY…", nargs=-1, required=True)
@click.option(
    "--workload",
    metavar="LOG",
    help="A file, a bundled workload or a fetched log.  [default: the one that the first agent learnt on]",
)
@click.option(
    "--on",
    type=click.Choice(["simgrid", "batsim"]),
    default="simgrid",
    show_default=True,
    help="The detailed world.",
)
@click.option("--estimator", help=ESTIMATOR_HELP)
@cross_protocol_option
@rule_options
@click.option("--seed", type=click.IntRange(min=0), help="Of the estimator noisy(P).")
@click.option("--threshold", type=float, metavar="S", help="Of the bounded slowdown.  [default: 10]")
@detailed_options
@click.option(
    "--out",
    metavar="DIR",
    type=_FILE,
    help="Write validation.json (slotted: agreement.json) and all runs to this new folder.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    metavar="T",
    help="Largest relative difference: from the baseline's metrics [default: 1e-6], or without --against "
    "from the fast world's; beyond it the exit status is 1.",
)
@click.option("--save-baseline", metavar="FILE", type=_FILE, help="Save the outcome as a baseline.")
@click.option(
    "--against", "baseline", metavar="FILE", type=_FILE, help="Compare the outcome with a baseline."
)
@scheduler_option(", which draws its jobs")
@slotted_validation_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.pass_context
def validate(
    ctx: click.Context,
    /,
    policies: tuple[str, ...],
    out: Path | None,
    tolerance: float | None,
    save_baseline: Path | None,
    baseline: Path | None,
    scheduler: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Run each POLICY in the fast world and on a detailed platform, and tell how far they agree.

    A POLICY is an order and a backfilling rule, such as fcfs+easy, sjf+conservative or wfp3+none, or the
    folder of a trained agent. On the slotted pool it is sjf, saf, tetris or tetris*, alone or with +rule, the
    kill rule, or an agent's folder.

    \b
    Examples:
      bridge validate fcfs+easy sjf+easy --workload bundled-128 --platform sp2-128 --profile io --first 500
      bridge validate fcfs+easy --workload small.swf --platform my.xml --against baseline.json
      bridge validate agents/my-agent fcfs+easy --platform sp2-128 --first 500
      bridge validate saf saf+rule --scheduler slotted --platform exact-128 --sequences 2

    Exit status: 1 if a run failed, or something is beyond --tolerance.
    """
    from bridge.judge import agreement

    before = agreement.read_baseline(baseline) if baseline is not None else None
    if out is not None and out.exists():
        raise BridgeError("exists already", where=str(out), remedy="Name a new folder.")
    own = {name: options.pop(name) for name in VALIDATES}
    typed = typed_options(ctx)
    if scheduler == "slotted" or ("scheduler" not in typed and has_slotted(policies)):
        refuse_options(typed - {*VALIDATES, *VALIDATES_TOO}, "the slotted pool")
        chosen = {k: v for k, v in (own | options).items() if k in typed and k != "on"}
        if not validate_pool(policies, chosen, options["on"], out=out, tolerance=tolerance, as_json=as_json):
            ctx.exit(1)
        return
    refuse_options(typed & {*VALIDATES}, "the event-driven scheduler")
    given_options = {"workload": _workload(policies)} | given(ctx, options) | {"on": options["on"]}
    experiments = _experiments(policies, given_options)
    say_if_compiling()
    found: list[Agreement] = []
    inputs: dict[str, Any] = {}
    for policy, experiment in experiments.items():
        one, inputs = _both(policy, experiment, out, first=not found)
        found.append(one)
    document = agreement.as_dict(found, inputs)
    problems = agreement.against(document, before, 1e-6 if tolerance is None else tolerance) if before else []
    if before is None and tolerance is not None:
        problems = agreement.beyond(found, tolerance)
    if out is not None:
        agreement.write_document(document, out / "validation.json")
    if save_baseline is not None:
        agreement.write_document(document, save_baseline)
    if as_json:
        import json

        click.echo(json.dumps(document | {"problems": problems}, indent=2))
    else:
        _show(found, agreement.ranks(found))
    for problem in problems[:20]:
        click.echo(f"beyond the tolerance: {problem}", err=True)
    if len(problems) > 20:
        click.echo(f"… and {len(problems) - 20} more", err=True)
    if problems:
        ctx.exit(1)


def _workload(policies: tuple[str, ...]) -> str:
    """Return the log that the first agent learnt on; empty if there is no agent."""
    from bridge.learn.folder import is_checkpoint

    for policy in policies:
        if is_checkpoint(policy):
            from bridge.learn.checkpoint import read_agent

            return read_agent(Path(policy))[1].workload
    return ""


def _experiments(policies: tuple[str, ...], options: dict[str, Any]) -> "dict[str, Experiment]":
    """Return one checked experiment per policy."""
    from bridge.experiment.spec import overlay, parse
    from bridge.scheduler.names import BACKFILLS

    made = {}
    for policy in policies:
        if policy in made:
            raise BridgeError("is named twice", where=f"policy {policy!r}", remedy="Name it once.")
        if Path(policy).is_dir():
            made[policy] = parse(overlay({}, {**options, "agent": policy}), f"policy {policy!r}")
            made[policy].check()
            continue
        order, plus, backfill = policy.rpartition("+")
        if not plus or backfill not in BACKFILLS:
            raise BridgeError(
                "is no ORDER+BACKFILL and no folder of a trained agent",
                where=f"policy {policy!r}",
                remedy=f"Write for example fcfs+easy; backfilling is one of {', '.join(BACKFILLS)}.",
            )
        document = overlay({}, {**options, "order": order, "backfill": backfill})
        made[policy] = parse(document, f"policy {policy!r}")
        made[policy].check()
    return made


def _both(
    policy: str, experiment: "Experiment", out: Path | None, *, first: bool
) -> "tuple[Agreement, dict[str, Any]]":
    """Run one policy in both worlds, write both runs, and compare them.

    Raises:
        BridgeError: the detailed run failed; what there is of it is written first.
    """
    from bridge.experiment.child import terminations_as_interrupts
    from bridge.experiment.prepare import load
    from bridge.judge.agreement import agree
    from bridge.judge.run import write_run

    task = load(experiment)
    if first:
        warn_about(task.prepared.jobs.tally)
    fast = run_fast(task)
    with terminations_as_interrupts(), tempfile.TemporaryDirectory(prefix="bridge-run-") as name:
        folder = Path(name) / "detailed"
        folder.mkdir()
        detailed, fault, _ = run_detailed(task, folder)
        if out is not None:
            place = out / re.sub(r"[^\w.+-]+", "_", policy)
            write_run(fast, place / "fast")
            write_run(detailed, place / experiment.on, detailed=folder)
        if fault is not None:
            raise fault
        inputs = _inputs(task, folder)
    return agree(policy, fast, detailed), inputs


def _inputs(task: Any, folder: Path) -> dict[str, Any]:
    """Return what a validation depends on, and a baseline must share."""
    import dataclasses
    import hashlib

    detailed, jobs = task.experiment.detailed, task.prepared.jobs
    platform = hashlib.sha256((folder / "platform.xml").read_bytes()).hexdigest()
    return {
        "workload": jobs.name,
        "jobs": len(jobs),
        "node_seconds": float((jobs.demand[:, 0] * (jobs.run / 1e6)).sum()),
        "nodes": int(jobs.capacity[0]),
        "platform": task.platform.root.name,
        "platform_sha256": platform,
        "world": task.experiment.on,
        "profile": str(detailed.kind),
        "staging": dataclasses.asdict(detailed.staging) if detailed.staging else None,
        "power": [detailed.power, detailed.power_budget, detailed.shutdown_after, detailed.dvfs],
        "walltime": detailed.limit.name,
        "placement": detailed.placement,
        "estimator": task.setup.estimator or "requested",
    }


def _show(found: "list[Agreement]", ranks: "dict[str, Rank]") -> None:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=110)
    for one in found:
        console.print(_table(one))
        _tell(one)
    if ranks:
        said = ", ".join(f"{key} {rank.tau:.2f}" for key, rank in ranks.items())
        click.echo(f"rank agreement of {len(found)} policies (Kendall τ): {said}")


def _table(one: "Agreement") -> "Table":
    from rich.table import Table

    from bridge.report.tables import COMPARED, show

    table = Table(title=one.policy, title_justify="left")
    for heading in ("", "fast", "detailed", "difference", ""):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    used = [key for key in one.fast if key.startswith("utilisation.") and key.count(".") == 1]
    for key in (*COMPARED, *used, "energy.joules"):
        fast, detailed = one.fast.get(key), one.detailed.get(key)
        if fast is None and detailed is None:
            continue
        change = one.differences.get(key)
        relative = f"{100 * change / fast:+.2f} %" if change and fast else ""
        shown = "=" if change == 0 else show(key, change)
        table.add_row(key, show(key, fast), show(key, detailed), shown, relative)
    return table


def _tell(one: "Agreement") -> None:
    from bridge.report.tables import duration

    jobs = one.jobs
    click.echo(f"{jobs.differing_starts:,} of {jobs.common:,} jobs start at another time on the platform")
    if jobs.first is not None:
        click.echo(f"  first: job {jobs.first.job}: {one.reason}")
    if jobs.differing_starts and jobs.wait_quantiles is not None and jobs.wait_mean is not None:
        quantiles = "  ".join(f"{float(q):.0%} {duration(v)}" for q, v in jobs.wait_quantiles.items())
        click.echo(f"  wait difference: mean {duration(jobs.wait_mean)}; quantiles {quantiles}")
    if one.longer and one.stretch is not None:
        click.echo(
            f"  {one.longer:,} jobs ran longer; run times are {one.stretch[0]:.4f} times as long in the "
            f"mean, {one.stretch[1]:.4f} at most"
        )
    if any(one.killed):
        click.echo(f"  killed at the walltime: {one.killed[0]:,} fast, {one.killed[1]:,} detailed")
    if jobs.only_base or jobs.only_here:
        click.echo(
            f"  only in the fast world: {jobs.only_base:,}; only on the platform: {jobs.only_here:,} "
            f"(such as {', '.join(jobs.examples)})"
        )
