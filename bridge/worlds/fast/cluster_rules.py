"""Rules of a cluster that hold jobs back: what a partition does not allow, which limits count which jobs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bridge.cluster import reasons
from bridge.cluster.description import Cluster, Partition
from bridge.cluster.limits import Account, Limits, Qos, User
from bridge.cluster.reasons import TRES, reason_of_limit
from bridge.workload.requests import MILLI, JobRequests

#: Kinds of limits in the order in which they are tested, by what they are of.
_KINDS = (
    *("max_wall", "max_jobs", "max_jobs_per_account", "grp_jobs", "min_tres_per_job", "max_tres_per_job"),
    *("max_tres", "max_tres_per_account", "grp_tres", "grp_tres_mins"),
    *("max_submit_jobs", "max_submit_jobs_per_account", "grp_submit_jobs"),
)
#: Names of a QOS' limits of one user.
_OF_QOS = {
    "max_jobs": "max_jobs_per_user",
    "max_tres": "max_tres_per_user",
    "max_submit_jobs": "max_submit_jobs_per_user",
}
#: The other way round.
SHORT_KINDS = {long: short for short, long in _OF_QOS.items()}


def qos_of(cluster: Cluster, requests: JobRequests, job: int, user: User | None) -> str:
    """Return the QOS of a job: its own, else the default one of its user or account."""
    name = requests.qos.of(job)
    if name:
        return name
    if user is not None and user.default_qos:
        return user.default_qos
    accounts = {account.name: account for account in cluster.accounts}
    own = user.account if user is not None else requests.account.of(job)
    defaults = (accounts[name].default_qos for name in chain_of(cluster, own) if name in accounts)
    return next(filter(None, defaults), "")


def user_of(cluster: Cluster, partition: str, requests: JobRequests, job: int) -> User | None:
    """Return the user's table that holds for a job; one of its partition comes before one of all."""
    name, account = requests.user.of(job), requests.account.of(job)
    tables = [user for user in cluster.users if user.name == name and user.partition in ("", partition)]
    if account:
        tables = [user for user in tables if user.account == account]
    else:
        tables = [user for user in tables if user.default] or tables[:1]
    return max(tables, key=lambda user: bool(user.partition), default=None)


def account_of(requests: JobRequests, job: int, user: User | None) -> str:
    """Return the account of a job: its own, else the user's."""
    return requests.account.of(job) or (user.account if user is not None else "")


def chain_of(cluster: Cluster, account: str) -> list[str]:
    """Return an account and those above it, up to the root."""
    accounts = {row.name: row for row in cluster.accounts}
    chain: list[str] = []
    while account in accounts and account not in chain:
        chain.append(account)
        account = accounts[account].parent
        if account == "root" and account not in accounts:
            break
    return chain


def not_allowed(cluster: Cluster, partition: Partition, requests: JobRequests, job: int) -> str:
    """Return the reason for which a partition's lists keep a job out; empty: they do not."""
    user = user_of(cluster, partition.name, requests, job)
    qos = qos_of(cluster, requests, job, user)
    if (partition.allow_qos and qos not in partition.allow_qos) or qos in partition.deny_qos:
        return reasons.QOS_NOT_ALLOWED
    account = account_of(requests, job, user)
    chain = {account, *chain_of(cluster, account)}
    allowed = not partition.allow_accounts or chain & {*partition.allow_accounts}
    if not allowed or chain & {*partition.deny_accounts}:
        return reasons.ACCOUNT_NOT_ALLOWED
    return ""


def within_partition(
    cluster: Cluster, partition: Partition, requests: JobRequests, job: int, walltime: int, nodes: int
) -> str | None:
    """Return the limit of the partition that a job is beyond, as a reason, or None."""
    user = user_of(cluster, partition.name, requests, job)
    own = {qos.name: qos for qos in cluster.qos}.get(qos_of(cluster, requests, job, user))
    too_long = partition.max_time is not None and walltime > partition.max_time
    if too_long and not (own is not None and own.partition_time_limit):
        return reasons.PARTITION_TIME_LIMIT
    too_large = partition.max_nodes is not None and nodes > partition.max_nodes
    if too_large and not (own is not None and own.partition_max_nodes):
        return reasons.PARTITION_NODE_LIMIT
    if nodes < partition.min_nodes and not (own is not None and own.partition_min_nodes):
        return reasons.PARTITION_NODE_LIMIT
    return None


