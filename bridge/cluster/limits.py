"""Limits on jobs: of a QOS, of accounts and of users, as Slurm's accounting keeps them.

Amounts of resources are tables of whole numbers: ``nodes``, ``cores``, ``memory`` (MiB), ``gpus`` (of any
type), ``gpus_TYPE``, ``license_NAME``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from bridge.config import Constraint, Count, Natural, Unsigned

#: Resource -> amount: whole numbers; memory in MiB.
Amounts = Mapping[str, Natural]
#: Names, of which a single one may stand alone.
Names = Annotated[tuple[str, ...], Constraint(single=True)]
#: What becomes of a preempted job; "off": it is never preempted.
PreemptMode = Literal["off", "requeue", "cancel", "suspend"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a partition, QOS or association. A limit that is not stated does not exist.

    Attributes:
        grp_jobs: jobs that run at one time, of all together.
        grp_submit_jobs: jobs that wait or run at one time, of all together; others are refused when
            submitted.
        grp_tres: amounts in use at one time, of all together.
        grp_tres_mins: amounts x minutes, of all together, since the beginning.
        max_tres_per_job: amounts of one job, at most.
        min_tres_per_job: amounts of one job, at least.
        max_wall: s; requested time of one job, at most.
    """

    grp_jobs: Natural | None = None
    grp_submit_jobs: Natural | None = None
    grp_tres: Amounts = field(default_factory=dict)
    grp_tres_mins: Amounts = field(default_factory=dict)
    max_tres_per_job: Amounts = field(default_factory=dict)
    min_tres_per_job: Amounts = field(default_factory=dict)
    max_wall: Natural | None = None


@dataclass(frozen=True, kw_only=True)
class Qos(Limits):
    """A quality of service.

    Attributes:
        name: by which jobs, accounts and partitions name it.
        priority: whole number; the larger, the earlier (a priority factor, and the order of preemption).
        max_jobs_per_user: jobs of one user that run at one time.
        max_jobs_per_account: jobs of one account that run at one time.
        max_submit_jobs_per_user: jobs of one user that wait or run; others are refused when submitted.
        max_submit_jobs_per_account: jobs of one account that wait or run; others are refused when submitted.
        max_tres_per_user: amounts of one user in use at one time.
        max_tres_per_account: amounts of one account in use at one time.
        usage_factor: by which the usage of its jobs counts in fair share.  [default: 1]
        preempt: QOS whose jobs its jobs may preempt.
        preempt_mode: what becomes of its preempted jobs.  [default: the scheduler's]
        grace_time: s; a preempted job goes on so long.
        deny_on_limit: a job beyond a limit of one job is refused when submitted, instead of waiting for ever.
        no_reserve: its jobs never hold nodes for the future.
        no_decay: the usage of its jobs does not decay.
        over_partition_qos: its limits come before those of the partition's QOS.
        partition_max_nodes: its jobs may be larger than the partition's max_nodes.
        partition_min_nodes: its jobs may be smaller than the partition's min_nodes.
        partition_time_limit: its jobs may be longer than the partition's max_time.
        restartable: rules of action may kill its jobs, which run again.  [default: the partition's]
        suspendable: rules of action may lend its jobs' nodes.  [default: the partition's]
        checkpointable: rules of action may stop its jobs, whose progress is kept.  [default: the partition's]
    """

    name: str
    priority: Natural = 0
    max_jobs_per_user: Natural | None = None
    max_jobs_per_account: Natural | None = None
    max_submit_jobs_per_user: Natural | None = None
    max_submit_jobs_per_account: Natural | None = None
    max_tres_per_user: Amounts = field(default_factory=dict)
    max_tres_per_account: Amounts = field(default_factory=dict)
    usage_factor: Unsigned = 1.0
    preempt: Names = ()
    preempt_mode: PreemptMode | None = None
    grace_time: Natural = 0
    deny_on_limit: bool = False
    no_reserve: bool = False
    no_decay: bool = False
    over_partition_qos: bool = False
    partition_max_nodes: bool = False
    partition_min_nodes: bool = False
    partition_time_limit: bool = False
    restartable: bool | None = None
    suspendable: bool | None = None
    checkpointable: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Association(Limits):
    """Base class of accounts and users.

    Attributes:
        shares: its shares among its siblings, for fair share; -1: the account's own (Slurm's parent).
            [default: 1]
        priority: whole number; a priority factor.
        max_jobs: jobs of one user here that run at one time; of an account: of each user below it.
        max_submit_jobs: jobs of one user here that wait or run; others are refused when submitted.
        qos: QOS that its jobs may have.  [default: the parent's, else any]
        default_qos: QOS of a job that names none.
    """

    shares: Annotated[int, Constraint(ge=-1)] = 1
    priority: Natural = 0
    max_jobs: Natural | None = None
    max_submit_jobs: Natural | None = None
    qos: Names = ()
    default_qos: str = ""


@dataclass(frozen=True, kw_only=True)
class Account(Association):
    """An account: its limits hold all jobs of its users and of the accounts below it.

    Attributes:
        name: by which jobs and users name it.
        parent: the account above it.  [default: root]
    """

    name: str
    parent: str = "root"


@dataclass(frozen=True, kw_only=True)
class User(Association):
    """A user in an account; a user of several accounts has a table for each.

    Attributes:
        name: as the log's column user_name has it.
        account: whose limits hold its jobs, too.  [default: root]
        partition: only its jobs in this partition.  [default: all]
        default: the account of its jobs that name none.
    """

    name: str
    account: str = "root"
    partition: str = ""
    default: bool = False


@dataclass(frozen=True, kw_only=True)
class License:
    """Licences of one kind, which jobs hold while they run.

    Attributes:
        name: by which jobs ask for it.
        count: how many there are.
    """

    name: str
    count: Count
