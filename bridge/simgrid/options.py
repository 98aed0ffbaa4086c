"""The command line, which is Batsim's, and what of it is refused by name."""

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from bridge.simgrid.errors import USAGE, ModelError

VERBOSITIES = ("quiet", "network-only", "information", "debug")

KERNELS = ("auto", "simgrid", "queue")

_REFUSED = {
    "--enable-redis": "Redis is not supported: job data travel in the messages themselves",
    "-W": "workflows are not supported",
    "--workflow": "workflows are not supported",
    "--WS": "workflows are not supported",
    "--workflow-start": "workflows are not supported",
    "--workflow-jobs-limit": "workflows are not supported",
    "--ignore-beyond-last-workflow": "workflows are not supported",
    "--dump-execution-context": "dumping the execution context is not supported",
}


@dataclass(frozen=True, slots=True)
class Options:
    """One simulation as the command line asks for it; paths are as given."""

    platform: str
    workloads: list[str]
    events: list[str]
    endpoint: str
    export: str
    master: str
    roles: dict[str, str]
    energy: bool
    mmax: int
    mmax_workload: bool
    forward_profiles: bool
    dynamic_jobs: bool
    acknowledge_dynamic_jobs: bool
    profile_reuse: bool
    forward_unknown_events: bool
    compute_sharing: bool
    storage_sharing: bool
    no_sched: bool
    sched_config: str
    redis: tuple[str, int, str]
    schedule_tracing: bool
    machine_state_tracing: bool
    verbosity: str
    simgrid_config: list[str] = field(default_factory=list)
    simgrid_log: list[str] = field(default_factory=list)
    peer_timeout: float | None = None
    kernel: str = "auto"
    pin: bool = True


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ModelError(message, where="command line", remedy="See --help for the options.", status=USAGE)


def parse(argv: list[str], version: str) -> Options:
    """Return the options of a command line.

    Raises:
        ModelError: an option is unknown, malformed or not supported (exit status USAGE).
        SystemExit: ``--help``, ``--version`` or ``--simgrid-version`` was answered.
    """
    for argument in argv:
        name = argument.partition("=")[0]
        if name in _REFUSED:
            raise ModelError(_REFUSED[name], where=name, remedy="Leave the option out.", status=USAGE)
    parser = _parser(version)
    given = parser.parse_args(argv)
    if given.simgrid_version:
        import simgrid

        print(simgrid.simgrid_version)
        raise SystemExit(0)
    if given.platform is None:
        parser.error("the platform is missing: -p PLATFORM.xml")
    if given.enable_profile_reuse and not given.enable_dynamic_jobs:
        parser.error("--enable-profile-reuse needs --enable-dynamic-jobs")
    if given.peer_timeout is not None and not given.peer_timeout > 0:
        parser.error("--peer-timeout must be a positive number of seconds")
    return Options(
        platform=given.platform,
        workloads=given.workload,
        events=given.events,
        endpoint=given.socket_endpoint,
        export=given.export,
        master=given.master_host,
        roles=_roles(given.master_host, given.add_role_to_hosts),
        energy=given.energy,
        mmax=given.mmax,
        mmax_workload=given.mmax_workload,
        forward_profiles=given.forward_profiles_on_submission,
        dynamic_jobs=given.enable_dynamic_jobs,
        acknowledge_dynamic_jobs=given.acknowledge_dynamic_jobs,
        profile_reuse=given.enable_profile_reuse,
        # Like Batsim: without any events file the switch has no effect, on the wire either.
        forward_unknown_events=given.forward_unknown_events and bool(given.events),
        compute_sharing=given.enable_compute_sharing,
        storage_sharing=not given.disable_storage_sharing,
        no_sched=given.no_sched,
        sched_config=_sched_config(given.sched_cfg, given.sched_cfg_file),
        redis=(given.redis_hostname, given.redis_port, given.redis_prefix),
        schedule_tracing=not given.disable_schedule_tracing,
        machine_state_tracing=not given.disable_machine_state_tracing,
        verbosity="quiet" if given.quiet else given.verbosity,
        simgrid_config=given.sg_cfg,
        simgrid_log=given.sg_log,
        peer_timeout=given.peer_timeout,
        kernel=given.kernel,
        pin=not given.no_pin,
    )


