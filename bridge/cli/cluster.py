"""`bridge cluster`: what a site is, from its own files: imported, made, shown, checked."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cli import options as shared
from bridge.cli.terminal import TERMINAL
from bridge.cli.terminal import show as printed
from bridge.cluster.source import cluster_file, open_cluster
from bridge.commands.infer_config import InferConfig
from bridge.config.options import Command, given_on_command_line, options
from bridge.report.table import Table

if TYPE_CHECKING:
    from bridge.cluster.imported import ImportedCluster

#: Forms of files, by the names of `--from`.
_FORMS = ("slurm", "pbsnodes", "platform", "swf", "table")


@click.group()
def cluster() -> None:
    """Describe a site in a file cluster.toml: nodes, partitions, limits, a calendar."""


@cluster.command("import")
@click.argument("source", metavar="FILE", type=shared.FILE)
@click.option(
    "--from",
    "form",
    type=click.Choice(_FORMS),
    help="What FILE is. slurm: slurm.conf or the output of scontrol. pbsnodes: the output of pbsnodes -a. "
    "platform: a SimGrid platform. swf: an SWF log with its files (.machines, .queues, .users, .groups). "
    "table: a table of nodes (with --map).  "
    "[default: by its name and contents]",
)
@click.option(
    "--map",
    "map_name",
    metavar="NAME",
    help="Column map for a table with a row for each node: a TOML file, or one that comes with bridge.",
)
@click.option(
    "--sacctmgr",
    "accounting",
    metavar="FILE",
    type=shared.FILE,
    multiple=True,
    help="The output of `sacctmgr -P show qos` or `sacctmgr -P show assoc`. May be repeated.",
)
@shared.file_option("--reservations", "The output of `scontrol show reservation`; needs --log.")
@click.option(
    "--log", metavar="LOG", help="The log. The times of reservations are written on the clock of this log."
)
@click.option(
    "--timezone",
    default="UTC",
    show_default=True,
    metavar="ZONE",
    help="Time zone of the reservations, for example Europe/Paris.",
)
@shared.file_option("--out", "The cluster.toml to write.", required=True)
@shared.force_option
@shared.json_option
def import_(
    source: Path,
    form: str | None,
    map_name: str | None,
    accounting: tuple[Path, ...],
    reservations: Path | None,
    log: str | None,
    timezone: str,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Write cluster.toml from files of a site: slurm.conf, pbsnodes, a platform, an SWF log, a table.

    The command lists the settings of the files that no scheduler of bridge obeys. Limits of --sacctmgr apply,
    with any value of AccountingStorageEnforce.

    \b
    Examples:
      bridge cluster import /etc/slurm/slurm.conf --out cluster.toml
      bridge cluster import slurm.conf --sacctmgr qos.txt --sacctmgr assoc.txt --out cluster.toml
      bridge cluster import slurm.conf --reservations res.txt --log site.parquet --out cluster.toml
      bridge cluster import nodes.txt --from pbsnodes --out cluster.toml
      bridge cluster import site.swf.gz --out cluster.toml
      bridge cluster import nodes.csv --map openb --out cluster.toml
    """
    from bridge.cluster.check import check_cluster
    from bridge.cluster.clusterfile import write_cluster_toml
    from bridge.cluster.node_table import build_node_table, partitions_of

    shared.check_output(out, force)
    imported = _imported(source, form or ("table" if map_name else _form_of(source)), accounting, map_name)
    if reservations is not None:
        imported = _with_reservations(imported, reservations, log, timezone)
    elif log is not None:
        raise click.UsageError("--log goes with --reservations")
    site = imported.cluster
    write_cluster_toml(site, out, f"imported from {source.name}")
    nodes, partitions = len(build_node_table(site)), len(partitions_of(site))
    rules = (
        f"{len(site.qos)} QOS, {counted(len(site.accounts), 'account')}, {counted(len(site.users), 'user')}"
    )
    output: list[Any] = [
        f"wrote {out}: {counted(nodes, 'node')}, {counted(partitions, 'partition')}, {rules}"
    ]
    output += [f"note: {note}" for note in imported.notes]
    if imported.unhonoured:
        table = Table(("", "in the files, and no scheduler of bridge obeys it"), title="", words=(1,))
        for what, count in imported.unhonoured.items():
            table.add(f"{count:,}", what)
        output.append(table)
    findings = check_cluster(site)
    if findings:
        more = ", …" if len(findings) > 1 else ""
        output.append(
            f"`bridge cluster check {out}` has {counted(len(findings), 'finding')}: {findings[0].what}{more}"
        )
    counts = {kind: len(getattr(site, kind)) for kind in ("qos", "accounts", "users")}
    document = {
        "out": str(out),
        "nodes": nodes,
        "partitions": partitions,
        **counts,
        "notes": list(imported.notes),
        "not_honoured": imported.unhonoured,
        "findings": [{"severity": f.severity, "field": f.path, "what": f.what} for f in findings],
    }
    printed(document, output, as_json)


