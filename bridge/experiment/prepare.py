"""From an experiment to its jobs: one selection and one belief for both worlds, and the detailed files."""

import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.cluster.source import cluster_file
from bridge.experiment.job_profiles import builder
from bridge.experiment.program import BATSIM5, PLATFORM, WORKLOAD, with_dynamic_jobs
from bridge.experiment.site_jobs import on_nodes
from bridge.experiment.spec import Detailed, Experiment, platform_file
from bridge.judge.compare import trained_on_them
from bridge.policy_name import is_own
from bridge.scheduler.actions import COSTS
from bridge.scheduler.session import JobEstimates
from bridge.scheduler.state import SECOND
from bridge.workload.catalogue import read_log
from bridge.workload.derive import restrict_to
from bridge.workload.formats import FORMATS
from bridge.workload.table import UNSCHEDULED, Workload
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.scheduler_config import POLICY, SchedulerConfig

if TYPE_CHECKING:
    from bridge.learn.checkpoint import LogAgent
    from bridge.platform.model import Platform
    from bridge.workload.select import Jobs
    from bridge.worlds.batsim.dispatcher import DispatcherConfig as Deciding
    from bridge.worlds.batsim.estimates import EstimateLookup, Numbering, WorkloadFacts
    from bridge.worlds.batsim.placement import PlacementFactory
    from bridge.worlds.batsim.process import DecisionProcess


@dataclass(frozen=True)
class PreparedExperiment:
    """An experiment whose files are read; with a platform, `bridge.experiment.detailed.Simulation`.

    Attributes:
        setup: its setup with seed and machine size filled in.
        records: the log, with the platform's capacities; without a platform nobody needs it.
        prepared: selected jobs, beliefs and policy: the same for both worlds.
        trained_on: of these jobs, how many the agent may have learnt on.
    """

    experiment: Experiment
    setup: SchedulerConfig
    records: Workload | None
    prepared: Scenario
    platform: "Platform | None"
    agent: "LogAgent | None" = None
    trained_on: int = 0

    @property
    def warnings(self) -> list[str]:
        if self.agent is None or not self.trained_on:
            return self.prepared.warnings
        return [*self.prepared.warnings, trained_on_them(self.agent.name, self.trained_on, self.n_jobs)]

    @property
    def on(self) -> str:
        return self.experiment.on

    @property
    def detailed(self) -> Detailed:
        """The platform program's inputs, with what a policy or a cluster that kills jobs needs."""
        detailed, cluster = self.experiment.detailed, self.prepared.cluster
        repeats = cluster is not None and cluster.calendar is not None and cluster.calendar.repeats_jobs
        if not (self.setup.action or repeats) or self.on in ("fast", BATSIM5):  # which is asked by the hello
            return detailed
        return with_dynamic_jobs(detailed)

    @property
    def hosts(self) -> int:
        assert self.platform is not None
        return len(self.platform.compute)

    @property
    def nodes(self) -> int:
        return self.setup.nodes or self.hosts

    @property
    def shares_nodes(self) -> bool:
        return self.prepared.cluster is not None and self.prepared.cluster.is_shared

    @property
    def n_jobs(self) -> int:
        return len(self.prepared.jobs)

    def process(self) -> "DecisionProcess":
        """Return the decision process that schedules this task's jobs as the fast world does."""
        from bridge.experiment.power_options import build_power_plan
        from bridge.worlds.batsim.dispatcher import DispatcherConfig as Deciding
        from bridge.worlds.batsim.process import DecisionProcess

        compiled, jobs, detailed = self.prepared.compiled, self.prepared.jobs, self.detailed
        estimator, facts = beliefs(self.prepared)
        setup = Deciding(
            policy=compiled.policy,
            protocol=compiled.protocol,
            placement=placement(detailed.placement, self.platform),
            placement_name=detailed.placement,
            resources=dict(zip(jobs.resources[1:], jobs.capacity[1:].tolist(), strict=True)),
            estimator=estimator,
            facts=facts,
            power=build_power_plan(self.platform, detailed, jobs.idle_power) if self.platform else None,
        )
        setup = on_nodes(with_agent(setup, self.agent), self.prepared)
        return DecisionProcess(setup, energy=detailed.powered)

    def write_inputs(self, folder: Path) -> None:
        """Write the platform and the workload of the detailed world to a folder, if it can bear it."""
        from bridge.experiment.staging import add_staging

        assert self.platform is not None
        assert self.records is not None
        with files.atomic_write(folder / PLATFORM) as out:
            out.write(Path(self.platform.path).read_bytes())
        kept, detailed = restrict_to(self.records, self.prepared.jobs), self.detailed
        profiles = builder(detailed.kind, self.platform)
        if detailed.staging is not None:
            profiles = add_staging(profiles, self.platform, **detailed.staging)
        write = FORMATS["batsim5" if self.on == BATSIM5 else "batsim"].load("write")
        write(kept, folder / WORKLOAD, profiles, detailed.limit)

    @property
    def _cluster(self) -> str | None:
        """Its cluster, for a command that runs in another folder."""
        name = self.setup.cluster
        return None if name is None else str(cluster_file(name).absolute())

    def repeat_command(self, socket: str) -> tuple[str, ...]:
        """Return the command line that decides once more where the inputs are."""
        detailed = self.experiment.detailed
        agent = self.experiment.agent
        here = dataclasses.replace(
            self.experiment,
            workload=WORKLOAD,
            agent=agent if is_own(agent) else agent and str(Path(agent).absolute()),
            setup=dataclasses.replace(self.setup, first=None, rebase=None, cluster=self._cluster),
            detailed=dataclasses.replace(detailed, platform=PLATFORM, image="", program=""),
        )
        where = ("--no-start", "--socket", socket, "--exchange", "again", "--out", "again/run")
        return (*shlex.split(here.command()), *where)


