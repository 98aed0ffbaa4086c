"""`bridge platform`: make, check, show and try the detailed machine."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bridge.cli import options as shared
from bridge.cli.terminal import show as printed
from bridge.experiment.spec import platform_file
from bridge.report.table import Table

#: The type of a platform: a file, or the name of one that comes with bridge.
_PLATFORM = click.types.FuncParamType(platform_file)


@click.group()
def platform() -> None:
    """Platforms of the detailed world: SimGrid XML as Batsim reads it."""


def _print_findings(findings: list[Any], more: list[str], as_json: bool) -> None:
    colours = {"error": "red", "warning": "yellow", "note": "cyan"}
    lines = [
        f"{f.where}: {click.style(f.severity, fg=colours[f.severity])}: {f.message} [{f.code}]\n  {f.remedy}"
        for f in findings
    ]
    printed(list(map(asdict, findings)), [*lines, *more], as_json)


@platform.command()
@click.argument("spec", type=shared.FILE, required=False)
@click.option("-o", "--out", type=shared.FILE, required=True, help="The XML file to write.")
@click.option(
    "--cluster",
    metavar="FILE",
    help="The hosts are the nodes of this cluster, by name and cores. SPEC may add network and storage.",
)
@shared.flag("--force", "Overwrite the file.")
def new(spec: Path | None, out: Path, cluster: str | None, force: bool) -> None:
    """Write a platform from the short description SPEC (TOML, or YAML with PyYAML), or of a cluster's nodes.

    \b
    Examples:
      bridge platform new platforms/teaching-16.toml -o teaching.xml
      bridge platform new --cluster teaching-site -o site.xml
    """
    if spec is None and cluster is None:
        raise click.UsageError("Missing argument 'SPEC', or --cluster FILE.")
    from bridge.platform.author import write_platform
    from bridge.platform.read import read_platform

    findings = write_platform(spec, out, force=force, cluster=cluster)
    _print_findings(findings, [], as_json=False)
    new_platform = read_platform(out)
    click.echo(f"{out}: {len(new_platform.compute):,} compute hosts, {out.stat().st_size:,} bytes")


@platform.command()
@click.argument("files", nargs=-1, required=True, type=_PLATFORM)
@shared.json_option
@click.option(
    "-m",
    "--master-host",
    default="master_host",
    show_default=True,
    help="Name of the master host, as Batsim's option.",
)
@click.option("--load", is_flag=True, help="Also load the files in the real SimGrid.")
@click.option(
    "-E", "--energy", is_flag=True, help="Check for runs with --energy: wrong power values are errors, too."
)
@click.pass_context
def check(
    ctx: click.Context, files: tuple[Path, ...], as_json: bool, master_host: str, load: bool, energy: bool
) -> None:
    """Find mistakes in platform FILES, with the line and the remedy of each.

    Exit status: 1 if there is an error, 0 otherwise (warnings and notes included).
    """
    from bridge.platform.check import check_platform
    from bridge.platform.findings import findings_of_simgrid, verdict

    findings_by_file = {file: check_platform(file, master_name=master_host, energy=energy) for file in files}
    if load:
        for file, refusal in zip(findings_by_file, findings_of_simgrid(list(findings_by_file)), strict=True):
            if refusal is not None and verdict(findings_by_file[file]) == "loads":
                findings_by_file[file].append(refusal)
    everything = [finding for of_file in findings_by_file.values() for finding in of_file]
    count = {kind: sum(f.severity == kind for f in everything) for kind in ("error", "warning", "note")}
    wrong = {
        file: of
        for file, of in findings_by_file.items()
        if any(finding.severity == "error" for finding in of)
    }
    more = [f"{file}: SimGrid {verdict(of)} it" for file, of in wrong.items()]
    more.append(", ".join(f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in count.items()))
    _print_findings(everything, more, as_json)
    if count["error"]:
        ctx.exit(1)


@platform.command()
@click.argument("file", type=_PLATFORM)
@shared.json_option
@click.option("--picture", type=shared.FILE, help="Draw the platform (.png, .svg or .pdf).")
@click.option("--graph", type=shared.FILE, help="Write the graph of hosts, switches and links (GraphML).")
def show(file: Path, as_json: bool, picture: Path | None, graph: Path | None) -> None:
    """Summarise the platform FILE: hosts, network, storage, power, and the capacities of the machine."""
    from bridge.platform.read import read_platform
    from bridge.platform.summary import summarise, summary_lines

    machine = read_platform(file)
    summary = summarise(machine)
    printed(summary, [Table(("", ""), summary_lines(summary), title=summary["name"], words=(1,))], as_json)
    if picture is not None:
        from bridge.report.platform_picture import draw_platform

        draw_platform(machine, picture)
        click.echo(f"picture: {picture}", err=as_json)
    if graph is not None:
        from bridge.platform.graph import write_graph

        write_graph(machine, graph)
        click.echo(f"graph: {graph}", err=as_json)


@platform.command("try")
@click.argument("file", type=_PLATFORM)
@click.option("--with", "program", help="A program with Batsim's command line (default: the embedded model).")
@click.option("--timeout", type=float, default=120.0, show_default=True, help="Largest wall time, s.")
@shared.json_option
@click.pass_context
def try_(ctx: click.Context, file: Path, program: str | None, timeout: float, as_json: bool) -> None:
    """Run 20 small jobs on the platform FILE, and compare their times with formulas.

    Exit status: 1 if a job took another time than it should.
    """
    from bridge.experiment.acceptance import run_trial
    from bridge.experiment.prepare import read_valid_platform

    results = run_trial(read_valid_platform(file), command=[program] if program else None, timeout=timeout)
    passed = sum(result.passed for result in results)
    rows = [
        {
            "id": r.job.ident,
            "job": r.job.about,
            "expected_seconds": r.job.seconds,
            "expected_state": r.job.state,
            "seconds": r.seconds,
            "state": r.state,
            "passed": r.passed,
        }
        for r in results
    ]
    title = f"{file}: {passed} of {len(results)} jobs as expected"
    table = Table(("", "job", "hosts", "expected s", "took s", "state"), title=title, words=(1, 5))
    for r in results:
        took = "missing" if r.seconds is None else f"{r.seconds:.6f}"
        state = (r.state or "").removeprefix("COMPLETED_").lower().replace("_", " ")
        hosts = str(len(r.job.resources))
        table.add("✓" if r.passed else "✗", r.job.about, hosts, f"{r.job.seconds:.6f}", took, state)
    printed(rows, [table], as_json)
    if passed < len(results):
        ctx.exit(1)
