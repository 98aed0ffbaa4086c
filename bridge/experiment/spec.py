"""An experiment: workload, policy, world and platform in one typed object; from TOML files and options."""

import dataclasses
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bridge.base.cache import bundled_files
from bridge.base.errors import BridgeError
from bridge.base.files import is_there
from bridge.base.suggestions import did_you_mean_file
from bridge.config import (
    Constraint,
    Count,
    Natural,
    Positive,
    Share,
    Unsigned,
    command_line,
    from_tables,
    read_toml,
    to_arguments,
    to_tables,
    verify,
)
from bridge.config.fields import fields_of
from bridge.policy_name import PolicyName
from bridge.workload.rules import Walltime, walltime
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    from bridge.experiment.job_profiles import ProfileKind

WORLDS = ("fast", "simgrid", "batsim", "batsim5")
#: The worlds that simulate a platform.
DETAILED = WORLDS[1:]
PLACEMENTS = ("first-fit", "contiguous", "best-fit", "topology")
#: The fields that only jobs which stage have.
STAGING = ("stage_in", "stage_out", "checkpoints", "drain")
#: What the fast world, too, takes of the detailed one: the machine, and the power that jobs book.
IN_BOTH = ("platform", "power", "power_budget")
#: What is started, which only a command line says.
PROGRAM = ("program", "image", "options")
_PROGRAM = "Platform program"


@dataclass(frozen=True)
class Detailed:
    """What only the detailed world asks for; the defaults of staging are assumptions, not measurements.

    Attributes:
        platform: the detailed machine: a file, or one that comes with bridge.
        profile: what jobs do: delay, compute, network:F, io[:F]; see the page "Experiments".
        fidelity: burst buffers. alloc_only: requests are only booked. io_aware: jobs also copy data.
        stage_in: with io_aware: share of its request that a job copies in before its work.
        stage_out: with io_aware: share of its request that a job copies out after its work.
        checkpoints: with io_aware: number of checkpoints of a job; they cut its work into equal parts.
        drain: with io_aware: share of the request that each checkpoint writes to the burst buffer and then to
            the file system.
        walltime: walltimes of jobs: keep (the requests), none, or factor:F.  [default: keep; none for
            network, io and io_aware]
        placement: which hosts a job gets.
        energy: simulate power and energy. The options --power, --shutdown-after and --dvfs switch this on,
            too.
        power: power of jobs. per-job: the hosts of a job draw the power that it requests, within the
            platform's budget.
        power_budget: power budget for all compute hosts together.  [default: the platform's]
        shutdown_after: switch off hosts that are idle for this time; 0: never.  [default: 0]
        dvfs: a job runs slowly if no other job waits at its start, and at most this share of the hosts is
            busy.
        program: the platform program.  [default: the usual one of the world]
        image: start Batsim from this container image, with docker.
        options: a further option of the platform program; repeatable.
        startup_timeout: wall time to wait for the first message; 0: no limit.
        idle_timeout: wall time to wait for each later message; 0: no limit.
    """

    platform: Annotated[str, Constraint(metavar="XML")] = ""
    profile: Annotated[str, Constraint(metavar="KIND")] = "delay"
    fidelity: Literal["alloc_only", "io_aware"] = "alloc_only"
    stage_in: Annotated[Share, Constraint(metavar="F")] = 0.25
    stage_out: Annotated[Share, Constraint(metavar="F")] = 0.25
    checkpoints: Annotated[Natural, Constraint(metavar="N")] = 0
    drain: Annotated[Share, Constraint(metavar="F")] = 0.25
    walltime: Annotated[str, Constraint(metavar="POLICY")] = ""
    placement: Annotated[str, Constraint(choices=PLACEMENTS)] = "first-fit"
    energy: bool = False
    power: Literal["", "per-job"] = ""
    power_budget: Annotated[Unsigned, Constraint(metavar="W")] = 0.0
    shutdown_after: Annotated[Unsigned, Constraint(metavar="S")] = 0.0
    dvfs: Annotated[Share, Constraint(metavar="SHARE")] = 0.0
    program: Annotated[str, Constraint(metavar="COMMAND", group=_PROGRAM)] = ""
    image: Annotated[str, Constraint(metavar="NAME", group=_PROGRAM)] = ""
    options: Annotated[tuple[str, ...], Constraint(metavar="TEXT", option="--option", group=_PROGRAM)] = ()
    startup_timeout: Annotated[Unsigned, Constraint(metavar="S", group=_PROGRAM)] = 300.0
    idle_timeout: Annotated[Unsigned, Constraint(metavar="S", group=_PROGRAM)] = 3600.0

    @property
    def kind(self) -> "ProfileKind":
        from bridge.experiment.job_profiles import parse_kind

        return parse_kind(self.profile)

    @property
    def staging(self) -> dict[str, Any] | None:
        """How much of its burst-buffer request a job moves, by `STAGING`; None if it is booked only."""
        options = {name: getattr(self, name) for name in STAGING}
        where = f"fidelity {self.fidelity}"
        if self.fidelity == "io_aware":
            if self.stage_in or self.stage_out or (self.checkpoints and self.drain):
                return options
            remedy = "Give stage_in, stage_out or checkpoints, or use the fidelity alloc_only."
            raise BridgeError("jobs move nothing: all shares are 0", where=where, remedy=remedy)
        if any(getattr(Detailed, name) != value for name, value in options.items()):
            what = f"{', '.join(STAGING[:-1])} and {STAGING[-1]} need jobs that stage"
            raise BridgeError(what, where=where, remedy="Add the fidelity io_aware, or leave them out.")
        return None

    @property
    def limit(self) -> Walltime:
        from bridge.experiment.job_profiles import default_walltime

        usual = "none" if self.dvfs else default_walltime(self.kind, staged=self.staging is not None)
        return walltime(self.walltime or usual)

    @property
    def switches(self) -> bool:
        return bool(self.power or self.shutdown_after or self.dvfs)

    @property
    def powered(self) -> bool:
        return self.energy or self.switches