def _with_reservations(
    imported: "ImportedCluster", path: Path, log: str | None, timezone: str
) -> "ImportedCluster":
    """Return an import with the reservations of a file, on a log's clock."""
    from bridge.cli.accounting import zone_of
    from bridge.cluster.imported import ImportNotes
    from bridge.cluster.slurm_reservations import read_reservations
    from bridge.workload.catalogue import read_log

    if log is None:
        raise click.UsageError("--reservations needs --log, whose clock the cluster has")
    clock = read_log(log).header.get("UnixStartTime", "")
    try:
        unix_start = float(clock)
    except ValueError as error:
        what = "its header has no UnixStartTime, so that no date is on its clock"
        remedy = "Write the reservations by hand, in seconds since the log's begin."
        raise BridgeError(what, where=log, remedy=remedy) from error
    notes = ImportNotes(dict(imported.unhonoured), list(imported.notes))
    site = read_reservations(path, imported.cluster, notes, zone_of(timezone), unix_start)
    return replace(imported, cluster=site, unhonoured=notes.unhonoured, notes=tuple(notes.notes))


def _form_of(path: Path) -> str:
    from bridge.base import files
    from bridge.cluster.slurm_conf import is_settings

    if path.name.lower().removesuffix(files.compression(path)).endswith(".swf"):
        return "swf"
    text = files.read_text(path)
    if "<platform" in text[:4000]:
        return "platform"
    return "slurm" if is_settings(text) else "pbsnodes"


def _imported(
    source: Path, form: str, accounting: tuple[Path, ...], map_name: str | None
) -> "ImportedCluster":
    if (form == "table") != (map_name is not None):
        raise click.UsageError("--map NAME goes with a table of nodes, and a table of nodes with --map NAME")
    if form == "slurm":
        from bridge.cluster.slurm_site import import_slurm

        return import_slurm(source, accounting)
    if accounting:
        raise click.UsageError("--sacctmgr goes with --from slurm")
    if form == "pbsnodes":
        from bridge.cluster.pbsnodes import import_pbsnodes

        return import_pbsnodes(source)
    if form == "swf":
        from bridge.cluster.swf_site import import_swf_site

        return import_swf_site(source)
    if form == "table":
        from bridge.cluster.mapped_nodes import import_nodes

        return import_nodes(source, str(map_name))
    from bridge.platform.cluster_hosts import import_platform

    return import_platform(source)


