"""The command line, which is Batsim's, and what of it is refused by name."""

import argparse
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

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
_WORKFLOWS = "-W --workflow --WS --workflow-start --workflow-jobs-limit --ignore-beyond-last-workflow"
#: Options of Batsim that are refused, and why.
_REFUSED = dict.fromkeys(_WORKFLOWS.split(), "workflows are not supported") | {
    "--enable-redis": "Redis is not supported: job data travel in the messages themselves",
    "--dump-execution-context": "dumping the execution context is not supported",
}

_Row = tuple[str, str, dict[str, Any], str]


def _many(metavar: str) -> dict[str, Any]:
    return {"metavar": metavar, "action": "append", "default": []}


_ON: dict[str, Any] = {"action": "store_true"}
_OFF: dict[str, Any] = {"action": "store_false"}
#: By group, each option: its words, its attribute, how argparse reads it, and its help.
_OPTIONS: dict[str, tuple[_Row, ...]] = {
    "input": (
        ("-p --platform", "platform", {"metavar": "FILE"}, "the SimGrid platform"),
        ("-w --workload", "workloads", _many("FILE"), "a workload; repeatable"),
        ("--events", "events", _many("FILE"), "external events; repeatable"),
    ),
    "simulation": (
        ("-m --master-host", "master", {"metavar": "NAME", "default": "master_host"},
         "the host of the resource manager"),
        ("-r --add-role-to-hosts", "given_roles", _many("HOSTS:ROLE"),
         "give a role (master, storage, compute_node) to hosts: -r host1,host2:storage"),
        ("-E --energy", "energy", _ON, "simulate energy; needs wattages in the platform"),
        ("--mmax", "mmax", {"metavar": "N", "type": int, "default": 0}, "use at most N machines; 0: all"),
        ("--mmax-workload", "mmax_workload", _ON, "use at most the nb_res of the workloads"),
        ("--enable-compute-sharing", "compute_sharing", _ON, "let several jobs use one compute machine"),
        ("--disable-storage-sharing", "storage_sharing", _OFF, "let only one job use a storage machine"),
        ("--no-sched", "no_sched", _ON, "run the jobs at once, without a decision process"),
        ("--sg-cfg", "simgrid_config", _many("NAME:VALUE"), "forward a setting to SimGrid"),
    ),
    "decision process": (
        ("-s --socket-endpoint", "endpoint", {"metavar": "ENDPOINT", "default": "tcp://localhost:28000"},
         "[%(default)s]"),
        ("--forward-profiles-on-submission", "forward_profiles", _ON, "send each job's profile with it"),
        ("--enable-dynamic-jobs", "dynamic_jobs", _ON, "let it register jobs and profiles"),
        ("--acknowledge-dynamic-jobs", "acknowledge_jobs", _ON, "answer REGISTER_JOB with JOB_SUBMITTED"),
        ("--enable-profile-reuse", "profile_reuse", _ON, "keep profiles after the last job that used them"),
        ("--forward-unknown-events", "forward_unknown", _ON, "forward external events of unknown types"),
        ("--sched-cfg", "sched_config", {"metavar": "TEXT", "default": ""}, "forwarded in the first message"),
        ("--sched-cfg-file", "sched_config_file", {"metavar": "FILE"}, "likewise, read from a file"),
        # These three are told to the decision process by Batsim even where Redis is off.
        ("--redis-hostname", "redis_hostname", {"default": "127.0.0.1"}, argparse.SUPPRESS),
        ("--redis-port", "redis_port", {"type": int, "default": 6379}, argparse.SUPPRESS),
        ("--redis-prefix", "redis_prefix", {"default": "default"}, argparse.SUPPRESS),
    ),
    "output": (
        ("-e --export", "export", {"metavar": "PREFIX", "default": "out"},
         "prefix of the output files [%(default)s]"),
        ("--disable-schedule-tracing", "schedule_tracing", _OFF, "no Pajé trace"),
        ("--disable-machine-state-tracing", "machine_state_tracing", _OFF, "no table of machine states"),
        ("-v --verbosity", "verbosity",
         {"choices": ("quiet", "network-only", "information", "debug"), "default": "information"},
         "[%(default)s]"),
        ("-q --quiet", "quiet", _ON, "same as -v quiet"),
        ("--sg-log", "simgrid_log", _many("OPTION"), "forward a logging option to SimGrid"),
        ("--simgrid-version", "simgrid_version", _ON, "show SimGrid's version and exit"),
    ),
    "options that Batsim does not have": (
        ("--peer-timeout", "peer_timeout", {"metavar": "S", "type": float},
         "end with status 4 when an answer takes more than S seconds of wall time [wait for ever]"),
        ("--kernel", "kernel", {"choices": ("auto", "simgrid", "queue"), "default": "auto"},
         "what runs the internal actors: SimGrid itself; an ordered queue, which is much faster; or the "
         "queue where it is exact or the workload large, else SimGrid [auto]"),
        ("--no-pin", "pin", _OFF, "let the process use more than one processor"),
    ),
}  # fmt: skip


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
    if options.sched_config and options.sched_config_file:
        parser.error("argument --sched-cfg-file: not allowed with argument --sched-cfg")
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
    for title, rows in _OPTIONS.items():
        group = parser.add_argument_group(title)
        for words, attribute, reading, text in rows:
            group.add_argument(*words.split(), dest=attribute, help=text, **reading)
    parser.add_argument("--version", action="version", version=version)
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


def report(error: BaseException) -> int:
    """Say what has ended the simulation; return the exit status."""
    if isinstance(error, BridgeError):
        say(f"bridge simgrid: error: {error}")
        return error.status
    if isinstance(error, MemoryError):
        say("bridge simgrid: error: out of memory")
        return REFUSED
    say("bridge simgrid: internal error\n" + "".join(traceback.format_exception(error)))
    return CRASHED