def prepare_experiment(experiment: Experiment) -> PreparedExperiment:
    """Read an experiment's log, and platform (the machine in both worlds) if it names one; select its jobs.

    Raises BridgeError: see the readers; or the platform lacks hosts, or burst buffer for the workload.
    """
    experiment.check()
    simulated = bool(experiment.detailed.platform)
    # an agent knows its log by all that is in it, and a cluster's jobs have their codes as names
    whole = simulated or bool(experiment.agent) or experiment.setup.cluster is not None
    left = set() if whole else UNSCHEDULED - ({"think_time"} if experiment.dependencies else set())
    logged = records = read_log(experiment.workload, experiment.malformed, leave=left)
    setup, platform = experiment.seeded(), None
    if simulated:
        from bridge.experiment.power_options import book_power

        platform = read_valid_platform(
            platform_file(experiment.detailed.platform), energy=experiment.detailed.powered
        )
        hosts = len(platform.compute)
        if (setup.nodes or 0) > hosts:
            what = f"the platform has {hosts:,} compute hosts only"
            remedy = "Name a larger platform, or fewer nodes."
            raise BridgeError(what, where=f"--nodes {setup.nodes}", remedy=remedy)
        nodes = setup.nodes or hosts
        if setup.cluster is None:  # else it says how many nodes there are
            setup = dataclasses.replace(setup, nodes=nodes)
        records = _with_capacities(book_power(records, platform, experiment.detailed, nodes), platform)
    agent = policy = None
    if experiment.agent:
        agent, setup = _with_agent(experiment, setup)
        policy = agent.recipe.policy(setup)
    on_pool = setup.recorded and setup.protocol == "standard" and setup.cluster is None
    follow = experiment.dependencies or on_pool  # on a cluster the column `dependency` says it
    jobs = setup.select(records, dependencies=follow)
    kept = records if simulated else None
    n = 0 if agent is None else _count_trained_on(agent, experiment.workload, logged, jobs)
    del records, logged
    scenario = dataclasses.replace(setup.build_scenario(jobs, policy), seed=experiment.seed)
    if simulated:
        scenario.refuse_beliefs("simulated platforms")
    if platform is not None and scenario.cluster is not None:  # in both worlds, before anything is played
        from bridge.worlds.batsim.site import require_hosts

        names = scenario.cluster.classes.table.names
        require_hosts(names, {host.name for host in platform.compute}, experiment.detailed.platform)
    return PreparedExperiment(experiment, setup, kept, scenario, platform, agent, n)


def _count_trained_on(agent: "LogAgent", name: str, logged: Workload, jobs: "Jobs") -> int:
    from bridge.learn.agent import trained_on

    return int(trained_on(agent, name, logged, jobs).sum())