@dataclass(frozen=True)
class Experiment:
    """Everything that decides a run, but for the versions of the programs.

    Attributes:
        workload: a file, a bundled workload or a fetched log.
        on: the world: fast, simgrid (the embedded platform model), batsim (4) or batsim5.
        seed: random seed of the estimator noisy(P), and of the times at which Slurm's schedulers first run;
            nothing else is random.
        threshold: for shorter run times, the bounded slowdown is computed with this value, s.
        malformed: what happens with lines of the log that are not records.
        dependencies: submit a job when its preceding job has ended and its think time (the logged pause
            between the two) is over.
        agent: a trained agent that decides. The agent also sets the order and the backfilling.
        cross_protocol: let an agent decide under another protocol than the one it was trained under.
        setup: policy, rules and selection of jobs.
        detailed: the rest.
    """

    workload: Annotated[str, Constraint(metavar="LOG")]
    on: Annotated[str, Constraint(choices=WORLDS)] = "fast"
    seed: Natural = 0
    threshold: Annotated[Positive, Constraint(metavar="SECONDS")] = 10.0
    malformed: Literal["refuse", "drop"] = "refuse"
    dependencies: bool = False
    agent: Annotated[str, Constraint(metavar="CHECKPOINT")] = ""
    cross_protocol: Annotated[bool, Constraint(option="--cross-protocol")] = False
    setup: SchedulerConfig = field(default_factory=SchedulerConfig)
    detailed: Detailed = field(default_factory=Detailed)

    def check(self) -> None:
        """Refuse what can be seen to be wrong without reading any file; raises BridgeError."""
        verify(self, "experiment")
        self.setup.rules()
        _ = self.detailed.kind, self.detailed.staging, self.detailed.limit
        detailed, simulated = self.detailed, self.on != "fast"
        power, image = detailed.power, f"image {detailed.image!r}"
        standard, protocol = self.setup.protocol == "standard", f"protocol {self.setup.protocol!r}"
        for wrong, what, where, remedy in (
            (power and detailed.dvfs, "a host's power states are for power per job or for DVFS, not for both",
             f"power {power!r}, dvfs {detailed.dvfs}", "Leave one of them out."),
            (power and not detailed.platform, "needs the platform whose hosts say what a job can draw",
             f"power {power!r}", "Give --platform."),
            (power and not standard, "only the standard protocol has power per job, like the detailed world",
             protocol, "Leave out power, or use the standard protocol."),
            (power and self.setup.cluster is not None, "power states do not know the nodes of a cluster yet",
             f"--cluster {self.setup.cluster}", "Leave out --cluster, or power."),
            (simulated and not detailed.platform, "the detailed world needs a platform",
             f"--on {self.on}", "Give --platform FILE.xml; `bridge platform new` makes one."),
            (self.dependencies and (simulated or bool(self.agent)), "jobs follow others in the fast world "
             "only, under rules that have not learnt", "--dependencies", "Leave it out."),
            (simulated and not standard, "the detailed world has the standard protocol only: one pass per "
             "instant", protocol, "Use --on fast for the other protocols."),
            (simulated and self.setup.recorded, "a platform decides when jobs run, and the record says it",
             f"--on {self.on}, policy 'recorded'", "Use --on fast, or name a rule such as sjf+easy."),
            (simulated and detailed.image and (self.on == "simgrid" or detailed.program),
             "an image is one way to start Batsim, a program another", image,
             "Give --image with --on batsim and without --program."),
        ):  # fmt: skip
            if wrong:
                raise BridgeError(what, where=where, remedy=remedy)

    def seeded(self) -> SchedulerConfig:
        """Return the setup with the experiment's seed in ``noisy(P)``."""
        name = self.setup.estimator.replace(" ", "")
        if name.startswith("noisy(") and "," not in name and self.seed:
            return dataclasses.replace(self.setup, estimator=f"{name[:-1]}, {self.seed})")
        return self.setup

    def as_dict(self) -> dict[str, Any]:
        """Return the experiment as TOML has it: only what is not the default."""
        return {name: value for name, value in to_tables(self, Experiment("")).items() if value != {}}

    def command(self) -> str:
        """Return the `bridge run` command line of this experiment."""
        detailed = self.detailed
        if self.on == "fast":
            detailed = Detailed(**{name: getattr(detailed, name) for name in IN_BOTH})
        experiment, policy = dataclasses.replace(self, detailed=detailed).without_action(SchedulerConfig())
        return command_line("run", *to_arguments(experiment, Experiment("")), *policy)

    def without_action(self, usual: SchedulerConfig) -> "tuple[Experiment, list[str]]":
        """Return it with the usual policy, and the option that names its own; as it is, without an action.

        A rule of action has no option: it is a part of the policy's name.
        """
        setup = self.setup
        if not setup.action:
            return self, []
        name = f"{setup.order}+{setup.backfill}+{setup.action}"
        setup = dataclasses.replace(setup, order=usual.order, backfill=usual.backfill, action="")
        return dataclasses.replace(self, setup=setup), ["--policy", name]