@cluster.command(cls=Command)
@click.argument("log", metavar="LOG")
@shared.file_option("--out", "The cluster.toml to write.", required=True)
@options(InferConfig, heading="Judged on the second half")
@click.option(
    "--nodes", type=click.IntRange(min=1), metavar="N", help="Number of nodes, if the log does not state it."
)
@shared.malformed_option
@shared.force_option
@shared.json_option
@click.pass_context
def infer(
    ctx: click.Context, /, log: str, out: Path, nodes: int | None, force: bool, as_json: bool, **_: Any
) -> None:
    """Estimate a site from LOG alone: sizes of partitions, limits, and when passes run; with evidence.

    The estimates come from the first half of the log. If the log does not show a value, it is printed as "not
    identifiable", and not written. The estimates are tested on windows of the second half: if the replay is
    farther from the record with an estimate than without it, the estimate is refused.

    \b
    Example:
      bridge cluster infer site.parquet --out site.toml
      bridge fidelity site.parquet --cluster site.toml
    """
    from dataclasses import replace

    from bridge.cluster.clusterfile import write_cluster_toml
    from bridge.commands.infer import infer_site
    from bridge.workload.catalogue import read_log

    shared.check_output(out, force)
    workload = read_log(log, ctx.params["malformed"] or "refuse")
    if nodes is not None:
        workload = replace(workload, capacity={**workload.capacity, "nodes": nodes})
    site = infer_site(workload, InferConfig(**given_on_command_line(ctx, InferConfig)))
    write_cluster_toml(site.cluster, out, site.comment(log))
    lines = [*site.lines(), f"wrote {out}"]
    printed(site.as_dict() | {"out": str(out)}, lines, as_json)


@cluster.command()
@click.argument("out", metavar="FILE.toml", type=shared.FILE)
@shared.force_option
def new(out: Path, force: bool) -> None:
    """Write a commented cluster.toml to begin with: that of a teaching site.

    \b
    Example:
      bridge cluster new cluster.toml
    """
    from bridge.base.files import atomic_write

    shared.check_output(out, force)
    with atomic_write(out) as file:
        file.write(cluster_file("teaching-site").read_bytes())
    click.echo(f"written: {out}; change it, then: bridge cluster check {out}")


@cluster.command()
@click.argument("file", type=str)
@shared.file_option("--picture", "Draw nodes and partitions (.png, .svg or .pdf).")
@shared.json_option
def show(file: str, picture: Path | None, as_json: bool) -> None:
    """Show the site FILE (TOML, slurm.conf, or one that comes with bridge): nodes, partitions, limits.

    \b
    Examples:
      bridge cluster show teaching-site
      bridge cluster show slurm.conf --picture site.svg
    """
    from bridge.cluster.clusterfile import cluster_digest, cluster_tables
    from bridge.cluster.source import read_cluster
    from bridge.report.cluster_tables import tables_of_cluster

    site = read_cluster(file)
    document = cluster_tables(site) | {"sha256": cluster_digest(site)}
    printed(document, tables_of_cluster(site), as_json)
    if picture is not None:
        from bridge.report.cluster_picture import draw_cluster

        draw_cluster(site, picture)
        click.echo(f"picture: {picture}", err=as_json)


@cluster.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=str)
@shared.json_option
@click.pass_context
def check(ctx: click.Context, files: tuple[str, ...], as_json: bool) -> None:
    """Find mistakes in cluster FILES: contradictions, names that do not exist, entries without effect.

    Each mistake is printed with its file and line. The exit status is 1 if a file cannot be used, else 0.
    """
    from bridge.cluster.check import check_cluster

    colours = {"error": "red", "unknown": "yellow", "unused": "cyan"}
    lines: list[str] = []
    document: list[dict[str, Any]] = []
    for file in files:
        opened = open_cluster(cluster_file(file))
        for what, number in opened.unhonoured.items():
            TERMINAL.say(f"not honoured: {number:,} {what}")
        for one in check_cluster(opened.cluster):
            where = opened.place(one.path)
            lines.append(f"{where}: {click.style(one.severity, fg=colours[one.severity])}: {one.what}")
            document.append({"where": where, "severity": one.severity, "field": one.path, "what": one.what})
    count = {kind: sum(one["severity"] == kind for one in document) for kind in colours}
    lines.append(", ".join(f"{n} {kind}{'s' * (kind == 'error' and n != 1)}" for kind, n in count.items()))
    printed(document, lines, as_json)
    if count["error"]:
        ctx.exit(1)
