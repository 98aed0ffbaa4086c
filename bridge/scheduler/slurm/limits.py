"""Limits of QOS and associations: counters of what runs, and the tests before and after nodes are chosen."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from bridge.cluster.limits import Amounts, Association, Limits, Qos
from bridge.cluster.reasons import Scope, reason_of_limit
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.masks import bits
from bridge.scheduler.slurm.site import Assoc, Site, SlurmPart

Tres = dict[str, int]


@dataclass(slots=True, eq=False)
class Tally:
    """What of a QOS, a user in it, or an association runs and waits.

    Attributes:
        submitted: jobs that wait or run.
        counts_nodes: a limit counts its nodes.
        nodes: node -> jobs there; `mask` is their set.
        seconds: CPU-seconds (and others) of ended jobs, decayed.
        reserved: what running jobs may use up to their limits.
    """

    counts_nodes: bool = False
    jobs: int = 0
    submitted: int = 0
    tres: Tres = field(default_factory=dict)
    nodes: dict[int, int] = field(default_factory=dict)
    mask: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    reserved: dict[str, float] = field(default_factory=dict)

    def start(self, job: SlurmJob, sign: int, names: Iterable[str]) -> None:
        """Count a job that runs, of its amounts those with some names."""
        self.jobs += sign
        for name in names:
            self.tres[name] = self.tres.get(name, 0) + sign * job.tres.get(name, 0)
        if self.counts_nodes:
            for n in bits(job.nodes):
                self.nodes[n] = self.nodes.get(n, 0) + sign
                if self.nodes[n]:
                    self.mask |= 1 << n
                else:
                    del self.nodes[n]
                    self.mask &= ~(1 << n)


class JobsRule(NamedTuple):
    """At most so many jobs of a tally run, or run and wait."""

    tally: Tally
    most: int
    reason: str


class OwnRule(NamedTuple):
    """An amount of one job: `sign` 1: at most; -1: at least."""

    sign: int
    name: str
    amount: int
    reason: str


class UseRule(NamedTuple):
    """At most so much of a tally is in use, or, of `minutes`, has been used."""

    tally: Tally
    name: str
    most: int
    minutes: bool
    reason: str


class LimitClass(NamedTuple):
    """What counts, and what is tested in turn, for jobs of one user, association and QOS in one partition.

    Attributes:
        wall: the longest time limit, with its reason.
        packed: tallies on whose nodes a job prefers to run.
    """

    tallies: tuple[Tally, ...]
    submitted: tuple[JobsRule, ...]
    running: tuple[JobsRule, ...]
    wall: tuple[int, str] | None
    own: tuple[OwnRule, ...]
    in_use: tuple[UseRule, ...]
    packed: tuple[Tally, ...]
    denies: bool

    @property
    def has_before(self) -> bool:
        """Tell whether a limit is tested before nodes are chosen."""
        return bool(self.running) or self.wall is not None

    @property
    def has_after(self) -> bool:
        """Tell whether a limit is tested after nodes are chosen."""
        return bool(self.own or self.in_use) or self.wall is not None


class Ledger:
    """Counters of what runs and waits, and the limits on them.

    Attributes:
        counted: resources that a limit counts.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        every: tuple[Limits, ...] = (*site.cluster.qos, *site.cluster.accounts, *site.cluster.users)
        self.counts_minutes = any(one.grp_tres_mins for one in every)
        tables = ("grp_tres", "max_tres_per_user", "max_tres_per_account")
        self.counted = sorted({name for one in every for table in tables for name in getattr(one, table, {})})
        self._tallies: dict[tuple[object, ...], Tally] = {}
        self._classes: dict[tuple[int, str, Assoc, str], LimitClass] = {}

    # --- classes

    def class_of(self, job: SlurmJob, part: SlurmPart) -> LimitClass:
        """Return the class of limits of a job in a partition."""
        key = (part.index, job.qos, job.assoc, job.user)
        its = self._classes.get(key)
        if its is None:
            its = self._classes[key] = self._make(job, part)
        return its

    def _make(self, job: SlurmJob, part: SlurmPart) -> LimitClass:
        pair = self.qos_pair(job, part)
        tallies = tuple(self._tallies_of(job, part))
        if not self.site.settings.limits:
            return LimitClass(tallies, (), (), None, (), (), (), False)
        return LimitClass(
            tallies,
            tuple(self._job_counts(job, part, "submit_jobs", ("grp", "max"))),
            tuple(self._job_counts(job, part, "jobs", ("max", "grp"))),
            self._wall(job, part),
            tuple(self._own(job, part)),
            tuple(self._in_use(job, part)),
            tuple(self._packed(job, part)),
            any(qos.deny_on_limit for qos in pair),
        )

    def qos_pair(self, job: SlurmJob, part: SlurmPart) -> list[Qos]:
        """Return the QOS whose limits count, the first first: the partition's, then the job's."""
        own, name = self.site.qos[job.qos], part.about.qos
        if not name or name == job.qos or name not in self.site.qos:
            return [own]
        of_part = self.site.qos[name]
        return [own, of_part] if own.over_partition_qos else [of_part, own]

    def _tally(self, limits: Limits, name: str, *key: object) -> Tally:
        """Return a tally, which counts nodes if a limit by one name does."""
        if key not in self._tallies:
            self._tallies[key] = Tally(counts_nodes="nodes" in getattr(limits, name))
        return self._tallies[key]

    def _qos_tallies(self, qos: Qos, job: SlurmJob) -> tuple[Tally, Tally, Tally]:
        """Return the tallies of a QOS, and of a job's user and account in it."""
        account = job.assoc.parent.name if job.assoc.parent is not None else "root"
        return (
            self._tally(qos, "grp_tres", "qos", qos.name),
            self._tally(qos, "max_tres_per_user", "user", qos.name, job.user),
            self._tally(qos, "max_tres_per_account", "account", qos.name, account),
        )

    def _assoc_tally(self, assoc: Assoc) -> Tally:
        return self._tally(assoc.limits, "grp_tres", assoc)

    def _tallies_of(self, job: SlurmJob, part: SlurmPart) -> Iterator[Tally]:
        for qos in self.qos_pair(job, part):
            yield from self._qos_tallies(qos, job)
        yield from map(self._assoc_tally, job.assoc.chain())

    def _packed(self, job: SlurmJob, part: SlurmPart) -> Iterator[Tally]:
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

    def _job_counts(
        self, job: SlurmJob, part: SlurmPart, what: str, kinds: Iterable[str]
    ) -> Iterator[JobsRule]:
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
                    yield JobsRule(tally, most, reason_of_limit("QOS", limit))
        for kind in kinds:
            limit = f"{kind}_{what}"
            if kind == "grp" and of_group in unset:
                for assoc in job.assoc.chain():
                    if (most := getattr(assoc.limits, limit)) is not None:
                        yield JobsRule(self._assoc_tally(assoc), most, reason_of_limit("Assoc", limit))
            elif kind == "max" and of_user in unset and (most := _inherited(job.assoc, limit)) is not None:
                yield JobsRule(self._assoc_tally(job.assoc), most, reason_of_limit("Assoc", limit))

    def _wall(self, job: SlurmJob, part: SlurmPart) -> tuple[int, str] | None:
        for qos in self.qos_pair(job, part):
            if qos.max_wall is not None:
                return qos.max_wall, reason_of_limit("QOS", "max_wall")
        most = _inherited(job.assoc, "max_wall")
        return None if most is None else (most, reason_of_limit("Assoc", "max_wall"))

    def _own(self, job: SlurmJob, part: SlurmPart) -> Iterator[OwnRule]:
        """Yield limits of one job's amounts."""
        for limit, sign in (("max_tres_per_job", 1), ("min_tres_per_job", -1)):
            levels: list[tuple[Scope, Amounts]] = []
            levels += [("QOS", getattr(qos, limit)) for qos in self.qos_pair(job, part)]
            levels += [("Assoc", getattr(assoc.limits, limit)) for assoc in job.assoc.chain()]
            tested: set[str] = set()
            for scope, amounts in levels:
                for name, amount in amounts.items():
                    if name not in tested:
                        tested.add(name)
                        yield OwnRule(sign, name, amount, reason_of_limit(scope, limit, name))

    def _in_use(self, job: SlurmJob, part: SlurmPart) -> Iterator[UseRule]:
        """Yield limits of amounts in use; what a QOS states hides the same limit of those behind it."""
        hidden: set[tuple[str, str]] = set()

        def of(
            scope: Scope, limit: str, limits: Limits, tally: Tally, hidden: set[tuple[str, str]]
        ) -> Iterator[UseRule]:
            for name, most in getattr(limits, limit).items():
                if (limit, name) not in hidden:
                    hidden.add((limit, name))
                    reason = reason_of_limit(scope, limit, name)
                    yield UseRule(tally, name, most, limit == "grp_tres_mins", reason)

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
        for tally in self.class_of(job, job.parts[0]).tallies:
            tally.submitted += sign

    def start(self, job: SlurmJob) -> None:
        """Count a job that runs."""
        assert job.part is not None
        for tally in self.class_of(job, job.part).tallies:
            tally.start(job, 1, self.counted)
            if self.counts_minutes:
                for name, amount in job.tres.items():
                    tally.reserved[name] = tally.reserved.get(name, 0) + amount * job.limit

    def end(self, job: SlurmJob, now: int) -> None:
        """Count no more a job that ran until now."""
        assert job.part is not None
        lasted = max(now - job.start - job.suspended, 0)
        for tally in self.class_of(job, job.part).tallies:
            tally.start(job, -1, self.counted)
            if self.counts_minutes:
                for name, amount in job.tres.items():
                    tally.reserved[name] = tally.reserved.get(name, 0) - amount * job.limit
                    tally.seconds[name] = tally.seconds.get(name, 0.0) + amount * lasted

    def decay(self, factor: float) -> None:
        """Let what ended jobs used count for less."""
        if self.counts_minutes:
            for tally in self._tallies.values():
                for name in tally.seconds:
                    tally.seconds[name] *= factor

    # --- tests

    def refuses(self, job: SlurmJob, part: SlurmPart) -> str:
        """Return why a job is refused at submission; empty: it is not."""
        its = self.class_of(job, part)
        for tally, most, reason in its.submitted:
            if tally.submitted + 1 > most:
                return reason
        return _own_reason(its, job_limit(job, part), self.request(job)) if its.denies else ""

    def request(self, job: SlurmJob, *, planned: bool = True) -> Tres:
        """Return what a job asks for, before nodes are chosen for it."""
        cpus = job.planned if planned and job.planned else job.min_cpus
        tres = {"cores": cpus, "nodes": job.min_nodes}
        per_node, per_cpu = job.memory_node, job.memory_cpu
        if not per_node and not per_cpu:
            about = job.parts[0].about
            per_node, per_cpu = about.default_memory_per_node or 0, about.default_memory_per_core or 0
        tres["memory"] = per_node * job.min_nodes if per_node else per_cpu * cpus
        if not job.gres and not job.licenses:
            return tres
        for kind, count in job.gres.items():
            name = "gpus" if kind == "gpu" else kind.replace("gpu:", "gpus_")
            tres[name] = count * job.min_nodes
            if kind.startswith("gpu:"):
                tres["gpus"] = tres.get("gpus", 0) + count * job.min_nodes
        for name, count in job.licenses.items():
            tres[f"license_{name}"] = count
        return tres

    def before(self, job: SlurmJob, part: SlurmPart) -> str:
        """Return the limit that keeps a job from being tried at all; empty: none."""
        its = self.class_of(job, part)
        for tally, most, reason in its.running:
            if tally.jobs >= most:
                return reason
        return "" if its.wall is None else _beyond_wall(its, job_limit(job, part))

    def after(self, job: SlurmJob, part: SlurmPart, tres: Tres, nodes: int | None) -> str:
        """Return the limit that a job with these amounts would exceed; empty: none.

        `nodes`: those that it would have; None: they are not known.
        """
        its, limit = self.class_of(job, part), job_limit(job, part)
        if reason := _own_reason(its, limit, tres):
            return reason
        for rule in its.in_use:
            tally, name = rule.tally, rule.name
            amount = tres.get(name, 0)
            if rule.minutes:
                if self._is_used_up(rule, limit * amount):
                    return rule.reason
            elif name == "nodes":
                more = amount if nodes is None else (nodes & ~tally.mask).bit_count()
                if tally.mask.bit_count() + more > rule.most:
                    return rule.reason
            elif amount and tally.tres.get(name, 0) + amount > rule.most:
                return rule.reason
        return ""

    def _is_used_up(self, rule: UseRule, seconds: int) -> bool:
        """Tell whether minutes are used up; with `safe`, also by what jobs may yet use."""
        tally, name = rule.tally, rule.name
        used = int(tally.seconds.get(name, 0.0) // 60)
        if not self.site.settings.safe:
            return used >= rule.most
        return used + int(tally.reserved.get(name, 0.0) // 60) + seconds // 60 > rule.most

    def packed_on(self, job: SlurmJob, part: SlurmPart) -> int | None:
        """Return the nodes on which limits of nodes make a job prefer to run; None: there are none."""
        packed = self.class_of(job, part).packed
        if not packed:
            return None
        mask = 0
        for tally in packed:
            mask |= tally.mask
        return mask


def _beyond_wall(its: LimitClass, limit: int) -> str:
    return its.wall[1] if its.wall is not None and limit > its.wall[0] else ""


def _own_reason(its: LimitClass, limit: int, tres: Tres) -> str:
    """Return the limit of one job that a job is beyond."""
    if reason := _beyond_wall(its, limit):
        return reason
    for sign, name, amount, reason in its.own:
        if sign * (tres.get(name, 0) - amount) > 0:
            return reason
    return ""


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
