"""The command line, which is Batsim's, and what of it is refused by name."""

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from bridge.errors import BridgeError

#: Exit statuses. The simulation ended as it should; a bad file, an illegal decision, an unusable socket.
OK, REFUSED = 0, 1
#: A command line that is not understood, or asks for what is not supported.
USAGE = 2
#: Nothing can happen any more, yet jobs are unfinished: the decision process is waiting for ever.
DEADLOCK = 3
#: The decision process did not come, or did not answer, within ``--peer-timeout``.
NO_PEER = 4
#: SimGrid itself stopped the process.
CRASHED = 70

#: The longest ``--peer-timeout``, s: ZeroMQ counts milliseconds in 31 bits.
_LONGEST_TIMEOUT_S = 2_000_000

_NO_WORKFLOWS = "workflows are not supported"
_REFUSED = {
    "--enable-redis": "Redis is not supported: job data travel in the messages themselves",
    "-W": _NO_WORKFLOWS,
    "--workflow": _NO_WORKFLOWS,
    "--WS": _NO_WORKFLOWS,
    "--workflow-start": _NO_WORKFLOWS,
    "--workflow-jobs-limit": _NO_WORKFLOWS,
    "--ignore-beyond-last-workflow": _NO_WORKFLOWS,
    "--dump-execution-context": "dumping the execution context is not supported",
}

#: Options without a value: (option, attribute, what it is true for, help).
_SWITCHES = (
    ("--disable-schedule-tracing", "schedule_tracing", False, "no Pajé trace"),
    ("--disable-machine-state-tracing", "machine_state_tracing", False, "no table of machine states"),
    ("--mmax-workload", "mmax_workload", True, "use at most the nb_res of the workloads"),
    ("--forward-profiles-on-submission", "forward_profiles", True, "send each job's profile with it"),
    ("--enable-dynamic-jobs", "dynamic_jobs", True, "let the decision process register jobs and profiles"),
    ("--acknowledge-dynamic-jobs", "acknowledge_jobs", True, "answer REGISTER_JOB with JOB_SUBMITTED"),
    ("--enable-profile-reuse", "profile_reuse", True, "keep profiles after the last job that used them"),
    ("--forward-unknown-events", "forward_unknown", True, "forward external events of unknown types"),
    (
        "--enable-compute-sharing",
        "compute_sharing",
        True,
        "let several jobs use one compute machine at a time",
    ),
    (
        "--disable-storage-sharing",
        "storage_sharing",
        False,
        "let only one job use a storage machine at a time",
    ),
    ("--no-sched", "no_sched", True, "run the jobs at once, without a decision process"),
)


class Options(argparse.Namespace):
    """One simulation as the command line asks for it; paths are as given."""

    platform: str
    workloads: list[str]
    events: list[str]
    endpoint: str
    export: str
    master: str
    #: Host -> role.
    roles: dict[str, str]
    energy: bool
    #: At most so many compute machines; 0: all.
    mmax: int
    mmax_workload: bool
    forward_profiles: bool
    dynamic_jobs: bool
    acknowledge_jobs: bool
    profile_reuse: bool
    forward_unknown: bool
    compute_sharing: bool
    storage_sharing: bool
    no_sched: bool
    sched_config: str
    redis_hostname: str
    redis_port: int
    redis_prefix: str
    schedule_tracing: bool
    machine_state_tracing: bool
    verbosity: str
    simgrid_config: list[str]
    simgrid_log: list[str]
    #: Wall time, s; None: wait for ever.
    peer_timeout: float | None
    kernel: str
    pin: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BridgeError(message, where="command line", remedy="See --help for the options.", status=USAGE)


