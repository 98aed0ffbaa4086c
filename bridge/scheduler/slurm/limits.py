"""Limits of QOS and associations: each class of jobs has its tests, in Slurm's order, made once."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bridge.base.arrays import Ints
from bridge.cluster.limits import Amounts, Association, Limits, Qos
from bridge.cluster.reasons import Scope, reason_of_limit
from bridge.scheduler.slurm import limit_kernels as kernels
from bridge.scheduler.slurm.arrays import COUNTS_MINUTES, SlurmStore
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.site import Assoc, Site, SlurmPart

Tres = dict[str, int]
_own_beyond = Quick(kernels.own_beyond)


class _Rule(NamedTuple):
    """A limit as kernels read it, and what a job that is beyond it is told."""

    kind: int
    tally: int
    resource: int
    amount: int
    reason: str


class LimitClass(NamedTuple):
    """What counts, and what is tested in turn, for jobs of one user, association and QOS in one partition.

    Attributes:
        row: its place in `classes`.
        tallies: rows of what counts its jobs.
        submitted: limits of jobs that wait or run.
        own: why the rules of one job alone refuse it: the first of those after nodes are chosen.
    """

    row: int
    tallies: tuple[int, ...]
    submitted: tuple[_Rule, ...]
    own: tuple[str, ...]
    denies: bool


class Ledger:
    """Counters of what runs and waits, and the limits on them.

    Attributes:
        resources: names of the resources that limits count, with their places.
    """

    def __init__(self, site: Site, store: SlurmStore) -> None:
        self.site, self.store = site, store
        every: tuple[Limits, ...] = (*site.cluster.qos, *site.cluster.accounts, *site.cluster.users)
        named = set[str]().union(*map(_amounts_of, every)) - {"cores", "nodes", "memory"}
        self.resources = {name: k for k, name in enumerate(("cores", "nodes", "memory", *sorted(named)))}
        self.counts_minutes = any(one.grp_tres_mins for one in every)
        self._tallies: dict[tuple[object, ...], int] = {}
        self._classes: dict[tuple[int, str, Assoc, str], LimitClass] = {}
        self._n_rules = self._n_members = self._n_node_rows = 0
        width = len(self.resources)
        store.rules[COUNTS_MINUTES] = int(self.counts_minutes)
        store.put(
            classes=np.zeros((64, kernels.CLASS_SIZE), np.int64),
            limits=np.zeros((64, kernels.RULE_SIZE), np.int64),
            members=np.zeros(64, np.int64),
            counters=np.zeros((64, kernels.TALLY_SIZE), np.int64),
            used=np.zeros((64, width), np.int64),
            on_nodes=np.zeros((1, len(site.nodes)), np.int64),
            seconds=np.zeros((64, width)),
            reserved=np.zeros((64, width)),
            amounts=np.zeros(width, np.int64),
        )

    # --- classes

    def class_of(self, job: SlurmJob, part: SlurmPart) -> LimitClass:
        """Return the class of limits of a job in a partition."""
        key = (part.index, job.qos, job.assoc, job.user)
        its = self._classes.get(key)
        if its is None:
            its = self._classes[key] = self._make(job, part)
        return its

    def _make(self, job: SlurmJob, part: SlurmPart) -> LimitClass:
        tallies, is_limited = tuple(self._tallies_of(job, part)), self.site.settings.limits
        before, own, in_use, packed, submitted = [], [], [], [], []
        if is_limited:
            wall = list(self._wall(job, part))
            before = [*self._job_counts(job, part, "jobs", ("max", "grp")), *wall]
            own = [*wall, *self._own(job, part)]
            in_use, packed = list(self._in_use(job, part)), list(self._packed(job, part))
            submitted = list(self._job_counts(job, part, "submit_jobs", ("grp", "max")))
        row, store, rules, members = len(self._classes), self.store, self._n_rules, self._n_members
        n_before, n_after = rules + len(before), rules + len(before) + len(own) + len(in_use)
        n_tallies, n_members = members + len(tallies), members + len(tallies) + len(packed)
        store.make_room(row + 1, "classes")
        store.make_room(n_after, "limits")
        store.make_room(n_members, "members")
        store.classes[row] = (
            *(rules, n_before, n_before, n_after),
            *(members, n_tallies, n_tallies, n_members),
        )
        for r, rule in enumerate((*before, *own, *in_use), start=rules):
            store.limits[r] = rule[: kernels.RULE_SIZE]
        store.members[members:n_members] = (*tallies, *packed)
        self._n_rules, self._n_members = n_after, n_members
        denies = is_limited and any(qos.deny_on_limit for qos in self.qos_pair(job, part))
        return LimitClass(row, tallies, tuple(submitted), tuple(rule.reason for rule in own), denies)

    def qos_pair(self, job: SlurmJob, part: SlurmPart) -> list[Qos]:
        """Return the QOS whose limits count, the first first: the partition's, then the job's."""
        own, name = self.site.qos[job.qos], part.about.qos
        if not name or name == job.qos or name not in self.site.qos:
            return [own]
        of_part = self.site.qos[name]
        return [own, of_part] if own.over_partition_qos else [of_part, own]

    def _tally(self, limits: Limits, name: str, *key: object) -> int:
        """Return the row of a tally, which counts nodes if a limit by one name does."""
        if key not in self._tallies:
            row = self._tallies[key] = len(self._tallies)
            self.store.make_room(row + 1, "counters", "used", "seconds", "reserved")
            self.store.counters[row, kernels.NODE_ROW] = -1
            if "nodes" in getattr(limits, name):
                self.store.counters[row, kernels.NODE_ROW] = self._n_node_rows
                self._n_node_rows += 1
                self.store.make_room(self._n_node_rows, "on_nodes")
        return self._tallies[key]

    def _qos_tallies(self, qos: Qos, job: SlurmJob) -> tuple[int, int, int]:
        """Return the rows of the tallies of a QOS, and of a job's user and account in it."""
        account = job.assoc.parent.name if job.assoc.parent is not None else "root"
        return (
            self._tally(qos, "grp_tres", "qos", qos.name),
            self._tally(qos, "max_tres_per_user", "user", qos.name, job.user),
            self._tally(qos, "max_tres_per_account", "account", qos.name, account),
        )

    def _assoc_tally(self, assoc: Assoc) -> int:
        return self._tally(assoc.limits, "grp_tres", assoc)

    def _tallies_of(self, job: SlurmJob, part: SlurmPart) -> Iterator[int]:
        for qos in self.qos_pair(job, part):
            yield from self._qos_tallies(qos, job)
        yield from map(self._assoc_tally, job.assoc.chain())

    def _packed(self, job: SlurmJob, part: SlurmPart) -> Iterator[int]:
        """Yield tallies on whose nodes limits of nodes make a job prefer to run."""
        for qos in self.qos_pair(job, part):
            whole, of_user, _ = self._qos_tallies(qos, job)
            if "nodes" in qos.grp_tres:
                yield whole
            if "nodes" in qos.max_tres_per_user:
                yield of_user
        for assoc in job.assoc.chain():
            if "nodes" in assoc.limits.grp_tres:
                yield self._assoc_tally(assoc)

    def _job_counts(self, job: SlurmJob, part: SlurmPart, what: str, kinds: Iterable[str]) -> Iterator[_Rule]:
        """Yield limits on numbers of jobs, `what`: "jobs" that run, or "submit_jobs"; first those of the QOS.

        Of each kind the first that is stated counts. `kinds`: "max", "grp" of associations, in turn.
        """
        of_user, of_account, of_group = f"max_{what}_per_user", f"max_{what}_per_account", f"grp_{what}"
        unset = {of_user, of_account, of_group}
        for qos in self.qos_pair(job, part):
            whole, user, account = self._qos_tallies(qos, job)
            for limit, tally in ((of_user, user), (of_account, account), (of_group, whole)):
                most = getattr(qos, limit)
                if most is not None and limit in unset:
                    unset.discard(limit)
                    yield _Rule(kernels.JOBS_RULE, tally, 0, most, reason_of_limit("QOS", limit))
        for kind in kinds:
            limit = f"{kind}_{what}"
            if kind == "grp" and of_group in unset:
                for assoc in job.assoc.chain():
                    if (most := getattr(assoc.limits, limit)) is not None:
                        tally = self._assoc_tally(assoc)
                        yield _Rule(kernels.JOBS_RULE, tally, 0, most, reason_of_limit("Assoc", limit))
            elif kind == "max" and of_user in unset and (most := _inherited(job.assoc, limit)) is not None:
                tally = self._assoc_tally(job.assoc)
                yield _Rule(kernels.JOBS_RULE, tally, 0, most, reason_of_limit("Assoc", limit))

    def _wall(self, job: SlurmJob, part: SlurmPart) -> Iterator[_Rule]:
        """Yield the limit of a job's time, if there is one."""
        for qos in self.qos_pair(job, part):
            if qos.max_wall is not None:
                yield _Rule(kernels.WALL_RULE, 0, 0, qos.max_wall, reason_of_limit("QOS", "max_wall"))
                return
        if (most := _inherited(job.assoc, "max_wall")) is not None:
            yield _Rule(kernels.WALL_RULE, 0, 0, most, reason_of_limit("Assoc", "max_wall"))

    def _own(self, job: SlurmJob, part: SlurmPart) -> Iterator[_Rule]:
        """Yield limits of one job's amounts."""
        for limit, kind in (
            ("max_tres_per_job", kernels.MOST_RULE),
            ("min_tres_per_job", kernels.LEAST_RULE),
        ):
            levels: list[tuple[Scope, Amounts]] = []
            levels += [("QOS", getattr(qos, limit)) for qos in self.qos_pair(job, part)]
            levels += [("Assoc", getattr(assoc.limits, limit)) for assoc in job.assoc.chain()]
            tested: set[str] = set()
            for scope, amounts in levels:
                for name, amount in amounts.items():
                    if name not in tested:
                        tested.add(name)
                        reason = reason_of_limit(scope, limit, name)
                        yield _Rule(kind, 0, self.resources[name], amount, reason)

    def _in_use(self, job: SlurmJob, part: SlurmPart) -> Iterator[_Rule]:
        """Yield limits of amounts in use; what a QOS states hides the same limit of those behind it."""
        hidden: set[tuple[str, str]] = set()

        def of(
            scope: Scope, limit: str, limits: Limits, tally: int, hidden: set[tuple[str, str]]
        ) -> Iterator[_Rule]:
            for name, most in getattr(limits, limit).items():
                if (limit, name) not in hidden:
                    hidden.add((limit, name))
                    kind = kernels.NODES_RULE if name == "nodes" else kernels.USE_RULE
                    if limit == "grp_tres_mins":
                        kind = kernels.MINUTES_RULE
                    reason = reason_of_limit(scope, limit, name)
                    yield _Rule(kind, tally, self.resources[name], most, reason)

        for qos in self.qos_pair(job, part):
            whole, of_user, of_account = self._qos_tallies(qos, job)
            yield from of("QOS", "grp_tres", qos, whole, hidden)
            yield from of("QOS", "max_tres_per_user", qos, of_user, hidden)
            yield from of("QOS", "max_tres_per_account", qos, of_account, hidden)
            yield from of("QOS", "grp_tres_mins", qos, whole, hidden)
        for assoc in job.assoc.chain():
            tally = self._assoc_tally(assoc)
            yield from of("Assoc", "grp_tres", assoc.limits, tally, {*hidden})
            yield from of("Assoc", "grp_tres_mins", assoc.limits, tally, {*hidden})

    # --- counting

    def submit(self, job: SlurmJob, sign: int = 1) -> None:
        """Count a job that waits or runs."""
        counters = self.store.counters
        for tally in self.class_of(job, job.parts[0]).tallies:
            counters[tally, kernels.TALLY_SUBMITTED] += sign

    def decay(self, factor: float) -> None:
        """Let what ended jobs used count for less."""
        if self.counts_minutes:
            self.store.seconds[:] *= factor

    # --- tests

    def refuses(self, job: SlurmJob, part: SlurmPart) -> str:
        """Return why a job is refused at submission; empty: it is not."""
        its, store = self.class_of(job, part), self.store
        for rule in its.submitted:
            if store.counters[rule.tally, kernels.TALLY_SUBMITTED] + 1 > rule.amount:
                return rule.reason
        if not its.denies:
            return ""
        store.amounts[:] = self.per_job(job)
        first = int(store.classes[its.row, kernels.FIRST_AFTER])
        rule_beyond = _own_beyond(store.bundle, first, first + len(its.own), job_limit(job, part))
        return its.own[rule_beyond - first] if rule_beyond >= 0 else ""

    def request(self, job: SlurmJob) -> Tres:
        """Return what a job asks for, before nodes are chosen for it."""
        tres = {"cores": job.min_cpus, "nodes": job.min_nodes}
        per_node, per_cpu = self.memory_of(job)
        tres["memory"] = per_node * job.min_nodes if per_node else per_cpu * job.min_cpus
        if not job.gres and not job.licenses:
            return tres
        for kind, count in job.gres.items():
            name = _resource(kind)
            tres[name] = count * job.min_nodes
            if kind.startswith("gpu:"):
                tres["gpus"] = tres.get("gpus", 0) + count * job.min_nodes
        for name, count in job.licenses.items():
            tres[f"license_{name}"] = count
        return tres

    def memory_of(self, job: SlurmJob) -> tuple[int, int]:
        """Return MiB a node and MiB a CPU that a job asks for."""
        if job.memory_node or job.memory_cpu:
            return job.memory_node, job.memory_cpu
        about = job.parts[0].about
        return about.default_memory_per_node or 0, about.default_memory_per_core or 0

    def per_job(self, job: SlurmJob) -> Ints:
        """Return what a job asks for, of each resource that limits count."""
        tres = self.request(job)
        return np.array([tres.get(name, 0) for name in self.resources], np.int64)

    def per_node(self, job: SlurmJob) -> Ints:
        """Return what a job has on each of its nodes of resources that are counted so; else 0."""
        per_node = {_resource(kind): count for kind, count in job.gres.items()}
        return np.array([per_node.get(name, 0) for name in self.resources], np.int64)


def _resource(kind: str) -> str:
    """Return the name of a generic resource in limits."""
    return "gpus" if kind == "gpu" else kind.replace("gpu:", "gpus_")


def _amounts_of(limits: Limits) -> set[str]:
    """Return the names of resources of which limits state amounts."""
    tables = ("grp_tres", "grp_tres_mins", "max_tres_per_job", "min_tres_per_job", "max_tres_per_user")
    return {name for table in (*tables, "max_tres_per_account") for name in getattr(limits, table, {})}


def _inherited(assoc: Assoc, field_name: str) -> int | None:
    """Return a limit of a user's association, or of the nearest account above that has one."""
    for one in assoc.chain():
        if isinstance(one.about, Association):
            value: int | None = getattr(one.about, field_name, None)
            if value is not None:
                return value
    return None


def job_limit(job: SlurmJob, part: SlurmPart) -> int:
    """Return a job's limit in a partition, s: its own, else the partition's default, else its longest."""
    longest = part.max_time if part.max_time is not None else 365 * 86_400
    if job.limit and job.state != 0:
        return job.limit
    if job.limit:
        return min(job.limit, longest)
    return min(part.about.default_time or longest, longest)