def _parser(version: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bridge simgrid",
        description="Stand in for Batsim 4: simulate a platform for the decision process at a socket.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit status: 0 done, 1 bad input or illegal decision, 2 command line, 3 nothing can happen\n"
        "any more, 4 no answer within --peer-timeout, 70 SimGrid stopped, 130 or 143 after a signal.",
    )
    add = parser.add_argument
    inputs = parser.add_argument_group("input")
    inputs.add_argument("-p", "--platform", metavar="FILE", help="the SimGrid platform")
    inputs.add_argument(
        "-w", "--workload", metavar="FILE", action="append", default=[], help="a workload; repeatable"
    )
    inputs.add_argument(
        "--events", metavar="FILE", action="append", default=[], help="external events; repeatable"
    )
    add("-m", "--master-host", metavar="NAME", default="master_host", help="the host of the resource manager")
    add(
        "-r", "--add-role-to-hosts", metavar="HOSTS:ROLE", action="append", default=[],
        help="give a role (master, storage, compute_node) to hosts: -r host1,host2:storage",
    )  # fmt: skip
    add("-E", "--energy", action="store_true", help="simulate energy; needs wattages in the platform")
    add("-s", "--socket-endpoint", metavar="ENDPOINT", default="tcp://localhost:28000", help="[%(default)s]")
    add("-e", "--export", metavar="PREFIX", default="out", help="prefix of the output files [%(default)s]")
    add("--disable-schedule-tracing", action="store_true", help="no Pajé trace")
    add("--disable-machine-state-tracing", action="store_true", help="no table of machine states")
    add("--mmax", metavar="N", type=int, default=0, help="use at most N machines; 0: all")
    add("--mmax-workload", action="store_true", help="use at most the nb_res of the workloads")
    add("--forward-profiles-on-submission", action="store_true", help="send each job's profile with it")
    add(
        "--enable-dynamic-jobs",
        action="store_true",
        help="let the decision process register jobs and profiles",
    )
    add("--acknowledge-dynamic-jobs", action="store_true", help="answer REGISTER_JOB with JOB_SUBMITTED")
    add("--enable-profile-reuse", action="store_true", help="keep profiles after the last job that used them")
    add("--forward-unknown-events", action="store_true", help="forward external events of unknown types")
    add(
        "--enable-compute-sharing",
        action="store_true",
        help="let several jobs use one compute machine at a time",
    )
    add(
        "--disable-storage-sharing",
        action="store_true",
        help="let only one job use a storage machine at a time",
    )
    add("--no-sched", action="store_true", help="run the jobs at once, without a decision process")
    config = parser.add_mutually_exclusive_group()
    config.add_argument("--sched-cfg", metavar="TEXT", default="", help="forwarded in the first message")
    config.add_argument("--sched-cfg-file", metavar="FILE", default="", help="likewise, read from a file")
    # These three are told to the decision process by Batsim even where Redis is off.
    add("--redis-hostname", default="127.0.0.1", help=argparse.SUPPRESS)
    add("--redis-port", type=int, default=6379, help=argparse.SUPPRESS)
    add("--redis-prefix", default="default", help=argparse.SUPPRESS)
    add("--sg-cfg", metavar="NAME:VALUE", action="append", default=[], help="forward a setting to SimGrid")
    add("--sg-log", metavar="OPTION", action="append", default=[], help="forward a logging option to SimGrid")
    add("-v", "--verbosity", choices=VERBOSITIES, default="information", help="[%(default)s]")
    add("-q", "--quiet", action="store_true", help="same as -v quiet")
    own = parser.add_argument_group("options that Batsim does not have")
    own.add_argument(
        "--peer-timeout", metavar="S", type=float, default=None,
        help="end with status 4 when an answer takes more than S seconds of wall time [wait for ever]",
    )  # fmt: skip
    own.add_argument(
        "--kernel", choices=KERNELS, default="auto",
        help="what runs the internal actors: SimGrid itself; an ordered queue, which is much faster; or the "
        "queue where it is exact or the workload large, else SimGrid [auto]",
    )  # fmt: skip
    own.add_argument("--no-pin", action="store_true", help="let the process use more than one processor")
    add("--version", action="version", version=version)
    add("--simgrid-version", action="store_true", help="show SimGrid's version and exit")
    return parser


def _roles(master: str, given: list[str]) -> dict[str, str]:
    roles = {master: "master"}
    for text in given:
        hosts, colon, role = text.partition(":")
        if not colon or ":" in role:
            raise ModelError(
                f"'{text}' is not HOSTS:ROLE", where="-r", remedy="Write -r a,b:storage.", status=USAGE
            )
        roles.update(dict.fromkeys(hosts.split(","), role))
    return roles


def _sched_config(text: str, file: str) -> str:
    if not file:
        return text
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(
            f"cannot be read: {error}", where=file, remedy="Give --sched-cfg-file a text file."
        ) from None


def say(text: str) -> None:
    """Write one line to the standard error stream."""
    print(text, file=sys.stderr, flush=True)