def parse(argv: list[str], version: str) -> Options:
    """Return the options of a command line.

    Raises:
        BridgeError: an option is unknown, malformed or not supported (exit status USAGE).
        SystemExit: ``--help``, ``--version`` or ``--simgrid-version`` was answered.
    """
    parser = _parser(version)
    for argument in argv:
        name = argument.partition("=")[0]
        if name in _REFUSED:
            raise BridgeError(_REFUSED[name], where=name, remedy="Leave the option out.", status=USAGE)
        if not argument.isascii() and any("\ud800" <= letter <= "\udfff" for letter in argument):
            parser.error(f"{argument!a} is not UTF-8")
    options = parser.parse_args(argv, Options())
    if options.simgrid_version:
        import simgrid

        print(simgrid.simgrid_version)
        raise SystemExit(OK)
    if options.platform is None:
        parser.error("the platform is missing: -p PLATFORM.xml")
    if options.profile_reuse and not options.dynamic_jobs:
        parser.error("--enable-profile-reuse needs --enable-dynamic-jobs")
    if options.peer_timeout is not None and not 0 < options.peer_timeout <= _LONGEST_TIMEOUT_S:
        parser.error(f"--peer-timeout must be a positive number of seconds, up to {_LONGEST_TIMEOUT_S}")
    options.roles = _roles(options.master, options.given_roles)
    # Like Batsim: without any events file the switch has no effect, on the wire either.
    options.forward_unknown = options.forward_unknown and bool(options.events)
    if options.sched_config_file:
        options.sched_config = read_text(options.sched_config_file, "Give --sched-cfg-file a text file.")
    if options.quiet:
        options.verbosity = "quiet"
    return options


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
    for words, attribute, text in (
        (("-w", "--workload"), "workloads", "a workload; repeatable"),
        (("--events",), "events", "external events; repeatable"),
    ):
        inputs.add_argument(*words, dest=attribute, metavar="FILE", action="append", default=[], help=text)
    add(
        "-m", "--master-host", dest="master", metavar="NAME", default="master_host",
        help="the host of the resource manager",
    )  # fmt: skip
    add(
        "-r", "--add-role-to-hosts", dest="given_roles", metavar="HOSTS:ROLE", action="append", default=[],
        help="give a role (master, storage, compute_node) to hosts: -r host1,host2:storage",
    )  # fmt: skip
    add("-E", "--energy", action="store_true", help="simulate energy; needs wattages in the platform")
    add(
        "-s", "--socket-endpoint", dest="endpoint", metavar="ENDPOINT", default="tcp://localhost:28000",
        help="[%(default)s]",
    )  # fmt: skip
    add("-e", "--export", metavar="PREFIX", default="out", help="prefix of the output files [%(default)s]")
    add("--mmax", metavar="N", type=int, default=0, help="use at most N machines; 0: all")
    for option, attribute, given, text in _SWITCHES:
        add(option, dest=attribute, action="store_const", const=given, default=not given, help=text)
    config = parser.add_mutually_exclusive_group()
    config.add_argument(
        "--sched-cfg", dest="sched_config", metavar="TEXT", default="", help="forwarded in the first message"
    )
    config.add_argument(
        "--sched-cfg-file", dest="sched_config_file", metavar="FILE", help="likewise, read from a file"
    )
    # These three are told to the decision process by Batsim even where Redis is off.
    add("--redis-hostname", default="127.0.0.1", help=argparse.SUPPRESS)
    add("--redis-port", type=int, default=6379, help=argparse.SUPPRESS)
    add("--redis-prefix", default="default", help=argparse.SUPPRESS)
    for option, attribute, metavar, text in (
        ("--sg-cfg", "simgrid_config", "NAME:VALUE", "forward a setting to SimGrid"),
        ("--sg-log", "simgrid_log", "OPTION", "forward a logging option to SimGrid"),
    ):
        add(option, dest=attribute, metavar=metavar, action="append", default=[], help=text)
    add(
        "-v",
        "--verbosity",
        choices=("quiet", "network-only", "information", "debug"),
        default="information",
        help="[%(default)s]",
    )
    add("-q", "--quiet", action="store_true", help="same as -v quiet")
    own = parser.add_argument_group("options that Batsim does not have")
    own.add_argument(
        "--peer-timeout", metavar="S", type=float,
        help="end with status 4 when an answer takes more than S seconds of wall time [wait for ever]",
    )  # fmt: skip
    own.add_argument(
        "--kernel", choices=("auto", "simgrid", "queue"), default="auto",
        help="what runs the internal actors: SimGrid itself; an ordered queue, which is much faster; or the "
        "queue where it is exact or the workload large, else SimGrid [auto]",
    )  # fmt: skip
    own.add_argument(
        "--no-pin", dest="pin", action="store_false", help="let the process use more than one processor"
    )
    add("--version", action="version", version=version)
    add("--simgrid-version", action="store_true", help="show SimGrid's version and exit")
    return parser


def _roles(master: str, given: list[str]) -> dict[str, str]:
    roles = {master: "master"}
    for text in given:
        hosts, colon, role = text.partition(":")
        if not colon or ":" in role:
            raise BridgeError(
                f"'{text}' is not HOSTS:ROLE", where="-r", remedy="Write -r a,b:storage.", status=USAGE
            )
        roles.update(dict.fromkeys(hosts.split(","), role))
    return roles


def read_text(path: str | Path, remedy: str = "") -> str:
    """Return the text of a file.

    Raises:
        BridgeError: it cannot be read, or is not UTF-8.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BridgeError(f"cannot be read: {error}", where=str(path), remedy=remedy) from None


def say(text: str) -> None:
    """Write one line to the standard error stream."""
    print(text, file=sys.stderr, flush=True)
