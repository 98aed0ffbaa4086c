"""Limits on jobs: of a QOS, of accounts and of users, as Slurm's accounting keeps them.

Amounts of resources are tables of whole numbers: ``nodes``, ``cores``, ``memory`` (MiB), ``gpus`` (of any
type), ``gpus_TYPE``, ``license_NAME``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from bridge.config import Constraint, Count, Natural, Share, Unsigned

#: Resource -> amount: whole numbers; memory in MiB.
Amounts = Mapping[str, Natural]
#: Names, of which a single one may stand alone.
Names = Annotated[tuple[str, ...], Constraint(single=True)]
#: What becomes of a preempted job; "off": it is never preempted.
PreemptMode = Literal["off", "requeue", "cancel", "suspend"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a partition, QOS or association. A limit that is not in the file does not exist.

    Attributes:
        grp_jobs: largest number of jobs that run at one time, of all users together.
        grp_submit_jobs: largest number of jobs that wait or run at one time, of all users together. More jobs
            are refused when they are submitted.
        grp_tres: largest amounts in use at one time, of all users together.
        grp_tres_mins: largest amounts × minutes since the beginning, of all users together.
        max_tres_per_job: largest amounts of one job.
        min_tres_per_job: smallest amounts of one job.
        max_wall: largest requested time of one job, in seconds.
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
    """A quality of service: a named set of limits, and a priority.

    Attributes:
        name: the name that jobs, accounts and partitions use.
        priority: a whole number. Jobs with a larger one come earlier (as a priority factor, and in
            preemption).
        max_jobs_per_user: largest number of jobs of one user that run at one time.
        max_jobs_per_account: largest number of jobs of one account that run at one time.
        max_submit_jobs_per_user: largest number of jobs of one user that wait or run. More jobs are refused
            when they are submitted.
        max_submit_jobs_per_account: largest number of jobs of one account that wait or run. More jobs are
            refused when they are submitted.
        max_tres_per_user: largest amounts of one user in use at one time.
        max_tres_per_account: largest amounts of one account in use at one time.
        usage_factor: the usage of the QOS' jobs is multiplied by this in fair share.  [default: 1]
        preempt: the QOS whose jobs may be preempted by jobs of this QOS.
        preempt_mode: what happens to preempted jobs.  [default: the scheduler's]
        grace_time: a preempted job continues for so long, in seconds.
        deny_on_limit: a job that is over a limit on one job is refused when it is submitted. Without this, it
            waits for ever.
        no_reserve: jobs never hold nodes for the future.
        no_decay: the usage of jobs does not decay.
        over_partition_qos: the limits of this QOS come before those of the partition's QOS.
        partition_max_nodes: jobs may be larger than the partition's max_nodes.
        partition_min_nodes: jobs may be smaller than the partition's min_nodes.
        partition_time_limit: jobs may be longer than the partition's max_time.
        restartable: rules of action may kill the QOS' jobs, which run again.  [default: the partition's]
        suspendable: rules of action may suspend the QOS' jobs, and use their nodes.  [default: the
            partition's]
        checkpointable: rules of action may stop the QOS' jobs, whose progress is kept.  [default: the
            partition's]
        suspended_memory: the share of its memory that a suspended job keeps, from 0 to 1.  [default: the
            partition's]
        restart_cost: the next run of a killed job begins with so many seconds of overhead.  [default:
            the partition's]
        host_cost: a suspended job works again so many seconds after its guest has gone.  [default:
            the partition's]
        resume_cost: the next run of a job that was stopped at a checkpoint begins with so many seconds of
            overhead.  [default: the partition's]
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
    suspended_memory: Share | None = None
    restart_cost: Natural | None = None
    host_cost: Count | None = None
    resume_cost: Natural | None = None


@dataclass(frozen=True, kw_only=True)
class Association(Limits):
    """Limits and shares of an account or a user. (This is the base class of both.)

    Attributes:
        shares: shares for fair share, compared with those of the other children of the same account; -1: the
            account's own shares (Slurm's parent). [default: 1]
        priority: a whole number; a priority factor.
        max_jobs: largest number of jobs of one user that run at one time. For an account: of each user below
            it.
        max_submit_jobs: largest number of jobs of one user that wait or run. More jobs are refused when they
            are submitted.
        qos: the QOS that jobs may have.  [default: the parent's, else any]
        default_qos: the QOS of a job that names none.
    """

    shares: Annotated[int, Constraint(ge=-1)] = 1
    priority: Natural = 0
    max_jobs: Natural | None = None
    max_submit_jobs: Natural | None = None
    qos: Names = ()
    default_qos: str = ""


@dataclass(frozen=True, kw_only=True)
class Account(Association):
    """An account. Its limits apply to all jobs of its users, and of the accounts below it.

    Attributes:
        name: the name that jobs and users use.
        parent: the account above this one.  [default: root]
    """

    name: str
    parent: str = "root"


@dataclass(frozen=True, kw_only=True)
class User(Association):
    """A user in an account. A user with several accounts has a table for each account.

    Attributes:
        name: the user's name, as in the log's column user_name.
        account: the account; its limits apply to the user's jobs, too.  [default: root]
        partition: the limits apply only to jobs in this partition.  [default: all]
        default: jobs of the user that name no account belong to this one.
    """

    name: str
    account: str = "root"
    partition: str = ""
    default: bool = False


@dataclass(frozen=True, kw_only=True)
class License:
    """Licences of one kind. Jobs hold them while they run.

    Attributes:
        name: the name that jobs use.
        count: the number of licences.
    """

    name: str
    count: Count
