"""`bridge workload`: look into a job log, convert it, generate one, or fetch one from the archive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from bridge.cli.options import check_output
from bridge.errors import BridgeError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from bridge.workload.fetch import Progress
    from bridge.workload.mrsch import Accounting, Machine, Sizes
    from bridge.workload.select import Jobs
    from bridge.workload.statistics import Summary
    from bridge.workload.table import Tally, Workload

#: Names of the loading rules of `bridge.workload.select` (which is imported only when it is needed).
RULES = ("standard", "cqsim", "rlbackfilling", "rlscheduler", "schedinspector")
FORMATS = ("swf", "csv", "parquet", "batsim")
MODELS = ("lublin-1", "lublin-2", "poisson", "mrsch")
#: Names of `bridge.workload.mrsch.SETTINGS`.
SETTINGS = tuple(f"S{n}" for n in range(1, 11))

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
nodes_option = click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Machine size, if the log does not state it (or to overrule it).",
)
malformed_option = click.option(
    "--malformed",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="What to do about lines that are no job record.",
)
from_option = click.option(
    "--from",
    "source_format",
    type=click.Choice(FORMATS),
    help="The input's format, if its name does not tell.",
)
force_option = click.option("--force", is_flag=True, help="Replace the output file if it exists.")


@click.group()
def workload() -> None:
    """Look into job logs, convert, generate and fetch them."""


@workload.command()
@click.argument("log", metavar="LOG")
@click.option(
    "--rule",
    type=click.Choice(RULES),
    default="standard",
    show_default=True,
    help="Loading rule whose drops and repairs are counted.",
)
@click.option(
    "--cancelled", type=click.Choice(["drop", "keep"]), help="Overrule the rule for cancelled jobs."
)
@nodes_option
@malformed_option
@from_option
@json_option
def info(
    log: str,
    rule: str,
    cancelled: Literal["drop", "keep"] | None,
    nodes: int | None,
    malformed: Literal["refuse", "drop"],
    source_format: str | None,
    as_json: bool,
) -> None:
    """Show what LOG holds, and every record that would be dropped or repaired.

    LOG is a file, a bundled workload or a fetched log of the catalogue.
    """
    from bridge.workload.rules import LOAD_RULES
    from bridge.workload.select import select
    from bridge.workload.statistics import summarise

    records = _read(log, source_format, malformed, nodes)
    summary = summarise(records)
    jobs: Jobs | None = None
    problem: BridgeError | None = None
    try:
        jobs = select(records, LOAD_RULES[rule], cancelled=cancelled)
    except BridgeError as error:
        problem = error
    counted = jobs.tally if jobs is not None else records.tally
    if as_json:
        usable = {"rule": rule, "jobs": len(jobs) if jobs is not None else 0, "tally": _tally_json(counted)}
        click.echo(json.dumps(_info_json(records, summary) | {"selection": usable}, indent=2))
    else:
        _show_info(records, summary)
        _show_tally(counted, rule, jobs)
    if problem is not None:
        raise problem


@workload.command()
@click.argument("log", metavar="IN")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@from_option
@click.option(
    "--to",
    "target_format",
    type=click.Choice(FORMATS),
    help="The output's format, if its name does not tell.",
)
@click.option(
    "--first",
    "count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the first N records (after --rule).",
)
@click.option("--scale", type=float, metavar="F", help="Multiply times between arrivals: < 1 compresses.")
@click.option("--load", type=float, metavar="L", help="Scale arrivals to this offered load.")
@click.option(
    "--rule",
    type=click.Choice(RULES),
    help="Keep only the jobs that this loading rule keeps, repaired. For Batsim: standard if none is named.",
)
@click.option(
    "--profile",
    metavar="KIND",
    help="For Batsim: what jobs do: delay, compute, network:F, io[:F]; see docs/experiments.md.  "
    "[default: delay]",
)
@click.option(
    "--platform",
    "platform_name",
    metavar="XML",
    help="For Batsim: the machine that profiles are sized for (a file, or a shipped platform); "
    "its hosts are the machine size.",
)
@click.option(
    "--walltime",
    metavar="POLICY",
    help="For Batsim: keep the requests as walltimes, none, or factor:F.  "
    "[default: keep; none for network and io]",
)
@nodes_option
@malformed_option
@force_option
def convert(
    log: str,
    out: Path,
    source_format: str | None,
    target_format: str | None,
    count: int | None,
    scale: float | None,
    load: float | None,
    rule: str | None,
    profile: str | None,
    platform_name: str | None,
    walltime: str | None,
    nodes: int | None,
    malformed: Literal["refuse", "drop"],
    force: bool,
) -> None:
    """Convert the workload IN to OUT: SWF, CSV, Parquet or Batsim JSON, by the names' endings.

    \b
    For Batsim, jobs can be sized for a platform, so that each takes its logged run time when it is alone:
      bridge workload convert LOG out.json --to batsim --profile io --platform platforms/cluster-512.xml
    """
    from bridge.workload import scale as scaling
    from bridge.workload.formats import FORMATS as KNOWN
    from bridge.workload.formats import format_of

    target = format_of(out, target_format)
    check_output(out, force)
    if scale is not None and load is not None:
        raise click.UsageError("--scale and --load exclude each other.")
    detailed = {"--profile": profile, "--platform": platform_name, "--walltime": walltime}
    if target is not KNOWN["batsim"]:
        _exclude("formats other than batsim", detailed)
    elif rule is None:
        rule = "standard"
    machine = None
    if platform_name is not None:
        from bridge.experiment.spec import platform_file
        from bridge.platform.read import read_platform

        machine = read_platform(platform_file(platform_name))
        nodes = nodes or len(machine.compute)
    records = _read(log, source_format, malformed, nodes)
    tally = records.tally
    if rule is not None:
        from bridge.workload.prepare import keep
        from bridge.workload.rules import LOAD_RULES
        from bridge.workload.select import select

        jobs = select(records, LOAD_RULES[rule], first=count)
        records, tally = keep(records, jobs), jobs.tally
    elif count is not None:
        records = scaling.first(records, count)
    if scale is not None:
        records = scaling.scale_arrivals(records, scale)
    if load is not None:
        records = scaling.scale_to_load(records, load)
    if any(value is not None for value in detailed.values()):
        from functools import partial

        from bridge.experiment.profiles import builder, default_walltime, parse_kind
        from bridge.workload.batsim import write_batsim
        from bridge.workload.walltime import walltime as parse_walltime

        kind = parse_kind(profile or "delay")
        limit = parse_walltime(walltime or default_walltime(kind))
        _write(records, out, partial(write_batsim, profiles=builder(kind, machine), walltime=limit))
    else:
        _write(records, out, target_format)
    if tally:
        _console().print(_tally_table(tally, title=f"loading rule {rule}" if rule else "while reading"))


@workload.command()
@click.argument("model", type=click.Choice(MODELS))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The file to write.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many jobs; mrsch: the first N records of the base.  [default: 10000; mrsch: all]",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same workload."
)
@click.option(
    "--nodes",
    type=click.IntRange(min=4),
    help="Machine size of the Lublin models, or of mrsch's base.  [default: 256; mrsch: the log's]",
)
@click.option("--base", metavar="LOG", help="poisson, mrsch: the log whose jobs are taken.")
@click.option(
    "--gap", type=float, metavar="S", help="poisson: mean time between arrivals.  [default: the log's]"
)
@click.option(
    "--users",
    type=click.IntRange(min=1),
    metavar="N",
    help="Lublin: add N users, requested times and queues.",
)
@click.option("--load", type=float, metavar="L", help="Scale arrivals to this offered load.")
@click.option("--setting", type=click.Choice(SETTINGS, case_sensitive=False), help="mrsch: which workload.")
@click.option(
    "--sizes",
    type=click.Choice(["uniform", "log-uniform"]),
    help="mrsch: how burst buffer requests are distributed.  [default: uniform]",
)
@click.option(
    "--scale",
    type=float,
    metavar="F",
    help="mrsch: multiply times between arrivals.  [default: 0.8; 1.5 for S6 to S9]",
)
@click.option(
    "--budget", type=click.IntRange(min=1), metavar="W", help="S6 to S10: power budget.  [default: 500000]"
)
@click.option(
    "--accounting",
    type=click.Choice(["above-idle", "jobs"]),
    help="S6 to S10: count what jobs draw above idle nodes, or all they draw.  [default: above-idle]",
)
@click.option(
    "--power-step",
    type=click.IntRange(min=1),
    metavar="W",
    help="S6 to S10: power per node in steps of this, as a platform's power states have.  [default: 1]",
)
@force_option
def generate(
    model: str,
    out: Path,
    jobs: int | None,
    seed: int,
    nodes: int | None,
    base: str | None,
    gap: float | None,
    users: int | None,
    load: float | None,
    setting: str | None,
    sizes: Sizes | None,
    scale: float | None,
    budget: int | None,
    accounting: Accounting | None,
    power_step: int | None,
    force: bool,
) -> None:
    """Generate a workload.

    lublin-1 and lublin-2 are the Lublin-Feitelson model with the parameters behind the logs of these
    names; poisson draws the jobs of --base with replacement and has them arrive at random; mrsch adds
    burst buffer requests, and power from S6 on, to the jobs of --base.

    \b
      bridge workload generate mrsch --setting S4 --base theta_2022.swf.gz --seed 1 --out s4.parquet
    """
    from dataclasses import replace

    from bridge.workload.formats import format_of
    from bridge.workload.scale import noted, scale_to_load

    format_of(out)
    check_output(out, force)
    power = {"--budget": budget, "--accounting": accounting, "--power-step": power_step}
    if model == "mrsch":
        _exclude(model, {"--gap": gap, "--users": users})
        if base is None or setting is None:
            raise click.UsageError("mrsch needs --base LOG and --setting S1 (to S10).")
        if scale is not None and load is not None:
            raise click.UsageError("--scale and --load exclude each other.")
        if setting in SETTINGS[:5]:
            _exclude(setting, power)
        from bridge.workload.mrsch import generate as mrsch

        records = _first(_read(base, None, "refuse", nodes), jobs)
        arrivals = scale if load is None else 1.0
        machine = _machine(budget, accounting, power_step)
        made = mrsch(records, setting, seed, sizes=sizes or "uniform", machine=machine, arrivals=arrivals)
    else:
        _exclude(model, {"--setting": setting, "--sizes": sizes, "--scale": scale, **power})
        jobs = jobs or 10_000
        if model == "poisson":
            _exclude(model, {"--nodes": nodes, "--users": users})
            if base is None:
                raise click.UsageError("poisson needs --base LOG.")
            from bridge.workload.resample import resample

            made = resample(_read(base, None, "refuse", None), jobs, seed, gap)
        else:
            _exclude(model, {"--base": base, "--gap": gap})
            from bridge.workload.estimates import add_estimates
            from bridge.workload.lublin import PRESETS
            from bridge.workload.lublin import generate as lublin

            made = lublin(PRESETS[model](nodes or 256), jobs, seed, model)
            if users is not None:
                made = add_estimates(made, seed, users)
    if load is not None:
        made = scale_to_load(made, load)
    table = _mrsch_table(made, setting) if setting is not None else None
    _write(replace(made, header=noted(made.header, _command_line(jobs=jobs))), out, None)
    if table is not None:
        _console().print(table)


@workload.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@click.option("--again", is_flag=True, help="Download even if the log is there.")
def fetch(names: tuple[str, ...], again: bool) -> None:
    """Download logs of the Parallel Workloads Archive into the cache, and verify them."""
    from bridge.workload.catalogue import find
    from bridge.workload.fetch import fetch as download

    for log in [find(name) for name in names]:
        with _progress(log.file) as progress:
            got = download(log, again=again, progress=progress)
        how = f"{got.downloaded:,} bytes fetched" if got.downloaded else "was there already"
        if got.resumed:
            how += f" after {got.resumed:,} of an earlier download"
        click.echo(f"{log.name}: {got.path} ({how})")
        if log.verified:
            click.echo(f"  verified: SHA-256 of the text is {got.sha256}")
        else:
            click.echo(
                "  NOT verified: the catalogue has no checksum for this log, only the download is whole."
            )
            click.echo(f"  SHA-256 of the text is {got.sha256}")
        click.echo(f"  provided by: {log.provided_by or 'see the header of the log'}")
        click.echo(f"  cite: {log.citation}")
        click.echo(f"  terms: {log.terms}")


@workload.command("list")
@json_option
def list_logs(as_json: bool) -> None:
    """List bundled workloads and the logs that can be fetched."""
    from bridge.workload.catalogue import bundled, cache_folder, catalogue

    folder = cache_folder()
    logs = list(catalogue().values())
    here = {log.name: str(folder / log.file) for log in logs if (folder / log.file).exists()}
    if as_json:
        entries: list[dict[str, Any]] = [
            {"name": name, "kind": "bundled", "path": str(path)} for name, path in bundled().items()
        ]
        for log in logs:
            entry = {key: getattr(log, key) for key in ("name", "title", "url", "jobs", "nodes", "sha256")}
            entries.append({**entry, "kind": "archive", "verified": log.verified, "path": here.get(log.name)})
        click.echo(json.dumps(entries, indent=2))
        return
    table = _table("", "title", "jobs", "nodes", "checksum", "on this machine", right=("jobs", "nodes"))
    for name in bundled():
        table.add_row(name, "bundled with bridge, generated", "", "", "", "yes")
    for log in logs:
        table.add_row(
            log.name,
            log.title,
            f"{log.jobs:,}" if log.jobs else "",
            f"{log.nodes:,}" if log.nodes else "",
            "known" if log.verified else "unverified",
            "yes" if log.name in here else "no",
        )
    _console().print(table)
    click.echo(f"Fetched logs lie in {folder}.")


def _read(
    log: str, format_name: str | None, malformed: Literal["refuse", "drop"], nodes: int | None
) -> Workload:
    from dataclasses import replace

    from bridge.workload.catalogue import resolve
    from bridge.workload.formats import read

    records = read(resolve(log), format_name, malformed=malformed)
    return records if nodes is None else replace(records, capacity={**records.capacity, "nodes": nodes})


def _write(records: Workload, out: Path, how: str | Callable[[Workload, Path], None] | None) -> None:
    """Write a workload: by a writer, in a format, or in the format that the name tells."""
    from bridge.workload.formats import write
    from bridge.workload.scale import offered_load

    if callable(how):
        how(records, out)
    else:
        write(records, out, how)
    load = offered_load(records)
    told = f", offered load {load:.3f}" if load is not None else ""
    click.echo(f"wrote {out}: {len(records.jobs):,} jobs{told}")


def _exclude(model: str, options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if value is not None:
            raise click.UsageError(f"{option} has no meaning for {model}.")


def _command_line(**known: object) -> str:
    """Return the `generate` command that is running, without where its output goes.

    `known` are options whose defaults were settled since.
    """
    context = click.get_current_context()
    words = ["command: bridge workload generate", str(context.params["model"])]
    for name, value in (context.params | known).items():
        if name not in ("model", "out", "force") and value is not None:
            words.append(f"--{name.replace('_', '-')} {value}")
    return " ".join(words)


def _first(records: Workload, count: int | None) -> Workload:
    from bridge.workload.scale import first

    return records if count is None else first(records, count)


def _machine(budget: int | None, accounting: Accounting | None, step: int | None) -> Machine:
    """Return MRSch's machine with what was chosen on the command line."""
    from dataclasses import replace

    from bridge.workload.mrsch import Machine

    machine = Machine()
    return replace(
        machine,
        budget=budget or machine.budget,
        accounting=accounting or machine.accounting,
        step=step or machine.step,
    )


