"""`bridge workload`: look into a job log, convert it, generate one, or fetch one from the archive."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cli import options as shared
from bridge.cli.main import LazyGroup
from bridge.cli.terminal import TERMINAL, show
from bridge.config import Constraint, Count, Natural
from bridge.config.fields import fields_of, record_of
from bridge.config.options import Command, given_on_command_line, group, options
from bridge.experiment.spec import Detailed, platform_file
from bridge.report.table import Table
from bridge.workload.catalogue import bundled, cache_folder, catalogue, find, read_log
from bridge.workload.formats import FORMATS, format_of, write
from bridge.workload.rules import LOAD_RULES
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    from bridge.judge.offered_load import OfferedLoad
    from bridge.workload.select import Jobs
    from bridge.workload.statistics import Summary
    from bridge.workload.table import Tally, Workload

#: Names of `bridge.workload.mrsch.SETTINGS`, without power and with it.
_WITHOUT_POWER = (*(f"S{n}" for n in range(1, 6)), *(f"C{n}" for n in range(1, 6)))
SETTINGS = (*_WITHOUT_POWER, *(f"S{n}" for n in range(6, 11)))
_OF_POWER = ("budget", "accounting", "power_step")
#: The options of `generate` that mean something to each model.
MODELS = {
    **dict.fromkeys(("lublin-1", "lublin-2"), ("jobs", "seed", "nodes", "users", "load")),
    "poisson": ("jobs", "seed", "base", "gap", "load"),
    "site": ("jobs", "seed", "users", "load", "cluster"),
    "mrsch": ("jobs", "seed", "nodes", "base", "load", "setting", "sizes", "scale", *_OF_POWER),
}
_EITHER = "--scale and --load exclude each other."
_SIZED_FOR = (
    "The machine for which jobs are written (a file, or a shipped platform); its hosts are the machine."
)

nodes_option = shared.field_options(SchedulerConfig, nodes="Number of nodes.  [default: as the log states]")


@dataclass(frozen=True)
class Conversion:
    """What becomes of a workload between two files.

    Attributes:
        source_format: format of the input.  [default: as its name tells]
        target_format: format of the output.  [default: as its name tells]
        scale: multiply times between arrivals; below 1, jobs arrive faster.
        load: change times between arrivals so that the offered load is L.
        rule: keep only the jobs that this loading rule keeps, repaired.  [default for Batsim: standard]
    """

    source_format: Annotated[str | None, Constraint(option="--from", choices=tuple(FORMATS))] = None
    target_format: Annotated[str | None, Constraint(option="--to", choices=tuple(FORMATS))] = None
    scale: Annotated[float | None, Constraint(metavar="F")] = None
    load: Annotated[float | None, Constraint(metavar="L")] = None
    rule: Annotated[str | None, Constraint(choices=tuple(LOAD_RULES))] = None


@click.group(
    cls=LazyGroup,
    lazy={
        "import": ("accounting:import_", "Make a workload from the accounting of a cluster."),
        "machine": ("accounting:machine", "Read the machine from slurm.conf or sinfo."),
    },
)
def workload() -> None:
    """Inspect, convert, import, generate and fetch job logs."""


@workload.command(cls=Command)
@click.argument("log", metavar="LOG")
@shared.field_options(Conversion, rule="The loading rule: it drops and repairs records.  [default: standard]")
@shared.field_options(
    SchedulerConfig, cancelled="What happens with cancelled jobs.  [default: as the loading rule says]"
)
@nodes_option
@shared.malformed_option
@options(Conversion, "source_format")
@shared.field_options(SchedulerConfig, cluster="The site: the load by partition, and what is then looked at.")
@shared.json_option
def info(log: str, rule: str | None, cluster: str | None, as_json: bool, **typed_options: Any) -> None:
    """Show what LOG contains, and count the records that would be dropped or repaired.

    LOG is a file, a bundled workload or a fetched log of the catalogue.

    \b
    Examples:
      bridge workload info bundled-128
      bridge workload info log.parquet --cluster cluster.toml
    """
    from bridge.cluster.source import read_cluster
    from bridge.report.tables import log_tables
    from bridge.workload.ignored import note_ignored
    from bridge.workload.select import select
    from bridge.workload.statistics import summarise

    rule, site = rule or "standard", None if cluster is None else read_cluster(cluster)
    if site is not None and typed_options["nodes"] is not None:
        raise click.UsageError("--nodes and --cluster exclude each other: the cluster has its own nodes")
    records = _read(log, typed_options["source_format"], typed_options["malformed"], typed_options["nodes"])
    summary = summarise(records)
    jobs: Jobs | None = None
    problem: BridgeError | None = None
    loads: list[OfferedLoad] = []
    notes: dict[str, int] = {}
    try:
        jobs = select(records, LOAD_RULES[rule], cancelled=typed_options["cancelled"], cluster=site)
        if site is not None:
            from bridge.judge.offered_load import offered_loads

            loads, notes = offered_loads(jobs)
            summary = _on_cluster(summary, loads[0])
    except BridgeError as error:
        problem = error
    tally = jobs.tally if jobs is not None else {**records.tally, **note_ignored(records)}
    counted, ignored = (
        {why: r for why, r in tally.items() if (r.kind == "ignored") == of} for of in (False, True)
    )
    reasons, unheeded = (
        [{"reason": why, **record_of(reason)} for why, reason in of.items()] for of in (counted, ignored)
    )
    usable = {"rule": rule, "jobs": len(jobs) if jobs is not None else 0, "tally": reasons}
    usable["ignored"] = unheeded
    document = {"name": records.name, "source": records.source, **record_of(summary)}
    if loads:
        document["cluster"] = {"file": cluster, "loads": [record_of(load) for load in loads], "notes": notes}
    output: list[Any] = [*log_tables(records, summary), *_site_tables(cluster, loads, notes)]
    output += _tally_tables(records, counted, ignored, rule, has_cluster=site is not None)
    output += [] if jobs is None else [f"usable jobs: {len(jobs):,}"]
    show({**document, "header": records.header, "selection": usable}, output, as_json)
    if problem is not None and (records.capacity.get("nodes") or site is not None):
        raise problem
    if problem is not None:  # an accounting without its machine is no mistake
        click.echo(f"usable jobs are not known: {problem}", err=True)


def _on_cluster(summary: Summary, whole: OfferedLoad) -> Summary:
    """Return a log's summary with the capacities and the load of a cluster in place of the log's."""
    capacity = {name: amount for name in ("nodes", "cores", "gpus") if (amount := getattr(whole, name))}
    loads = {} if whole.gpu_load is None else {"gpus": whole.gpu_load}
    return replace(summary, capacity=capacity, load=whole.load, loads=loads)


def _site_tables(cluster: str | None, loads: list[OfferedLoad], notes: dict[str, int]) -> list[Any]:
    """Return the load of each partition, and what is decided for jobs; nothing without a cluster."""
    if not loads:
        return []
    from bridge.report.cluster_tables import load_table

    return [
        load_table(loads, str(cluster)),
        *(f"jobs that {note}: {count:,}" for note, count in notes.items()),
    ]


def _tally_tables(
    records: Workload, counted: Tally, ignored: Tally, rule: str, *, has_cluster: bool
) -> list[Any]:
    """Return what becomes of records, and what no scheduler uses: at all, and without a cluster."""
    from bridge.report.tables import tally_table
    from bridge.workload.ignored import note_ignored
    from bridge.workload.requests import heeded_columns

    heeded = heeded_columns(records) - (set() if "qos_name" in records.jobs else {"queue"})  # a bare number
    always = note_ignored(replace(records, capacity={}), heeded)
    never = {why: entry for why, entry in ignored.items() if has_cluster or why in always}
    elsewhere = {why: entry for why, entry in ignored.items() if why not in never}
    output: list[Any] = [f"No record is dropped or repaired (loading rule {rule})."]
    if counted:
        output = [tally_table(counted, f"records dropped, repaired or noted (loading rule {rule})")]
    if never:
        output.append(tally_table(never, "what no scheduler uses"))
    if elsewhere:
        output.append(tally_table(elsewhere, "what schedulers use only with --cluster FILE"))
    return output


@workload.command(cls=Command)
@click.argument("log", metavar="IN")
@click.argument("out", metavar="OUT", type=shared.FILE)
@options(Conversion)
@shared.field_options(SchedulerConfig, first="Only the first N records (after --rule).")
@group(
    "Batsim", shared.field_options(Detailed, platform=_SIZED_FOR), options(Detailed, "profile", "walltime")
)
@nodes_option
@shared.malformed_option
@shared.force_option
@click.pass_context
def convert(
    ctx: click.Context, /, log: str, out: Path, first: int | None, nodes: int | None, **_: Any
) -> None:
    """Convert the workload IN to OUT. The names' endings tell the formats: SWF, CSV, Parquet, Batsim JSON.

    \b
    For Batsim, a platform can be named. Then a job that runs alone takes its logged run time there:
      bridge workload convert LOG out.json --to batsim --profile io --platform platforms/cluster-512.xml
      bridge workload convert LOG out5.json --to batsim5
    """
    from bridge.workload import derive

    conversion, rule = Conversion(**given_on_command_line(ctx, Conversion)), ctx.params["rule"]
    target = format_of(out, conversion.target_format)
    shared.check_output(out, ctx.params["force"])
    if conversion.scale is not None and conversion.load is not None:
        raise click.UsageError(_EITHER)
    detailed = given_on_command_line(ctx, Detailed)
    if target.suffix != FORMATS["batsim"].suffix:
        _exclude("formats other than batsim", detailed)
    else:
        rule = rule or "standard"
    machine = None
    if "platform" in detailed:
        from bridge.platform.read import read_platform

        machine = read_platform(platform_file(detailed["platform"]))
        nodes = nodes or len(machine.compute)
    records = _read(log, conversion.source_format, ctx.params["malformed"], nodes)
    tally = records.tally
    if rule is not None:
        from bridge.workload.select import select

        jobs = select(records, LOAD_RULES[rule], first=first)
        kept = {why: reason for why, reason in jobs.tally.items() if reason.kind != "ignored"}
        records, tally = derive.restrict_to(records, jobs), kept
    elif first is not None:
        records = derive.head(records, first)
    if conversion.scale is not None:
        records = derive.scale_arrivals(records, conversion.scale)
    if conversion.load is not None:
        records = derive.scale_to_load(records, conversion.load)
    writer: Callable[[Workload, Path], None] = partial(write, format=conversion.target_format)
    if detailed:
        from bridge.experiment.job_profiles import builder

        job = Detailed(**detailed)
        writer = partial(target.load("write"), profiles=builder(job.kind, machine), walltime=job.limit)
    click.echo(_write(records, out, writer))
    if target.name == "swf":
        from bridge.workload.swf import left_out

        if note := left_out(records.jobs):
            click.echo(note)
    if tally:
        from bridge.report.tables import tally_table

        tally_table(tally, f"loading rule {rule}" if rule else "while reading").print()


@dataclass(frozen=True)
class Generation:
    """What a workload is generated from.

    Attributes:
        jobs: number of jobs; mrsch: the first N records of --base.  [default: 10000; mrsch: all]
        seed: same seed, same workload.
        nodes: number of nodes (Lublin models, mrsch).  [default: 256; mrsch: as the log states]
        base: poisson, mrsch: the log from which jobs are taken.
        gap: poisson: mean time between arrivals.  [default: as in the log]
        users: Lublin: add N users, requested times and queues. site: number of users.  [default of site: 40]
        load: change times between arrivals so that the offered load is L.  [default of site: 0.8, of all
            cores]
        cluster: site: the cluster file with the partitions (cluster.toml, slurm.conf, or one of bridge's).
        setting: mrsch: the workload.
        sizes: mrsch: distribution of burst buffer requests.  [default: uniform; C1 to C5: heavy-tailed]
        scale: mrsch: multiply times between arrivals.  [default: 0.8; S6 to S9: 1.5; C1 to C4: 1.4; C5: 1.3]
        budget: S6 to S10: power budget.  [default: 500000]
        accounting: S6 to S10: above-idle: count the power that jobs draw above idle nodes. jobs: count all
            power that they draw.  [default: above-idle]
        power_step: S6 to S10: power per node is a multiple of this, as in the power states of a platform.
            [default: 1]
    """

    jobs: Annotated[Count | None, Constraint(metavar="N")] = None
    seed: Natural = 0
    nodes: Annotated[int | None, Constraint(ge=4)] = None
    base: Annotated[str | None, Constraint(metavar="LOG")] = None
    gap: Annotated[float | None, Constraint(metavar="S")] = None
    users: Annotated[Count | None, Constraint(metavar="N")] = None
    load: Annotated[float | None, Constraint(metavar="L")] = None
    cluster: Annotated[str | None, Constraint(metavar="FILE")] = None
    setting: Annotated[str | None, Constraint(choices=SETTINGS)] = None
    sizes: Literal["uniform", "log-uniform", "heavy-tailed"] | None = None
    scale: Annotated[float | None, Constraint(metavar="F")] = None
    budget: Annotated[Count | None, Constraint(metavar="W")] = None
    accounting: Literal["above-idle", "jobs"] | None = None
    power_step: Annotated[Count | None, Constraint(metavar="W")] = None


@workload.command(cls=Command)
@click.argument("model", type=click.Choice(MODELS))
@click.option("--out", required=True, type=shared.FILE, help="The file to write.")
@options(Generation)
@shared.force_option
@shared.json_option
@click.pass_context
def generate(ctx: click.Context, /, model: str, out: Path, force: bool, as_json: bool, **_: Any) -> None:
    """Generate a workload.

    \b
    lublin-1, lublin-2  the Lublin-Feitelson model, parameters of these two logs
    poisson             jobs of --base, drawn with replacement; they arrive at random
    mrsch               jobs of --base, with burst buffer and (S6 to S10) power
    site                jobs as in Lublin's model, for partitions of --cluster

    \b
      bridge workload generate site --cluster teaching-site --jobs 500 --out site.csv
      bridge workload generate mrsch --setting S4 --base theta_2022.swf.gz --seed 1 --out s4.parquet
    """
    from bridge.workload.derive import add_note, scale_to_load

    format_of(out)
    shared.check_output(out, force)
    typed_options = given_on_command_line(ctx, Generation)
    _exclude(
        model, (name for name in fields_of(Generation) if name in typed_options and name not in MODELS[model])
    )
    usual = {} if model == "mrsch" else {"jobs": 10_000}
    generation = Generation(**usual | typed_options)
    generated = _mrsch(generation) if model == "mrsch" else _generate_model(model, generation)
    if generation.load is not None and model != "site":
        generated = scale_to_load(generated, generation.load)
    table, compared = None, []
    if generation.setting is not None:
        from bridge.report.tables import number
        from bridge.workload.mrsch import statistics

        compared = statistics(generated, generation.setting)
        rows = [(row.what, number(row.here), row.paper) for row in compared]
        title = f"{generation.setting}, as the standard loading rule keeps and repairs the jobs"
        table = Table(("", "here", "paper"), rows, title=title)
    words = {name: ctx.params[name] for name in ctx.params if name in typed_options}  # as they were typed
    words |= {name: value for name in ("jobs", "seed") if (value := getattr(generation, name)) is not None}
    typed_words = [f"--{name.replace('_', '-')} {value}" for name, value in words.items()]
    command = " ".join(["bridge", "workload", "generate", model, *typed_words])
    header = add_note(generated.header, f"command: {command}")
    of_cores = f", load {generation.load or 0.8:g} of all cores" if model == "site" else None
    line = _write(replace(generated, header=header), out, write, of_cores)
    document = {
        "out": str(out),
        "jobs": len(generated.jobs),
        "capacity": generated.capacity,
        "command": command,
        "statistics": [{"statistic": row.what, "here": row.here, "paper": row.paper} for row in compared],
    }
    show(document, [line] if table is None else [line, table], as_json)


def _mrsch(generation: Generation) -> Workload:
    from bridge.workload import mrsch
    from bridge.workload.derive import head

    if generation.base is None or generation.setting is None:
        raise click.UsageError("mrsch needs --base LOG and --setting S1 (to S10).")
    if generation.scale is not None and generation.load is not None:
        raise click.UsageError(_EITHER)
    power = {name: value for name in _OF_POWER if (value := getattr(generation, name)) is not None}
    if generation.setting in _WITHOUT_POWER:
        _exclude(generation.setting, power)
    records = _read(generation.base, None, None, generation.nodes)
    records = records if generation.jobs is None else head(records, generation.jobs)
    machine = mrsch.MrschMachine(**{"step" if name == "power_step" else name: power[name] for name in power})
    arrivals = generation.scale if generation.load is None else 1.0
    return mrsch.generate_mrsch(
        records,
        generation.setting,
        generation.seed,
        sizes=generation.sizes,
        machine=machine,
        arrivals=arrivals,
    )


def _generate_model(model: str, generation: Generation) -> Workload:
    from bridge.workload import derive, lublin

    assert generation.jobs is not None
    if model == "site":
        return _site(generation)
    if model == "poisson":
        if generation.base is None:
            raise click.UsageError("poisson needs --base LOG.")
        return derive.resample(
            _read(generation.base, None, None, None), generation.jobs, generation.seed, generation.gap
        )
    workload = lublin.generate(
        lublin.PRESETS[model](generation.nodes or 256), generation.jobs, generation.seed, model
    )
    return (
        workload
        if generation.users is None
        else lublin.add_estimates(workload, generation.seed, generation.users)
    )


def _site(generation: Generation) -> Workload:
    from bridge.cluster.source import read_cluster
    from bridge.workload.site_jobs import generate_site

    if generation.cluster is None or generation.jobs is None:
        raise click.UsageError("site needs --cluster FILE.")
    stated = {name: value for name in ("load", "users") if (value := getattr(generation, name)) is not None}
    return generate_site(read_cluster(generation.cluster), generation.jobs, generation.seed, **stated)


def _exclude(model: str, options: Iterable[str]) -> None:
    for name in options:
        raise click.UsageError(f"--{name.replace('_', '-')} has no meaning for {model}.")


@workload.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@click.option("--again", is_flag=True, help="Download even if the log is there.")
def fetch(names: tuple[str, ...], again: bool) -> None:
    """Download logs of the Parallel Workloads Archive into the cache, and verify them."""
    from bridge.workload.fetch import fetch as download

    for log in [find(name) for name in names]:
        with TERMINAL.bar(log.file, 0, "bytes") as progress:
            got = download(log, again=again, progress=progress)
        how = f"{got.downloaded:,} bytes fetched" if got.downloaded else "was there already"
        if got.resumed:
            how += f" after {got.resumed:,} of an earlier download"
        digest = f"SHA-256 of the text is {got.sha256}"
        unknown = f"NOT verified: no checksum is known, only the download is whole.\n  {digest}"
        lines = (
            f"{log.name}: {got.path} ({how})",
            f"verified: {digest}" if log.verified else unknown,
            f"provided by: {log.provided_by or 'see the header of the log'}",
            f"cite: {log.citation}",
            f"terms: {log.terms}",
        )
        click.echo("\n  ".join(lines))


@workload.command("list")
@shared.json_option
def list_logs(as_json: bool) -> None:
    """List bundled workloads and the logs that can be fetched."""
    folder = cache_folder()
    logs = list(catalogue().values())
    here = {log.name: str(folder / log.file) for log in logs if (folder / log.file).exists()}
    table = Table(("", "title", "jobs", "nodes", "checksum", "here"), words=(1, 4, 5))
    entries: list[dict[str, Any]] = []
    for name, path in bundled().items():
        entries.append({"name": name, "kind": "bundled", "path": str(path)})
        table.add(name, "bundled with bridge, generated", "", "", "", "yes")
    for log in logs:
        entry = {key: getattr(log, key) for key in ("name", "title", "url", "jobs", "nodes", "sha256")}
        entries.append({**entry, "kind": "archive", "verified": log.verified, "path": here.get(log.name)})
        sizes = (f"{size:,}" if size else "" for size in (log.jobs, log.nodes))
        checksum = "known" if log.verified else "unverified"
        table.add(log.name, log.title, *sizes, checksum, "yes" if log.name in here else "no")
    show(entries, [table, f"Fetched logs lie in {folder}."], as_json)


def _read(log: str, format_name: str | None, malformed: str | None, nodes: int | None) -> Workload:
    from bridge.workload.resources import with_capacity

    records = read_log(log, malformed or "refuse", format_name)
    capacity = records.capacity | ({} if nodes is None else {"nodes": nodes})
    return replace(records, capacity=capacity, header=with_capacity(records.header, capacity))


def _write(
    records: Workload, out: Path, writer: Callable[[Workload, Path], None], load_text: str | None = None
) -> str:
    """Write a workload, and return the line about it."""
    from bridge.workload.statistics import offered_load

    writer(records, out)
    if load_text is None:
        load = offered_load(records)
        load_text = f", offered load {load:.3f}" if load is not None else ""
    return f"wrote {out}: {counted(len(records.jobs), 'job')}{load_text}"
