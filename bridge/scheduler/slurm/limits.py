"""Limits of QOS and associations: counters of what runs, and the tests before and after nodes are chosen."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from bridge.cluster.limits import Association, Limits, Qos
from bridge.cluster.reasons import reason_of_limit
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.masks import bits
from bridge.scheduler.slurm.site import Assoc, Site, SlurmPart

Tres = dict[str, int]
#: Limits that are tested before nodes are chosen for a job, and afterwards (max_wall is in both).
_BEFORE = ("max_jobs_per_user", "max_jobs_per_account", "grp_jobs", "max_jobs", "max_wall")
_AFTER = (
    *("max_tres_per_job", "min_tres_per_job", "grp_tres", "max_tres_per_user", "max_tres_per_account"),
    "grp_tres_mins",
)


@dataclass(slots=True)
class Tally:
    """What of a QOS, a user in it, or an association runs and waits.

    Attributes:
        submitted: jobs that wait or run.
        nodes: node -> jobs there.
        minutes: CPU-seconds (and others) of ended jobs, decayed.
        reserved: what running jobs may use up to their limits.
    """

    jobs: int = 0
    submitted: int = 0
    tres: Tres = field(default_factory=dict)
    nodes: dict[int, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    reserved: dict[str, float] = field(default_factory=dict)

    def start(self, job: SlurmJob, sign: int) -> None:
        self.jobs += sign
        for name, amount in job.tres.items():
            self.tres[name] = self.tres.get(name, 0) + sign * amount
        for n in bits(job.nodes):
            self.nodes[n] = self.nodes.get(n, 0) + sign
            if not self.nodes[n]:
                del self.nodes[n]


class Ledger:
    """All counters of a site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.qos: dict[str, Tally] = {name: Tally() for name in site.qos}
        self.of_user: dict[tuple[str, str], Tally] = {}
        self.of_account: dict[tuple[str, str], Tally] = {}
        self.assoc: dict[Assoc, Tally] = {}
        self._tested: dict[tuple[int, str, Assoc], tuple[bool, bool]] = {}
        every: tuple[Limits, ...] = (*site.cluster.qos, *site.cluster.accounts, *site.cluster.users)
        self.counts_minutes = any(one.grp_tres_mins for one in every)

    def is_tested(self, job: SlurmJob, part: SlurmPart) -> tuple[bool, bool]:
        """Tell whether a job has limits that are tested before nodes are chosen, and such as come after."""
        key = (part.index, job.qos, job.assoc)
        if key not in self._tested:
            qos, chain = self.qos_pair(job, part), job.assoc.chain()
            both: list[Limits] = [*qos, *(one.limits for one in chain)]
            before = any(getattr(one, name, None) is not None for one in both for name in _BEFORE)
            after = any(getattr(one, name, None) for one in both for name in _AFTER)
            wall = any(one.max_wall is not None for one in both)
            limits = self.site.settings.limits
            self._tested[key] = (limits and before, limits and (after or wall))
        return self._tested[key]

    def qos_pair(self, job: SlurmJob, part: SlurmPart | None) -> list[Qos]:
        """Return the QOS whose limits count, the first first: the partition's, then the job's."""
        own = self.site.qos[job.qos]
        name = part.about.qos if part is not None else ""
        if not name or name == job.qos or name not in self.site.qos:
            return [own]
        of_part = self.site.qos[name]
        return [own, of_part] if own.over_partition_qos else [of_part, own]

    def user_tally(self, qos: str, user: str) -> Tally:
        return self.of_user.setdefault((qos, user), Tally())

    def account_tally(self, qos: str, account: str) -> Tally:
        return self.of_account.setdefault((qos, account), Tally())

    def assoc_tally(self, assoc: Assoc) -> Tally:
        return self.assoc.setdefault(assoc, Tally())

    def tallies(self, job: SlurmJob, part: SlurmPart | None) -> Iterator[Tally]:
        account = job.assoc.parent.name if job.assoc.parent is not None else "root"
        for qos in self.qos_pair(job, part):
            yield self.qos[qos.name]
            yield self.user_tally(qos.name, job.user)
            yield self.account_tally(qos.name, account)
        for assoc in job.assoc.chain():
            yield self.assoc_tally(assoc)

    def submit(self, job: SlurmJob, sign: int = 1) -> None:
        """Count a job that waits or runs."""
        for tally in self.tallies(job, job.parts[0]):
            tally.submitted += sign

    def start(self, job: SlurmJob) -> None:
        """Count a job that runs."""
        for tally in self.tallies(job, job.part):
            tally.start(job, 1)
            if not self.counts_minutes:
                continue
            for name, amount in job.tres.items():
                tally.reserved[name] = tally.reserved.get(name, 0) + amount * job.limit

    def end(self, job: SlurmJob, now: int) -> None:
        """Count no more a job that ran until now."""
        lasted = max(now - job.start - job.suspended, 0)
        for tally in self.tallies(job, job.part):
            tally.start(job, -1)
            if not self.counts_minutes:
                continue
            for name, amount in job.tres.items():
                tally.reserved[name] = tally.reserved.get(name, 0) - amount * job.limit
                tally.seconds[name] = tally.seconds.get(name, 0.0) + amount * lasted

    def decay(self, factor: float) -> None:
        """Let what ended jobs used count for less."""
        if not self.counts_minutes:
            return
        every = (*self.qos.values(), *self.of_user.values(), *self.of_account.values(), *self.assoc.values())
        for tally in every:
            for name in tally.seconds:
                tally.seconds[name] *= factor

    # --- tests

    def refuses(self, job: SlurmJob, part: SlurmPart) -> str:
        """Return why a job is refused at submission; empty: it is not."""
        chain = self.qos_pair(job, part)
        account = job.assoc.parent.name if job.assoc.parent is not None else "root"
        tasks = 1
        tested: set[str] = set()
        for qos in chain:
            for limit, used in (
                ("max_submit_jobs_per_user", self.user_tally(qos.name, job.user).submitted),
                ("max_submit_jobs_per_account", self.account_tally(qos.name, account).submitted),
                ("grp_submit_jobs", self.qos[qos.name].submitted),
            ):
                most = getattr(qos, limit)
                if most is not None and limit not in tested:
                    tested.add(limit)
                    if used + tasks > most:
                        return reason_of_limit("QOS", limit)
        for assoc in job.assoc.chain():
            used = self.assoc_tally(assoc).submitted
            most = assoc.limits.grp_submit_jobs
            if most is not None and "grp_submit_jobs" not in tested and used + tasks > most:
                return reason_of_limit("Assoc", "grp_submit_jobs")
        most = _inherited(job.assoc, "max_submit_jobs")
        used = self.assoc_tally(job.assoc).submitted
        if most is not None and "max_submit_jobs_per_user" not in tested and used + tasks > most:
            return reason_of_limit("Assoc", "max_submit_jobs")
        if any(qos.deny_on_limit for qos in chain):
            return self._own_limits(job, part, self.request(job))
        return ""

    def request(self, job: SlurmJob, *, planned: bool = True) -> Tres:
        """Return what a job asks for, before nodes are chosen for it."""
        cpus = job.planned if planned and job.planned else job.min_cpus
        tres = {"cores": cpus, "nodes": job.min_nodes}
        per_node, per_cpu = job.memory_node, job.memory_cpu
        if not per_node and not per_cpu:
            about = job.parts[0].about
            per_node, per_cpu = about.default_memory_per_node or 0, about.default_memory_per_core or 0
        tres["memory"] = per_node * job.min_nodes if per_node else per_cpu * cpus
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
        if not self.is_tested(job, part)[0]:
            return ""
        account = job.assoc.parent.name if job.assoc.parent is not None else "root"
        unset = {"max_jobs_per_user", "max_jobs_per_account", "grp_jobs"}
        for qos in self.qos_pair(job, part):
            for limit, used in (
                ("max_jobs_per_user", self.user_tally(qos.name, job.user).jobs),
                ("max_jobs_per_account", self.account_tally(qos.name, account).jobs),
                ("grp_jobs", self.qos[qos.name].jobs),
            ):
                most = getattr(qos, limit)
                if most is not None and limit in unset:
                    unset.discard(limit)
                    if used >= most:
                        return reason_of_limit("QOS", limit)
        most = _inherited(job.assoc, "max_jobs")
        if most is not None and "max_jobs_per_user" in unset and self.assoc_tally(job.assoc).jobs >= most:
            return reason_of_limit("Assoc", "max_jobs")
        if "grp_jobs" in unset:
            for assoc in job.assoc.chain():
                most = assoc.limits.grp_jobs
                if most is not None and self.assoc_tally(assoc).jobs >= most:
                    return reason_of_limit("Assoc", "grp_jobs")
        return self._wall(job, part)

    def _wall(self, job: SlurmJob, part: SlurmPart) -> str:
        limit = job_limit(job, part)
        for qos in self.qos_pair(job, part):
            if qos.max_wall is not None:
                return reason_of_limit("QOS", "max_wall") if limit > qos.max_wall else ""
        most = _inherited(job.assoc, "max_wall")
        return reason_of_limit("Assoc", "max_wall") if most is not None and limit > most else ""

    def _own_limits(self, job: SlurmJob, part: SlurmPart, tres: Tres) -> str:
        """Return the limit of one job that it is beyond."""
        if reason := self._wall(job, part):
            return reason
        for field_name, beyond in (("max_tres_per_job", 1), ("min_tres_per_job", -1)):
            levels = [("QOS", getattr(qos, field_name)) for qos in self.qos_pair(job, part)]
            levels += [("Assoc", getattr(assoc.limits, field_name)) for assoc in job.assoc.chain()]
            tested: set[str] = set()
            for scope, amounts in levels:
                for name, amount in amounts.items():
                    if name in tested:
                        continue
                    tested.add(name)
                    if beyond * (tres.get(name, 0) - amount) > 0:
                        return reason_of_limit(scope, field_name, name)  # type: ignore[arg-type]
        return ""

    def after(self, job: SlurmJob, part: SlurmPart, tres: Tres, nodes: int | None) -> str:
        """Return the limit that a job with these amounts would exceed; empty: none.

        `nodes`: those that it would have; None: they are not known.
        """
        if not self.is_tested(job, part)[1]:
            return ""
        if reason := self._own_limits(job, part, tres):
            return reason
        account = job.assoc.parent.name if job.assoc.parent is not None else "root"
        tested: set[tuple[str, str]] = set()
        for qos in self.qos_pair(job, part):
            for limit, tally in (
                ("grp_tres", self.qos[qos.name]),
                ("max_tres_per_user", self.user_tally(qos.name, job.user)),
                ("max_tres_per_account", self.account_tally(qos.name, account)),
            ):
                if reason := self._beyond(getattr(qos, limit), limit, tally, tres, nodes, tested, "QOS"):
                    return reason
            if reason := self._minutes(qos, self.qos[qos.name], job, part, tres, tested, "QOS"):
                return reason
        for assoc in job.assoc.chain():
            tally = self.assoc_tally(assoc)
            own: set[tuple[str, str]] = {*tested}
            if reason := self._beyond(assoc.limits.grp_tres, "grp_tres", tally, tres, nodes, own, "Assoc"):
                return reason
            if reason := self._minutes(assoc.limits, tally, job, part, tres, {*tested}, "Assoc"):
                return reason
        return ""

    def _beyond(
        self,
        amounts: object,
        limit: str,
        tally: Tally,
        tres: Tres,
        nodes: int | None,
        tested: set[tuple[str, str]],
        scope: str,
    ) -> str:
        for name, most in amounts.items():  # type: ignore[attr-defined]
            if (limit, name) in tested:
                continue
            tested.add((limit, name))
            if name == "nodes":
                used = len(tally.nodes)
                if nodes is None:
                    used += tres.get("nodes", 0)
                else:
                    used += sum(n not in tally.nodes for n in bits(nodes))
            else:
                if not tres.get(name, 0):
                    continue
                used = tally.tres.get(name, 0) + tres[name]
            if used > most:
                return reason_of_limit(scope, limit, name)  # type: ignore[arg-type]
        return ""

    def _minutes(
        self,
        limits: Limits,
        tally: Tally,
        job: SlurmJob,
        part: SlurmPart,
        tres: Tres,
        tested: set[tuple[str, str]],
        scope: str,
    ) -> str:
        for name, most in limits.grp_tres_mins.items():
            if ("grp_tres_mins", name) in tested:
                continue
            tested.add(("grp_tres_mins", name))
            used = int(tally.seconds.get(name, 0.0) // 60)
            if self.site.settings.safe:
                used += int(tally.reserved.get(name, 0.0) // 60)
                used += job_limit(job, part) * tres.get(name, 0) // 60
                is_beyond = used > most
            else:
                is_beyond = used >= most
            if is_beyond:
                return reason_of_limit(scope, "grp_tres_mins", name)  # type: ignore[arg-type]
        return ""

    def packed_on(self, job: SlurmJob, part: SlurmPart) -> int | None:
        """Return the nodes on which limits of nodes make a job prefer to run; None: there are none."""
        groups: list[Tally] = []
        for qos in self.qos_pair(job, part):
            if "nodes" in qos.grp_tres:
                groups.append(self.qos[qos.name])
            if "nodes" in qos.max_tres_per_user:
                groups.append(self.user_tally(qos.name, job.user))
        for assoc in job.assoc.chain():
            if "nodes" in assoc.limits.grp_tres:
                groups.append(self.assoc_tally(assoc))
        if not groups or not self.site.settings.limits:
            return None
        mask = 0
        for tally in groups:
            for n in tally.nodes:
                mask |= 1 << n
        return mask


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
