"""The command line, which is Batsim's, and what of it is refused by name."""

import argparse
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn

from bridge.base.errors import BridgeError

#: Exit statuses: the simulation ended as it should; a bad file, an illegal decision, an unusable socket; a
#: command line that is not understood, or asks for what is not supported; nothing can happen any more, yet
#: jobs are unfinished: the decision process waits for ever; it did not come, or did not answer, in time;
#: SimGrid itself stopped the process.
OK, REFUSED, USAGE, DEADLOCK, NO_PEER, CRASHED = 0, 1, 2, 3, 4, 70

#: The longest ``--peer-timeout``, s: ZeroMQ counts milliseconds in 31 bits.
_LONGEST_TIMEOUT_S = 2_000_000
_ENDPOINT = "tcp://localhost:28000"
_VERBOSITIES = ("quiet", "network-only", "information", "debug")
_MASTER_HELP = "the host of the resource manager"
_ROLES_HELP = "give a role (master, storage, compute_node) to hosts: -r host1,host2:storage"
_TIMEOUT_HELP = "end with status 4 when an answer takes more than S seconds of wall time [wait for ever]"
_KERNEL_HELP = (
    "what runs the internal actors. simgrid: SimGrid itself. queue: an ordered queue, which is much "
    "faster. auto: queue if it is exact or the workload is large, else simgrid [auto]"
)
_WORKFLOWS = "-W --workflow --WS --workflow-start --workflow-jobs-limit --ignore-beyond-last-workflow"
#: Options of Batsim that are refused, and why.
_REFUSED = dict.fromkeys(_WORKFLOWS.split(), "workflows are not supported") | {
    "--enable-redis": "Redis is not supported: job data travel in the messages themselves",
    "--dump-execution-context": "dumping the execution context is not supported",
}


def _option(words: str, text: str, default: Any = None, **reading: Any) -> Any:
    """Return the field of an option: its words, its help, its default, and how argparse reads it."""
    return field(default=default, metadata={"words": words.split(), "help": text, **reading})


def _many(words: str, text: str, metavar: str) -> Any:
    reading = {"words": words.split(), "help": text, "metavar": metavar, "action": "append"}
    return field(default_factory=list, metadata=reading)


def _on(words: str, text: str) -> Any:
    return _option(words, text, False, action="store_true")


def _off(words: str, text: str) -> Any:
    return _option(words, text, True, action="store_false")


@dataclass
class SimulationOptions:
    """One simulation as the command line asks for it; paths are as given."""

    platform: str = _option("-p --platform", "the SimGrid platform", metavar="FILE")
    workloads: Sequence[str] = _many("-w --workload", "a workload; repeatable", "FILE")
    events: Sequence[str] = _many("--events", "external events; repeatable", "FILE")

    master: str = _option("-m --master-host", _MASTER_HELP, "master_host", metavar="NAME")
    given_roles: Sequence[str] = _many("-r --add-role-to-hosts", _ROLES_HELP, "HOSTS:ROLE")
    energy: bool = _on("-E --energy", "simulate energy; needs wattages in the platform")
    mmax: int = _option("--mmax", "use at most N machines; 0: all", 0, metavar="N", type=int)
    mmax_workload: bool = _on("--mmax-workload", "use at most the nb_res of the workloads")
    compute_sharing: bool = _on("--enable-compute-sharing", "let several jobs use one compute machine")
    storage_sharing: bool = _off("--disable-storage-sharing", "let only one job use a storage machine")
    no_sched: bool = _on("--no-sched", "run the jobs at once, without a decision process")
    simgrid_config: Sequence[str] = _many("--sg-cfg", "forward a setting to SimGrid", "NAME:VALUE")

    endpoint: str = _option(
        "-s --socket-endpoint",
        f"address of the decision process's socket [{_ENDPOINT}]",
        _ENDPOINT,
        metavar="ENDPOINT",
    )
    forward_profiles: bool = _on(
        "--forward-profiles-on-submission", "send the profile of each job with its submission"
    )
    dynamic_jobs: bool = _on("--enable-dynamic-jobs", "let the decision process register jobs and profiles")
    acknowledge_jobs: bool = _on("--acknowledge-dynamic-jobs", "answer REGISTER_JOB with JOB_SUBMITTED")
    profile_reuse: bool = _on("--enable-profile-reuse", "keep profiles after the last job that used them")
    forward_unknown: bool = _on("--forward-unknown-events", "forward external events of unknown types")
    sched_config: str = _option(
        "--sched-cfg", "a text that is forwarded in the first message", "", metavar="TEXT"
    )
    sched_config_file: str | None = _option(
        "--sched-cfg-file", "a file whose text is forwarded in the first message", metavar="FILE"
    )
    # These three are told to the decision process by Batsim even where Redis is off.
    redis_hostname: str = _option("--redis-hostname", argparse.SUPPRESS, "127.0.0.1")
    redis_port: int = _option("--redis-port", argparse.SUPPRESS, 6379, type=int)
    redis_prefix: str = _option("--redis-prefix", argparse.SUPPRESS, "default")

    export: str = _option("-e --export", "prefix of the output files [out]", "out", metavar="PREFIX")
    schedule_tracing: bool = _off("--disable-schedule-tracing", "no Pajé trace")
    machine_state_tracing: bool = _off("--disable-machine-state-tracing", "no table of machine states")
    verbosity: str = _option(
        "-v --verbosity", "how much is printed [information]", "information", choices=_VERBOSITIES
    )
    quiet: bool = _on("-q --quiet", "same as -v quiet")
    simgrid_log: Sequence[str] = _many("--sg-log", "forward a logging option to SimGrid", "OPTION")
    simgrid_version: bool = _on("--simgrid-version", "show SimGrid's version and exit")

    peer_timeout: float | None = _option("--peer-timeout", _TIMEOUT_HELP, metavar="S", type=float)
    kernel: str = _option("--kernel", _KERNEL_HELP, "auto", choices=("auto", "simgrid", "queue"))
    pin: bool = _off("--no-pin", "let the process use more than one processor")
    #: Host -> role, of the master and of ``given_roles``.
    roles: dict[str, str] = field(default_factory=dict)