def _mrsch_table(made: Workload, setting: str) -> Table:
    from bridge.workload.mrsch_statistics import statistics

    table = _table(
        "",
        "here",
        "paper",
        title=f"{setting}, as the standard loading rule keeps and repairs the jobs",
        right=("here", "paper"),
    )
    for row in statistics(made, setting):
        table.add_row(row.what, _number(row.here), row.paper)
    return table


@contextmanager
def _progress(name: str) -> Iterator[Progress]:
    """Show a bar with size, rate and remaining time, on a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _console() -> Console:
    """Return a console that is as wide as its tables when the output is no terminal."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=200)


def _table(*columns: str, title: str | None = None, right: Sequence[str] = ()) -> Table:
    from rich import box
    from rich.table import Table as RichTable

    table = RichTable(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    return table


def _tally_json(tally: Tally) -> list[dict[str, Any]]:
    return [
        {"reason": why, "kind": reason.kind, "count": reason.count, "examples": list(reason.examples)}
        for why, reason in tally.items()
    ]


def _info_json(records: Workload, summary: Summary) -> dict[str, Any]:
    return {
        "name": records.name,
        "source": records.source,
        "records": summary.records,
        "capacity": dict(summary.capacity),
        "span": summary.span,
        "load": summary.load,
        "loads": dict(summary.loads),
        "users": summary.users,
        "serial": summary.serial,
        "power_of_two": summary.power_of_two,
        "overrun": summary.overrun,
        "distributions": {
            name: {
                "known": spread.known,
                "mean": spread.mean,
                "min": spread.minimum,
                **{f"q{100 * q:g}": value for q, value in spread.quantiles.items()},
                "max": spread.maximum,
            }
            for name, spread in summary.spreads.items()
        },
        "header": records.header,
    }


def _show_info(records: Workload, summary: Summary) -> None:
    from bridge.workload.statistics import QUANTILES
    from bridge.workload.swf_header import idle_power_of

    console = _console()
    facts = _table("", "", title=records.name)
    facts.show_header = False
    for label in (
        "Computer",
        "Installation",
        "Acknowledge",
        "Information",
        "Conversion",
        "StartTime",
        "EndTime",
    ):
        if text := records.header.get(label):
            facts.add_row(label, text.replace("\n", " "))
    capacity = ", ".join(f"{name} {amount:,}" for name, amount in summary.capacity.items())
    facts.add_row("capacity", capacity or "not stated in the log")
    facts.add_row("records", f"{summary.records:,}")
    facts.add_row("span", f"{summary.span:,.0f} s ({summary.span / 86_400:,.1f} days)")
    facts.add_row("offered load", "unknown" if summary.load is None else f"{summary.load:.3f}")
    for name, load in summary.loads.items():
        facts.add_row(f"offered load, {name}", f"{load:.3f}")
    if "power" in summary.capacity:
        idle = idle_power_of(records.header, records.source)
        budget = summary.capacity["power"] + idle * summary.capacity.get("nodes", 0)
        facts.add_row("power budget", f"{budget:,} W, {idle} W of it for each node")
    facts.add_row("users", f"{summary.users:,}" if summary.users else "unknown")
    facts.add_row("on one processor", f"{summary.serial:.1%}")
    facts.add_row("on a power of two", f"{summary.power_of_two:.1%}")
    if summary.overrun is not None:
        facts.add_row("ran past their request", f"{summary.overrun:.1%}")
    console.print(facts)
    headings = ["mean", "min", *(f"{100 * q:g} %" for q in QUANTILES), "max"]
    spreads = _table(
        "", "known", *headings, title="distributions (times in seconds)", right=("known", *headings)
    )
    for name, spread in summary.spreads.items():
        values = [spread.mean, spread.minimum, *spread.quantiles.values(), spread.maximum]
        spreads.add_row(name, f"{spread.known:,}", *(_number(value) for value in values))
    console.print(spreads)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.2f}"


def _show_tally(tally: Tally, rule: str, jobs: Jobs | None) -> None:
    console = _console()
    if tally:
        console.print(_tally_table(tally, title=f"records dropped, repaired or noted (loading rule {rule})"))
    else:
        console.print(f"No record is dropped or repaired (loading rule {rule}).")
    if jobs is not None:
        console.print(f"usable jobs: {len(jobs):,}")


def _tally_table(tally: Tally, title: str) -> Table:
    table = _table("", "records", "reason", "job ids, for example", title=title, right=("records",))
    for kind in ("dropped", "repaired", "noted"):
        for why, reason in tally.items():
            if reason.kind == kind:
                examples = ", ".join(str(ident) for ident in reason.examples)
                more = ", …" if reason.count > len(reason.examples) else ""
                table.add_row(kind, f"{reason.count:,}", why, examples + more)
    return table