@dataclass(frozen=True)
class Rule:
    """One limit as it holds for some jobs.

    Attributes:
        group: whose jobs count together; empty: each job by itself.
        kind: of `bridge.cluster.limits`, without "_per_user".
        resource: of amounts; empty: jobs, or seconds.
        limit: amounts; GPUs in thousandths.
        is_tested: it holds; else the jobs only count.
        denies: a job beyond it is refused when submitted.
    """

    group: tuple[str, ...]
    kind: str
    resource: str
    limit: int
    reason: str
    is_tested: bool = True
    denies: bool = False


def _stated(limits: Limits, kind: str, *, of_qos: bool) -> Mapping[str, int] | None:
    """Return a limit's amounts by resource ("": of jobs or seconds), or None if it is not stated."""
    value = getattr(limits, _OF_QOS.get(kind, kind) if of_qos else kind, None)
    if value is None or value == {}:
        return None
    if not isinstance(value, Mapping):
        return {"": value}
    order = {name: place for place, name in enumerate(TRES)}
    return {
        name: value[name] * (MILLI if name.startswith("gpus") else 1)
        for name in sorted(value, key=lambda name: (order.get(name, len(order)), name))
    }


def rules_for(
    cluster: Cluster, partition: Partition, qos: str, user: User | None, user_name: str, account: str
) -> Iterator[Rule]:
    """Yield the limits that hold for a job, in the order in which they are tested.

    A kind that the partition's QOS states is not looked at in the job's own QOS, and one that a QOS states
    is not looked at in associations. Of accounts, limits of all together (``grp_``) hold at every level,
    others at the nearest level that states them. With ``limits = "all"`` every stated limit holds.
    """
    all_hold = cluster.scheduler.limits == "all"
    tables = {row.name: row for row in cluster.qos}
    own = tables.get(qos)
    names = [partition.qos, qos]
    if own is not None and own.over_partition_qos:
        names.reverse()
    stated: set[str] = set()
    for name in dict.fromkeys(names):
        if name not in tables:
            continue
        table: Qos = tables[name]
        here = set()
        for kind in _KINDS:
            amounts = _stated(table, kind, of_qos=True)
            if amounts is None:
                continue
            here.add(kind)
            long = _OF_QOS.get(kind, kind)
            group: tuple[str, ...] = ("qos", name)
            if kind.endswith("_per_account"):
                group = (*group, "account", account)
            elif kind in _OF_QOS:
                group = (*group, "user", user_name)
            elif not kind.startswith("grp_"):
                group = ()
            for resource, limit in amounts.items():
                reason = reason_of_limit("QOS", long, resource)
                tested = all_hold or kind not in stated
                yield Rule(group, kind, resource, limit, reason, tested, table.deny_on_limit)
        stated |= here
    levels: list[tuple[tuple[str, ...], User | Account]] = []
    if user is not None:
        levels.append((("user", user_name, "in", user.account, user.partition), user))
    accounts = {row.name: row for row in cluster.accounts}
    levels += [(("account", name), accounts[name]) for name in chain_of(cluster, account)]
    nearest = set(stated)
    for group, level in levels:
        for kind in _KINDS:
            amounts = _stated(level, kind, of_qos=False)
            if amounts is None:
                continue
            for resource, limit in amounts.items():
                reason = reason_of_limit("Assoc", kind, resource)
                of = group if kind.startswith("grp_") else ()
                if kind in ("max_jobs", "max_submit_jobs"):
                    of = ("user", user_name, "in", account)
                yield Rule(of, kind, resource, limit, reason, all_hold or kind not in nearest)
            if not kind.startswith("grp_"):
                nearest.add(kind)