#: The groups of the help, each by its first option.
_GROUPS = {
    "platform": "input",
    "master": "simulation",
    "endpoint": "decision process",
    "export": "output",
    "peer_timeout": "options that Batsim does not have",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BridgeError(message, where="command line", remedy="See --help for the options.", status=USAGE)


def parse(argv: list[str], version: str) -> SimulationOptions:
    """Return the options of a command line; ``--help`` and versions are answered by SystemExit.

    Raises BridgeError: an option is unknown, malformed or not supported (exit status USAGE).
    """
    parser = _parser(version)
    for argument in argv:
        name = argument.partition("=")[0]
        if name in _REFUSED:
            raise BridgeError(_REFUSED[name], where=name, remedy="Leave the option out.", status=USAGE)
        if not argument.isascii() and any("\ud800" <= letter <= "\udfff" for letter in argument):
            parser.error(f"{argument!a} is not UTF-8")
    options = parser.parse_args(argv, SimulationOptions())
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
        description="Take the place of Batsim 4: simulate a platform for a decision process at a socket.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit status: 0 the simulation ended, 1 bad input or an illegal decision, 2 the command line\n"
        "is wrong, 3 nothing can happen any more, 4 no answer within --peer-timeout, 70 SimGrid stopped,\n"
        "130 or 143 after a signal.",
    )
    group: Any = parser
    for option in filter(lambda field: field.metadata, fields(SimulationOptions)):
        if option.name in _GROUPS:
            group = parser.add_argument_group(_GROUPS[option.name])
        reading = dict(option.metadata)
        group.add_argument(*reading.pop("words"), dest=option.name, **reading)
    parser.add_argument("--version", action="version", version=version)
    return parser


def _roles(master: str, role_options: Sequence[str]) -> dict[str, str]:
    roles = {master: "master"}
    for text in role_options:
        hosts, colon, role = text.partition(":")
        if not colon or ":" in role:
            what = f"'{text}' is not HOSTS:ROLE"
            raise BridgeError(what, where="-r", remedy="Write -r a,b:storage.", status=USAGE)
        roles.update(dict.fromkeys(hosts.split(","), role))
    return roles


def read_text(path: str | Path, remedy: str = "") -> str:
    """Return the text of a file; raises BridgeError if it cannot be read, or is not UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BridgeError(f"cannot be read: {error}", where=str(path), remedy=remedy) from None


def log_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report_error(error: BaseException) -> int:
    """Print the error that ended the simulation; return the exit status."""
    if isinstance(error, BridgeError):
        log_line(f"bridge simgrid: error: {error}")
        return error.status
    if isinstance(error, MemoryError):
        log_line("bridge simgrid: error: out of memory")
        return REFUSED
    log_line("bridge simgrid: internal error\n" + "".join(traceback.format_exception(error)))
    return CRASHED