def _with_agent(experiment: Experiment, setup: SchedulerConfig) -> "tuple[LogAgent, SchedulerConfig]":
    """Return the agent, and the setup with its order, backfilling and estimator, unless that has its own."""
    from bridge.learn.agent import require_protocol
    from bridge.learn.resolve import agent_of

    name = experiment.agent
    agent = agent_of(name)
    require_protocol(agent, setup.protocol, experiment.cross_protocol)
    usual, its = SchedulerConfig(protocol=setup.protocol).with_usual_policy(()), agent.recipe.setup
    for part in POLICY:
        if getattr(setup, part) not in (getattr(usual, part), getattr(its, part)):
            what = f"is decided by the agent {name}: {getattr(its, part) or 'none'}"
            raise BridgeError(what, where=f"{part} {getattr(setup, part)!r}", remedy="Leave it out.")
    estimator = setup.estimator or its.estimator
    return agent, dataclasses.replace(setup.with_policy_of(its), estimator=estimator)


def read_valid_platform(path: Path, *, energy: bool = False) -> "Platform":
    """Read a platform that has no errors; `energy`: none for simulations of energy either."""
    from bridge.platform.check import require_valid
    from bridge.platform.read import read_platform

    require_valid(path, energy=energy)
    return read_platform(path)


def _with_capacities(records: Workload, platform: "Platform") -> Workload:
    """Return the log with the platform's amounts of what its jobs ask for and it states no capacity of."""
    from bridge.experiment.staging import require_room
    from bridge.platform.capacities import capacities

    require_room(records, platform)
    demanded = {name for name in records.jobs.columns if name not in records.capacity and name != "nodes"}
    amounts = capacities(platform, power="power" in demanded)
    more = {name: amount for name, amount in amounts.items() if name in demanded}
    return dataclasses.replace(records, capacity={**records.capacity, **more}) if more else records


def beliefs(prepared: Scenario) -> tuple["EstimateLookup", "WorkloadFacts"]:
    """Return what the fast world believes of its jobs, for a decision process of the same jobs."""
    from bridge.worlds.batsim.estimates import EstimateLookup, WorkloadFacts

    jobs, believed = prepared.jobs, prepared.estimate
    three = (believed.order.tolist(), believed.waiting.tolist(), believed.running.tolist())
    numbering = numbering_of(jobs)
    lengths = dict(zip(jobs.number.tolist(), map(JobEstimates, *three), strict=True))
    users = dict(zip(map(str, jobs.user.tolist()), prepared.users.tolist(), strict=True))
    queues = dict(zip(map(str, jobs.queue.tolist()), prepared.partition.tolist(), strict=True))
    longest = float(believed.order.max()) / SECOND
    permits: dict[int, int] = {}
    if prepared.terms.has_costs:
        what = "jobs have costs of their own for a rule of action, which the detailed world does not know yet"
        where = ", ".join(f"{name}_cost" for name in COSTS)
        raise BridgeError(
            what, where=where, remedy="Leave these columns and settings out, or use bridge replay."
        )
    if prepared.permits is not None:
        permits = dict(zip(jobs.number.tolist(), prepared.permits.tolist(), strict=True))
    facts = WorkloadFacts(longest, users, prepared.share.tolist(), queues, numbering, permits)
    return EstimateLookup(lengths, numbering), facts


def numbering_of(jobs: "Jobs") -> "Numbering":
    """Return what schedulers call the jobs, by their ids on the wire."""
    from bridge.worlds.batsim.estimates import Numbering

    texts = jobs.id is not jobs.number
    return Numbering(dict(zip(jobs.id.tolist(), jobs.number.tolist(), strict=True)) if texts else {})


def with_agent(setup: "Deciding", agent: "LogAgent | None") -> "Deciding":
    """Return the setup of a decision process with what it needs of an agent, if one decides."""
    if agent is None:
        return setup
    from bridge.learn.agent import AgentDecider, window_of

    return dataclasses.replace(setup, decider=AgentDecider(agent), window=window_of(agent))


def placement(name: str, platform: "Platform | None") -> "PlacementFactory":
    """Return a placement rule; best-fit reads the groups of a platform, topology its graph."""
    from bridge.worlds.batsim.placement import rule

    if platform is None or name not in ("best-fit", "topology"):
        return rule(name)
    from bridge.platform.graph import locality, platform_graph

    if name == "best-fit":
        return rule(name, groups=locality(platform))
    return rule(name, graph=platform_graph(platform, management=False))