@dataclass(frozen=True)
class Sampling:
    """Which sequences of consecutive jobs policies are judged on, and by what.

    Attributes:
        part: only sequences after this part of the log.  [default: 0; if an agent was trained on LOG: the end
            of its training part]
        sequences: number of sequences.  [default: the preset's own; 200 for an agent's folder]
        length: number of jobs in each sequence.  [default: the preset's own; 256 for an agent's folder]
        seed: random seed of the sampling.  [default: the preset's own]
        metric: the metric that is compared. NAME.max is the maximum over the jobs of a sequence; most others
            are means.
    """

    part: Annotated[float | None, Constraint(ge=0, lt=1, option="--from", metavar="FRACTION")] = None
    sequences: Count | None = None
    length: Count | None = None
    seed: Natural | None = None
    metric: Annotated[str, Constraint(choices=lambda: METRICS)] = "bsld"


#: What `bridge.judge.sequences.compute_sequence_metric` knows, without resources' utilisations.
METRICS = (
    *("bsld", "slowdown", "wait", "turnaround", "bsld.max", "wait.max"),
    *("wait.small", "wait.large", "utilisation"),
)


def _tables(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as a document: each in the table that has a field of its name."""
    document: dict[str, Any] = {}
    inner: dict[str, Any] = {"setup": SchedulerConfig, "detailed": Detailed}
    for name, value in options.items():
        table = next((t for t, of in inner.items() if name in fields_of(of)), None)
        (document if table is None else document.setdefault(table, {}))[name] = value
    return document


def parse(document: Mapping[str, Any], where: str, options: Mapping[str, Any] | None = None) -> Experiment:
    """Return the experiment of a TOML document, of options (fields of any table; they win), or of both.

    Raises BridgeError: an unknown or missing field, or one of another type; `where` names the file. Or an
    option that its world would ignore; what a file says of the detailed world waits there for ``--on``.
    """
    experiment = from_tables(Experiment, {"workload": "", **document}, where)
    if options:
        experiment = from_tables(Experiment, _tables(options), "the options", experiment)
    setup, stated = document.get("setup"), {*(options or {})}
    stated |= {*setup} if isinstance(setup, Mapping) else set()
    experiment = dataclasses.replace(experiment, setup=experiment.setup.with_usual_policy(stated))
    detailed = {*fields_of(Detailed)} - {*IN_BOTH}
    detailed_options = {name: value for name, value in (options or {}).items() if name in detailed}
    ignored = sorted(name for name, value in detailed_options.items() if value != getattr(Detailed, name))
    if ignored and experiment.on == "fast":
        what = f"the fast world has no {', '.join(ignored)}"
        raise BridgeError(what, where="the options", remedy="Add --on simgrid (or batsim), or leave it out.")
    if (options or {}).get("fidelity") == "alloc_only":  # what the file says of staging has no meaning then
        usual = {name: getattr(Detailed, name) for name in STAGING if name not in (options or {})}
        experiment = dataclasses.replace(
            experiment, detailed=dataclasses.replace(experiment.detailed, **usual)
        )
    if not experiment.workload:
        what = "no workload is named"
        raise BridgeError(what, where=where, remedy='Add workload = "…", a file or a name, or --workload.')
    return experiment


def policy_fields(policy: PolicyName) -> dict[str, str]:
    """Return the fields of an experiment that the name of a policy stands for, which `run` must have."""
    if policy.only_pool:
        what = "is a policy of the time-stepped pool"
        remedy = "Write an order and a backfilling rule, such as sjf+easy, or an agent's folder."
        raise BridgeError(what, where=f"policy {policy.text!r}", remedy=remedy)
    if policy.plugin:
        return {"agent": policy.plugin}
    if policy.agent:
        return {"agent": policy.agent}
    optional = {"backfill": policy.backfill, "action": policy.action}
    return {"order": policy.order, **{name: value for name, value in optional.items() if value}}


def read_document(path: Path) -> dict[str, Any]:
    """Return a TOML file's experiment; the files that it names are found from the file's own folder."""
    document = read_toml(path)
    named = (
        *((document, "workload"), (document, "agent")),
        *((document.get("setup"), "cluster"), (document.get("detailed"), "platform")),
    )
    for table, name in named:
        if isinstance(table, dict) and isinstance(table.get(name), str):
            beside = path.parent / table[name]
            if table[name] and is_there(beside):
                table[name] = str(beside)
    return document


def refuse_programs(experiment: Experiment, typed: Mapping[str, Any], where: str) -> None:
    """Refuse an experiment whose file names what is started, and with which options: only a user does that.

    `typed`: the options of the command line. Raises BridgeError with what to type.
    """
    detailed = experiment.detailed
    for name in PROGRAM:
        value = getattr(detailed, name)
        if value and experiment.on != "fast" and name not in typed:
            own = dataclasses.replace(Detailed(), **{name: value})
            what = f"names a program to start, or its options: {name} = {value!r:.200}"
            command = shlex.join(to_arguments(own, Detailed()))
            remedy = f"A file starts nothing. If you trust it, type it: {command}"
            raise BridgeError(what, where=where, remedy=remedy)


def platform_file(name: str) -> Path:
    """Return the file of a platform: a path, or the name of one that comes with bridge."""
    path = Path(name)
    if is_there(path, Path.is_file):
        return path
    shipped_files = bundled_files("platforms", ".xml")
    if name in shipped_files:
        return shipped_files[name]
    what = "is neither a platform file nor the name of one that comes with bridge"
    remedy = f"There are: {', '.join(shipped_files)}." if shipped_files else "Check the path."
    hint = did_you_mean_file(path, shipped_files)
    raise BridgeError(what, where=f"platform {name!r}", remedy=hint + remedy)
