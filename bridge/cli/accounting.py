"""`bridge workload import` and `machine`: Slurm's accounting as a workload, and the machine behind it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL, show
from bridge.cluster.source import read_cluster
from bridge.config.fields import record_of
from bridge.config.options import Command, given_on_command_line, group, options
from bridge.report.table import Table
from bridge.workload.accounting.choices import ImportConfig
from bridge.workload.formats import FORMATS, Format, format_of, write

if TYPE_CHECKING:
    from bridge.workload.accounting.machine import AccountingMachine
    from bridge.workload.swf import Malformed
    from bridge.workload.table import Workload

#: Columns of the files that XDMoD's xdmod-slurm-helper writes.
XDMOD = (
    "jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,end,elapsed,exitcode,"
    "state,nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,nodelist,jobname"
)
_timezone = click.option(
    "--timezone",
    default="UTC",
    show_default=True,
    metavar="ZONE",
    help="Time zone of times that are written as dates, for example Europe/Paris.",
)
_importing = group(
    "",
    click.argument("source", metavar="FILE|-"),
    click.option("--out", required=True, type=shared.FILE, help="The workload to write."),
    shared.file_option(
        "--machine",
        "slurm.conf, or what sinfo or `scontrol show node` prints: the machine's capacities.",
        to="machine_file",
    ),
    shared.file_option(
        "--cluster",
        "cluster.toml, slurm.conf, or a site that comes with bridge: the log gets what jobs ask of it.",
        to="site",
        type=str,
    ),
    options(ImportConfig),
    _timezone,
    shared.force_option,
    shared.json_option,
)


@click.group("import")
def import_() -> None:
    """Make a workload from the accounting of a cluster.

    \b
      bridge workload import command                         prints the line to run on the cluster
      bridge workload import sacct sacct.txt --machine slurm.conf --out log.parquet
      bridge replay log.parquet --policy sjf+easy
    """


@import_.command(cls=Command)
@_importing
@click.option(
    "--columns",
    metavar="A,B,…",
    help="For a text without a line of column names (sacct -n): the names, in order (sacct's --format); "
    "or xdmod: those of XDMoD's files.",
)
@click.pass_context
def sacct(ctx: click.Context, /, source: str, columns: str | None, **_: Any) -> None:
    """Import the output of sacct: text with -P (any columns), or --json. FILE may be compressed; - is a pipe.

    Rows that are no record, steps and jobs that have not ended are left out, and counted by reason.
    """
    columns = XDMOD if columns == "xdmod" else columns
    names = [name.partition("%")[0].strip() for name in columns.split(",")] if columns else ()
    _import(ctx, source, "sacct", names)


@import_.command(cls=Command)
@_importing
@click.pass_context
def jobcomp(ctx: click.Context, /, source: str, **_: Any) -> None:
    """Import the file of JobCompType=jobcomp/filetxt."""
    _import(ctx, source, "jobcomp")


@import_.command(cls=Command)
@click.argument("source", metavar="FILE", type=shared.FILE)
@click.option(
    "--map",
    "map_name",
    required=True,
    metavar="NAME",
    help="The column map: a TOML file, or one that comes with bridge.",
)
@click.option("--out", required=True, type=shared.FILE, help="The workload to write.")
@click.option(
    "--nodes", type=click.IntRange(min=1), metavar="N", help="Size of the machine, in the unit of procs."
)
@_timezone
@shared.force_option
@shared.json_option
def table(
    source: Path, map_name: str, out: Path, nodes: int | None, timezone: str, force: bool, as_json: bool
) -> None:
    """Import any table with a column map. The table is CSV (it may be compressed) or Parquet.

    The map says which column holds what. Columns that it does not name are listed once. Maps that come with
    bridge: thetagpu, philly, openb, cirrus, kestrel, supercloud.

    \b
    Examples:
      bridge workload import table philly-2017.csv.gz --map philly --nodes 2490 --out philly.parquet
      bridge workload import table jobs.csv --map site-map.toml --out site.parquet
    """
    from bridge.workload.mapped import read_mapped

    target = format_of(out)
    shared.check_output(out, force)
    _write(read_mapped(source, map_name, zone_of(timezone), nodes), out, target, as_json)


@import_.command(cls=Command)
@_importing
@click.pass_context
def pbs(ctx: click.Context, /, source: str, **_: Any) -> None:
    """Import the accounting of OpenPBS, PBS Pro or TORQUE: files of server_priv/accounting, in order.

    \b
    Example:
      cat accounting/202601* | bridge workload import pbs - --timezone Europe/Prague --out site.parquet
    """
    _import(ctx, source, "pbs")


@import_.command(cls=Command)
@click.argument("source", metavar="FILE", type=shared.FILE)
@click.option("--out", required=True, type=shared.FILE, help="The workload to write.")
@shared.malformed_option
@shared.force_option
@shared.json_option
def swf(source: Path, out: Path, malformed: "Malformed | None", force: bool, as_json: bool) -> None:
    """Import an SWF log of 21 fields with the files of its site (.machines, .queues, .users, .groups).

    Jobs get names and requests of a cluster, which `bridge cluster import FILE.swf` writes.

    \b
    Example:
      bridge workload import swf site.swf.gz --out site.parquet
      bridge cluster import site.swf.gz --out site.toml
      bridge replay site.parquet --cluster site.toml
    """
    from bridge.workload.swf_requests import read_with_site

    target = format_of(out)
    shared.check_output(out, force)
    if target is FORMATS["swf"]:
        remedy = "Write a .parquet or .csv file."
        raise BridgeError("SWF has no room for what jobs ask of a cluster", where=str(out), remedy=remedy)
    _write(read_with_site(source, malformed or "refuse"), out, target, as_json)


@import_.command("command")
@click.option("--from", "begin", default="2026-01-01", show_default=True, metavar="DATE", help="First day.")
@click.option("--to", "end", default="now", show_default=True, metavar="DATE", help="Last day.")
@shared.flag("--submit-line", "Also ask for SubmitLine, which --cluster needs (Slurm 20.11 or later).")
def print_command(begin: str, end: str, submit_line: bool) -> None:
    """Print the sacct line to run on the cluster.

    It lists each life of a job once, times without a zone, and names last. Jobs that were cancelled while
    they were held are listed by `sacct -j ID` only.
    """
    from bridge.workload.accounting.sacct import command

    for word in (begin, end):
        if not _is_date(word):
            what = f"{word!r} is no date such as 2026-01-31, 2026-01-31T12:00:00 or now-30days."
            raise click.UsageError(what)
    click.echo(command(begin, end, submit_line=submit_line))


def _is_date(word: str) -> bool:
    if re.fullmatch(r"(now|today|midnight)(-\d{1,6}(minutes|hours|days|weeks))?", word, re.ASCII):
        return True
    try:
        datetime.fromisoformat(word)
    except ValueError:
        return False
    return re.fullmatch(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?", word, re.ASCII) is not None


def _import(ctx: click.Context, source: str, form: str, columns: Sequence[str] = ()) -> None:
    from bridge.workload.accounting.machine import read_machine
    from bridge.workload.accounting.source import import_accounting

    out, machine_file = ctx.params["out"], ctx.params["machine_file"]
    if machine_file is not None and ctx.params["site"] is not None:
        raise click.UsageError("--cluster tells the machine: leave --machine out")
    target = format_of(out)
    shared.check_output(out, ctx.params["force"])
    machine = read_machine(machine_file) if machine_file is not None else None
    site = read_cluster(ctx.params["site"]) if ctx.params["site"] is not None else None
    if site is not None and target is FORMATS["swf"]:
        remedy = "Write a .parquet or .csv file."
        raise BridgeError("SWF has no room for what jobs ask of a cluster", where=str(out), remedy=remedy)
    choices = ImportConfig(**given_on_command_line(ctx, ImportConfig))
    zone = zone_of(ctx.params["timezone"])
    imported = import_accounting(source, form, zone, machine, choices, columns, site)
    _write(imported, out, target, ctx.params["as_json"])
    _say_ignored(machine)


def _write(imported: "Workload", out: Path, target: Format, as_json: bool) -> None:
    from bridge.report.tables import tally_table

    texts = [name for name in imported.jobs if imported.jobs[name].dtype.kind not in "iuf"]
    if target is FORMATS["swf"]:
        imported = replace(imported, jobs=imported.jobs.drop(columns=texts))
    write(imported, out)
    capacity = ", ".join(f"{name} {amount:,}" for name, amount in imported.capacity.items())
    output: list[Any] = [
        f"wrote {out}: {counted(len(imported.jobs), 'job')}; {imported.header['Note']}",
        f"capacity: {capacity or 'not known; give --machine FILE here, or --nodes N later'}",
    ]
    if imported.tally:
        title = "records left out, mended, noted, or with what no scheduler uses"
        output.append(tally_table(imported.tally, title))
    left_out = list(map(str, texts)) if target is FORMATS["swf"] else []
    if left_out:
        output.append(f"SWF holds numbers only: left out {', '.join(left_out)}.")
    tally = [{"reason": why, **record_of(entry)} for why, entry in imported.tally.items()]
    document = {
        "out": str(out),
        "jobs": len(imported.jobs),
        "capacity": imported.capacity,
        "note": imported.header["Note"],
        "tally": tally,
        "columns_left_out": left_out,
    }
    show(document, output, as_json)


def _say_ignored(machine: "AccountingMachine | None") -> None:
    """Say on stderr what is known of a machine and no scheduler uses."""
    if machine is not None and machine.ignored:
        texts = "; ".join(f"{count:,} {what}" for what, count in machine.ignored.items())
        TERMINAL.say(f"no scheduler uses what the machine says of these: {texts}")


def zone_of(name: str) -> tzinfo:
    """Return the time zone of a name; BridgeError: there is none."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        remedy = "Name one such as Europe/Paris, or UTC."
        raise BridgeError(f"{name!r} is no time zone", where="--timezone", remedy=remedy) from error


@click.command(cls=Command)
@click.argument("source", metavar="FILE", type=shared.FILE)
@options(ImportConfig, "partition")
@shared.json_option
def machine(source: Path, partition: str | None, as_json: bool) -> None:
    """Read the machine from slurm.conf, or from the output of sinfo or `scontrol show node`.

    \b
      sinfo -N -o '%N|%c|%m|%G|%P|%l' > nodes.txt; bridge workload machine nodes.txt
    """
    from bridge.workload.accounting.machine import read_machine

    cluster = read_machine(source)
    whole = cluster.capacity(partition)
    parts = {name: cluster.capacity(name) for name in cluster.partitions if partition in (None, name)}
    table = Table(("", *whole))
    for name, row in (parts | ({} if partition else {"all": whole})).items():
        table.add(name, *(f"{row.get(kind, 0):,}" for kind in whole))
    show({"capacity": whole, "partitions": parts}, [table], as_json)
    _say_ignored(cluster)
