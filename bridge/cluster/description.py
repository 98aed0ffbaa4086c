"""What a site is, as plain data: nodes, partitions, rules and a calendar; what `cluster.toml` holds.

Times are whole seconds: limits are durations, instants count on the log's clock, whose 0 is the header's
``UnixStartTime``. Memory is MiB. A file that holds only nodes is a cluster, too: all of its nodes form one
partition with whole nodes for each job.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from bridge.cluster.limits import Account, License, Names, PreemptMode, Qos, User
from bridge.config import Constraint, Count, Natural, Unsigned

#: How nodes are chosen: by weight, by index, the smallest rest, or the most free cores.
Select = Literal["weight", "first_fit", "best_fit", "least_loaded"]
#: The partition of a cluster that states none.
WHOLE = "all"


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Equal nodes.

    Attributes:
        name: of the group, by which partitions may name it; without `nodes`, its nodes are NAME0, NAME1, …
            [default: n]
        nodes: their names, as Slurm writes lists: "n[0-63],fat1".
        count: how many nodes; needed only where `nodes` is not stated.
        cores: cores (Slurm's CPUs) of each node.  [default: 1]
        threads: CPUs of one core (ThreadsPerCore), which the protocol `slurm` gives as a whole.  [default: 1]
        memory: MiB of each node.  [default: memory is not counted]
        gpus: GPUs of each node by type, as in {a100 = 4}.
        features: what jobs may require of a node, by name.
        weight: nodes of a low weight are taken first.  [default: 1]
        state: up, down, or drain (running jobs end, none starts).  [default: up]
    """

    name: str = "n"
    nodes: str = ""
    count: Count | None = None
    cores: Count = 1
    threads: Count = 1
    memory: Count | None = None
    gpus: Mapping[str, Count] = field(default_factory=dict)
    features: Names = ()
    weight: Natural = 1
    state: Literal["up", "down", "drain"] = "up"


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A partition: nodes, which others may have too, and what jobs in it may ask for.

    Attributes:
        name: by which jobs name it.
        nodes: lists of nodes, names of groups, or ALL.  [default: ALL]
        default: jobs that name no partition go here.  [default: the first partition]
        state: up; down (jobs wait); drain or inactive (jobs are refused when submitted).  [default: up]
        exclusive: a job has whole nodes; false: jobs share nodes, each has its cores, memory and GPUs.
            [default: true]
        max_time: s; requested time of a job, at most.
        default_time: s; requested time of a job that names none.
        min_nodes: nodes of a job, at least.
        max_nodes: nodes of a job, at most.
        max_cores_per_node: cores of one job on one node, at most.
        max_memory_per_node: MiB of one job on one node, at most.
        default_memory_per_core: MiB for each core of a job that names no memory.
        default_memory_per_node: MiB on each node of a job that names no memory.  [default: the whole node's]
        tier: jobs of a higher tier come first, and may preempt.  [default: 1]
        priority_factor: a priority factor, divided by the largest of all partitions.  [default: 1]
        qos: the QOS whose limits hold for the partition's jobs, before the job's own.
        allow_qos: QOS of its jobs.  [default: any]
        deny_qos: QOS that its jobs may not have.
        allow_accounts: accounts of its jobs, with those below them.  [default: any]
        deny_accounts: accounts that its jobs may not have.
        preempt_mode: what becomes of its preempted jobs.  [default: the scheduler's]
        grace_time: s; a preempted job goes on so long.
        restartable: rules of action may kill its jobs, which run again.  [default: the log's column]
        suspendable: rules of action may lend its jobs' nodes.  [default: the log's column]
        checkpointable: rules of action may stop its jobs, progress is kept.  [default: the log's column]
    """

    name: str
    nodes: Names = ("ALL",)
    default: bool = False
    state: Literal["up", "down", "drain", "inactive"] = "up"
    exclusive: bool = True
    max_time: Count | None = None
    default_time: Count | None = None
    min_nodes: Natural = 0
    max_nodes: Natural | None = None
    max_cores_per_node: Count | None = None
    max_memory_per_node: Count | None = None
    default_memory_per_core: Count | None = None
    default_memory_per_node: Count | None = None
    tier: Natural = 1
    priority_factor: Natural = 1
    qos: str = ""
    allow_qos: Names = ()
    deny_qos: Names = ()
    allow_accounts: Names = ()
    deny_accounts: Names = ()
    preempt_mode: PreemptMode | None = None
    grace_time: Natural = 0
    restartable: bool | None = None
    suspendable: bool | None = None
    checkpointable: bool | None = None


@dataclass(frozen=True, kw_only=True)
class PriorityConfig:
    """Weights of Slurm's multifactor priority, for the order `multifactor`.

    Attributes:
        age: weight of the time since a job was eligible.
        fairshare: weight of the fair-share factor.
        job_size: weight of a job's size.
        partition: weight of the partition's priority factor.
        qos: weight of the QOS' priority.
        association: weight of the association's priority.
        tres: weights by resource, of a job's request divided by what its partition has.
        max_age: s; from here on the age counts no more.  [default: 604800]
        half_life: s; usage is worth half after it; 0: it never decays.  [default: 604800]
        calculation_period: s between two calculations.  [default: 300]
        favor_small: small jobs come first.
        relative_to_time: the size of a job is divided by its requested time.
        fair_tree: Slurm's fair tree; false: the classic formula.  [default: true]
    """

    age: Natural = 0
    fairshare: Natural = 0
    job_size: Natural = 0
    partition: Natural = 0
    qos: Natural = 0
    association: Natural = 0
    tres: Mapping[str, Unsigned] = field(default_factory=dict)
    max_age: Natural = 604_800
    half_life: Natural = 604_800
    calculation_period: Count = 300
    favor_small: bool = False
    relative_to_time: bool = False
    fair_tree: bool = True


@dataclass(frozen=True, kw_only=True)
class SchedulerParameters:
    """How the site's scheduler chooses nodes and preempts.

    Attributes:
        select: which admissible nodes a job gets: lowest weight, lowest index, the smallest rest, most free
            cores.  [default: weight]
        preempt: who may preempt: nobody, a job of a higher partition tier, or of a QOS that may; with both,
            a QOS preempts within its own tier only.  [default: none]
        preempt_mode: what becomes of preempted jobs, unless their partition or QOS says otherwise.
            [default: off]
        preempt_exempt_time: s; who runs shorter than this is not preempted.
        requeue_delay: s after which a requeued job is eligible again.
        limits: a limit of a QOS stands in for one of its kind in associations (override), or all that are
            stated hold.  [default: override]
        kill_invalid_dependency: a job whose dependency can never be met is cancelled, instead of waiting.
        parameters: Slurm's SchedulerParameters by name, for the protocol `slurm`.
        settings: what else of slurm.conf decides, by name, for the protocol `slurm`: SchedulerType,
            PriorityType, AccountingStorageEnforce, OverTimeLimit, KillWait, MessageTimeout, Epilog,
            ResvOverRun.
    """

    select: Select = "weight"
    preempt: Literal["none", "partition", "qos", "partition+qos"] = "none"
    preempt_mode: PreemptMode = "off"
    preempt_exempt_time: Natural = 0
    requeue_delay: Natural = 0
    limits: Literal["override", "all"] = "override"
    kill_invalid_dependency: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AdvanceReservation:
    """Nodes that only some jobs may use in a time of the calendar.

    Attributes:
        name: by which jobs name it.
        start: s on the log's clock.
        end: s on the log's clock.
        nodes: lists of nodes, names of groups, or ALL.
        users: whose jobs may name it; other jobs that do are refused.  [default: all]
        accounts: whose jobs may name it, and those of accounts below; where users are named, too, a job
            must be of both.  [default: all]
        announced: s on the log's clock; before it, the scheduler does not know of it.
    """

    name: str
    start: Natural
    end: Natural
    nodes: Names = ("ALL",)
    users: Names = ()
    accounts: Names = ()
    announced: Natural = 0

    def admits(self, user: str, accounts: Collection[str]) -> bool:
        """Tell whether a job of a user may name it; `accounts`: the job's, and those above it."""
        is_user = not self.users or user in self.users
        return is_user and (not self.accounts or not {*self.accounts}.isdisjoint(accounts))


@dataclass(frozen=True, kw_only=True)
class CalendarEvent:
    """A change at an instant. Events of one instant happen in the file's order.

    Attributes:
        time: s on the log's clock.
        event: nodes go down (running jobs are killed), drain (they end) or up; a partition's state, the
            number of a licence, or a limit changes; a waiting job is cancelled, or a job held or released.
        nodes: of down, drain, up: lists of nodes, names of groups, or ALL.
        partition: of partition_state, or whose limit changes.
        state: of partition_state.
        license: of licenses.
        qos: whose limit changes.
        account: whose limit changes; of a user, which one.
        user: whose limit changes.
        limit: name of the limit, as in its table: max_wall, grp_tres.cores.
        value: the new number of licences, or limit; -1: no limit.
        job: of cancel, hold, release: the id of a job of the log.
    """

    time: Natural
    event: Literal["down", "drain", "up", "partition_state", "licenses", "limit", "cancel", "hold", "release"]
    nodes: Names = ()
    partition: str = ""
    state: Literal["", "up", "down", "drain", "inactive"] = ""
    license: str = ""
    qos: str = ""
    account: str = ""
    user: str = ""
    limit: str = ""
    value: Annotated[int, Constraint(ge=-1)] = -1
    job: str = ""


@dataclass(frozen=True, kw_only=True)
class Failures:
    """Random failures of nodes, each for itself, drawn before a replay from its first submission to its last.

    Attributes:
        mean_time_between: s that a node is up between two failures, on average; 0: nodes do not fail.
        repair_time: s from a failure until the node is back.
        seed: of the random numbers; the same seed fails the same nodes at the same times.
    """

    mean_time_between: Natural = 0
    repair_time: Count = 3_600
    seed: Natural = 0


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A site: what `cluster.toml` holds.

    Attributes:
        name: of the site.
        nodes: groups of equal nodes; a node's index is its place after all lists are expanded.
        partitions: in the order of the file.  [default: one, of all nodes, exclusive]
        qos: qualities of service.
        accounts: the tree of accounts below root.
        users: users in accounts.
        licenses: what jobs hold besides nodes.
        priority: weights of the order `multifactor`.
        scheduler: how nodes are chosen, and preemption.
        reservations: nodes that only some jobs may use in a time.
        calendar: what changes at an instant.
        failures: of nodes, at random.
    """

    name: str = "cluster"
    nodes: tuple[NodeGroup, ...]
    partitions: tuple[Partition, ...] = ()
    qos: tuple[Qos, ...] = ()
    accounts: tuple[Account, ...] = ()
    users: tuple[User, ...] = ()
    licenses: tuple[License, ...] = ()
    priority: PriorityConfig = field(default_factory=PriorityConfig)
    scheduler: SchedulerParameters = field(default_factory=SchedulerParameters)
    reservations: tuple[AdvanceReservation, ...] = ()
    calendar: tuple[CalendarEvent, ...] = ()
    failures: Failures = field(default_factory=Failures)
