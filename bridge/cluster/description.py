"""What a site is, as plain data: nodes, partitions, rules and a calendar; what `cluster.toml` holds.

Times are whole seconds: limits are durations, instants count on the log's clock, whose 0 is the header's
``UnixStartTime``. Memory is MiB. A file that holds only nodes is a cluster, too: all of its nodes form one
partition with whole nodes for each job.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from bridge.cluster.limits import Account, License, Names, PreemptMode, Qos, User
from bridge.config import Constraint, Count, Natural, Share, Unsigned

#: How nodes are chosen: by weight, by index, the smallest rest, or the most free cores.
Select = Literal["weight", "first_fit", "best_fit", "least_loaded"]
#: The partition of a cluster that states none.
WHOLE = "all"


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """A group of equal nodes.

    Attributes:
        name: the name of the group; partitions may use it. Without `nodes`, the nodes are NAME0, NAME1, …
            [default: n]
        nodes: the names of the nodes, as Slurm writes lists: "n[0-63],fat1".
        count: the number of nodes; needed only if `nodes` is not stated.
        cores: cores (Slurm's CPUs) of each node.  [default: 1]
        threads: CPUs of one core (ThreadsPerCore). The protocol `slurm` gives a core only as a whole.
            [default: 1]
        memory: memory of each node, in MiB.  [default: memory is not counted]
        gpus: GPUs of each node by type, as in {a100 = 4}.
        features: the features of the nodes; jobs may require a feature by its name.
        weight: nodes with a low weight are taken first.  [default: 1]
        state: up, down, or drain (running jobs end, and no job starts).  [default: up]
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
    """A partition: nodes, and what its jobs may request. Other partitions may have the same nodes.

    Attributes:
        name: the name that jobs use.
        nodes: lists of nodes, names of groups, or ALL.  [default: ALL]
        default: jobs that name no partition go to this one.  [default: the first partition]
        state: up; down (jobs wait); drain or inactive (jobs are refused when they are submitted).  [default:
            up]
        exclusive: true: a job has whole nodes. false: jobs share nodes, and each has its own cores, memory
            and GPUs. [default: true]
        max_time: the largest requested time of a job, in seconds.
        default_time: the requested time of a job that names none, in seconds.
        min_nodes: the smallest number of nodes of a job.
        max_nodes: the largest number of nodes of a job.
        max_cores_per_node: the largest number of cores of one job on one node.
        max_memory_per_node: the largest memory of one job on one node, in MiB.
        default_memory_per_core: memory for each core of a job that names no memory, in MiB.
        default_memory_per_node: memory on each node of a job that names no memory, in MiB.  [default: all
            memory of the node]
        tier: jobs of a higher tier come first, and may preempt.  [default: 1]
        priority_factor: a factor of the priority. It is divided by the largest factor of all partitions.
            [default: 1]
        qos: the QOS whose limits apply to the partition's jobs. They come before the limits of the job's own
            QOS.
        allow_qos: the QOS that jobs may have.  [default: any]
        deny_qos: the QOS that jobs may not have.
        allow_accounts: the accounts that jobs may have, and all accounts below these.  [default: any]
        deny_accounts: the accounts that jobs may not have.
        preempt_mode: what happens to preempted jobs.  [default: the scheduler's]
        grace_time: a preempted job continues for so long, in seconds.
        restartable: rules of action may kill the partition's jobs, which run again.  [default: the log's
            column]
        suspendable: rules of action may suspend the partition's jobs, and use their nodes.  [default: the
            log's column]
        checkpointable: rules of action may stop the partition's jobs, whose progress is kept.  [default: the
            log's column]
        suspended_memory: the share of its memory that a suspended job keeps, from 0 to 1.  [default: 1]
        restart_cost: the next run of a killed job begins with so many seconds of overhead.  [default:
            the rule's]
        host_cost: a suspended job works again so many seconds after its guest has gone.  [default:
            the rule's]
        resume_cost: the next run of a job that was stopped at a checkpoint begins with so many seconds of
            overhead.  [default: the rule's]
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
    suspended_memory: Share | None = None
    restart_cost: Natural | None = None
    host_cost: Count | None = None
    resume_cost: Natural | None = None


@dataclass(frozen=True, kw_only=True)
class PriorityConfig:
    """Weights of Slurm's multifactor priority, for the order `multifactor`.

    Attributes:
        age: weight of the time for which a job has been eligible.
        fairshare: weight of the fair-share factor.
        job_size: weight of a job's size.
        partition: weight of the partition's priority factor.
        qos: weight of the QOS' priority.
        association: weight of the association's priority.
        tres: weights by resource. The factor is the job's request divided by what its partition has.
        max_age: the age stops to grow after so many seconds.  [default: 604800]
        half_life: after so many seconds, usage counts only half; 0: it never decays.  [default: 604800]
        calculation_period: seconds between two calculations of the priorities.  [default: 300]
        favor_small: small jobs come first.
        relative_to_time: the job's size is divided by its requested time.
        fair_tree: true: Slurm's fair tree. false: the classic formula.  [default: true]
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

    @property
    def weighs(self) -> bool:
        """Tell whether any weight is above 0."""
        names = ("age", "fairshare", "job_size", "partition", "qos", "association")
        return any(getattr(self, name) > 0 for name in names) or any(self.tres.values())


@dataclass(frozen=True, kw_only=True)
class SchedulerParameters:
    """How the site's scheduler chooses nodes and preempts.

    Attributes:
        select: which nodes a job gets, of those that it may use: those with the lowest weight, with the
            lowest index, with the smallest rest, or with the most free cores.  [default: weight]
        preempt: who may preempt: nobody, a job of a partition with a higher tier, or a job of a QOS that may.
            With both, a QOS preempts only within its own tier.  [default: none]
        preempt_mode: what happens to preempted jobs, unless their partition or QOS says something else.
            [default: off]
        preempt_exempt_time: a job that has run for less than so many seconds is not preempted.
        requeue_delay: seconds after which a requeued job is eligible again.
        limits: override: a limit of a QOS replaces the same limit of an association. all: all limits apply.
            [default: override]
        kill_invalid_dependency: a job whose dependency can never be met is cancelled, and does not wait.
        parameters: Slurm's SchedulerParameters by name, for the protocol `slurm`.
        settings: other settings of slurm.conf that matter for decisions, by name, for the protocol `slurm`:
            SchedulerType, PriorityType, AccountingStorageEnforce, OverTimeLimit, KillWait, MessageTimeout,
            Epilog, ResvOverRun.
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
    """Nodes that only some jobs may use, from one time to another.

    Attributes:
        name: the name that jobs use.
        start: begin, in seconds on the log's clock.
        end: end, in seconds on the log's clock.
        nodes: lists of nodes, names of groups, or ALL.
        users: users whose jobs may name the reservation. Jobs of other users that name it are refused.
            [default: all]
        accounts: accounts whose jobs may name the reservation, and all accounts below these. If users are
            named, too, a job must belong to both.  [default: all]
        announced: before this time (seconds on the log's clock), the scheduler does not know of the
            reservation.
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
    """A change at an instant. Events of one instant happen in the order of the file.

    Attributes:
        time: the instant, in seconds on the log's clock.
        event: what happens. down: running jobs on these nodes are killed. drain: running jobs end, and no job
            starts. up: the nodes are back. partition_state, licenses, limit: a value changes. cancel, hold,
            release: this happens to a waiting job.
        nodes: for down, drain and up: lists of nodes, names of groups, or ALL.
        partition: for partition_state: the partition. For limit: the partition whose limit changes.
        state: for partition_state: the new state.
        license: for licenses: the name of the licence.
        qos: for limit: the QOS whose limit changes.
        account: for limit: the account whose limit changes, or the account of the user.
        user: for limit: the user whose limit changes.
        limit: for limit: the name of the limit, as in its table: max_wall, grp_tres.cores.
        value: the new number of licences, or the new limit; -1: no limit.
        job: for cancel, hold and release: the id of a job of the log.
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
    """Random failures of single nodes, drawn before a replay, from its first submission to its last.

    Attributes:
        mean_time_between: seconds that a node is up between two failures, on average; 0: nodes do not fail.
        repair_time: seconds from a failure until the node is back.
        seed: seed of the random numbers. With the same seed, the same nodes fail at the same times.
    """

    mean_time_between: Natural = 0
    repair_time: Count = 3_600
    seed: Natural = 0


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A site: what `cluster.toml` holds.

    Attributes:
        name: the name of the site.
        nodes: groups of equal nodes. The index of a node is its place after all lists are expanded.
        partitions: the partitions, in the order of the file.  [default: one partition, with all nodes,
            exclusive]
        qos: qualities of service.
        accounts: the tree of accounts below root.
        users: users in accounts.
        licenses: licences, which jobs hold in addition to nodes.
        priority: weights of the order `multifactor`.
        scheduler: how nodes are chosen, and how jobs are preempted.
        reservations: nodes that only some jobs may use, from one time to another.
        calendar: changes at instants.
        failures: random failures of nodes.
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
