"""Slurm's multifactor priority: when its factors are fresh, and how usage decays."""

import math
from collections.abc import Iterable, Iterator

from bridge.cluster.description import PriorityConfig
from bridge.scheduler.slurm import fair_tree as shares
from bridge.scheduler.slurm.jobs import PENDING, RUNNING, SlurmJob
from bridge.scheduler.slurm.limits import Ledger, job_limit
from bridge.scheduler.slurm.site import Site, SlurmPart

#: The first job's priority under priority/basic; each further submission has one less.
FIRST_BASIC = 4_294_901_759


def size_factor(
    weights: PriorityConfig, nodes: int, cpus: int, seconds: float, count: int, every: int
) -> float:
    """Return the size of a job as a part of a site's `count` nodes and `every` core; `seconds`: its limit."""
    if weights.relative_to_time:
        minutes = max(seconds / 60, 1.0)
        amount = max(nodes * every / count, cpus) / minutes
        factor = min(amount / every, 1.0)
        return 1.0 - factor if weights.favor_small else factor
    if weights.favor_small:
        return ((count - nodes) / count + (every - cpus) / every) / 2
    return (nodes / count + cpus / every) / 2


def _by_id(job: SlurmJob) -> tuple[int, int, int]:
    return job.id, job.task, job.key


class Priorities:
    """Computes priorities, and keeps the usage of associations."""

    def __init__(self, site: Site, ledger: Ledger) -> None:
        self.site, self.ledger = site, ledger
        self.next_basic = FIRST_BASIC
        self.last = 0
        self.is_stale = False
        self.accounts = list(site.accounts.values())
        self._refresh_tree()

    @property
    def is_basic(self) -> bool:
        return self.site.settings.basic

    def _refresh_tree(self) -> None:
        if self.site.cluster.priority.fair_tree:
            shares.fair_tree(self.site.root)
        else:
            shares.normalise_shares(self.site.root)
            shares.set_effective(self.accounts, self.site.root)
            shares.forget_effective(self.site.users.values())

    def submit(self, job: SlurmJob, now: int) -> None:
        if self.is_basic:
            if job.priority == 0 and not job.held:
                job.priority = max(self.next_basic - job.nice, 1)
            self.next_basic -= 1
            return
        self.refresh(job, now)

    def refresh(self, job: SlurmJob, now: int) -> None:
        """Compute a job's priorities afresh, one for each partition."""
        if self.is_basic or job.held or job.never:
            return
        if len(job.parts) == 1:
            part = job.parts[0]
            job.priority = self.of(job, part, now)
            job.priorities = {part.index: job.priority}
            return
        job.priorities = {part.index: self.of(job, part, now) for part in job.parts}
        job.priority = max(job.priorities.values())

    def of(self, job: SlurmJob, part: SlurmPart, now: int) -> int:
        weights = self.site.cluster.priority
        total = 0.0
        if weights.age and job.eligible and now > job.eligible:
            total += weights.age * min(
                1.0, (now - job.eligible) / weights.max_age if weights.max_age else 1.0
            )
        if weights.fairshare:
            if self.is_stale:
                self._rank()
            factor = job.assoc.fs if weights.fair_tree else shares.classic(job.assoc, self.site.root)
            total += weights.fairshare * factor
        if weights.job_size:
            total += weights.job_size * self._size(job, part)
        terms = job.terms.get(part.index)
        if terms is None:
            terms = job.terms[part.index] = tuple(self._terms(job, part))
        for term in terms:  # one by one: their sum is rounded otherwise
            total += term
        return max(int(total + job.site_factor) - job.nice, 1)

    def _terms(self, job: SlurmJob, part: SlurmPart) -> Iterator[float]:
        """Yield the terms of a priority that do not change."""
        weights = self.site.cluster.priority
        if weights.partition and self.site.most_factor:
            yield weights.partition * part.about.priority_factor / self.site.most_factor
        if weights.qos and self.site.most_qos:
            yield weights.qos * self.site.qos[job.qos].priority / self.site.most_qos
        if weights.association:
            most = max((one.about.priority for one in self.site.users.values() if one.about), default=0)
            own = job.assoc.about.priority if job.assoc.about else 0
            yield weights.association * own / most if most else 0.0
        request = self.ledger.request(job) if weights.tres else {}
        for name, weight in weights.tres.items():
            whole = {"cores": part.cpus, "memory": part.memory, "nodes": part.mask.bit_count()}.get(name, 0)
            if name.startswith("gpus"):
                whole = part.gres.get(name.replace("gpus_", "gpu:").replace("gpus", "gpu"), 0)
            if whole:
                yield weight * request.get(name, 0) / whole

    def _size(self, job: SlurmJob, part: SlurmPart) -> float:
        weights, seconds = self.site.cluster.priority, 0.0
        if weights.relative_to_time:
            seconds = job_limit(job, part)
        cpus = job.planned or job.min_cpus
        return size_factor(weights, job.min_nodes, cpus, seconds, len(self.site.nodes), self.site.cpus)

    # --- usage

    def run_period(self, jobs: Iterable[SlurmJob], now: int) -> None:
        """Let usage decay since the last period, add what running jobs used, compute all priorities."""
        if self.is_basic:
            return
        life = self.site.cluster.priority.half_life
        elapsed = now - self.last if self.last else 0
        decay = 0.5 ** (elapsed / life) if life else 1.0
        for assoc in (*self.site.accounts.values(), *self.site.users.values()):
            assoc.usage *= decay
        self.ledger.decay(decay)
        if self.site.cluster.priority.fair_tree:
            waiting = []
            running = []
            for job in jobs:
                if job.state == PENDING:
                    waiting.append(job)
                else:
                    running.append(job)
            running.sort(key=_by_id)
            for job in running:
                self._add_running(job, now, life)
            self.is_stale = True
            for job in waiting:
                self.refresh(job, now)
        else:
            ordered = sorted(jobs, key=_by_id)
            self._refresh_tree()
            for job in ordered:
                self._add_running(job, now, life)
                if job.state == PENDING:
                    self.refresh(job, now)
        self.last = now

    def _add_running(self, job: SlurmJob, now: int, life: int) -> None:
        if job.state == RUNNING:
            since = max(job.last_usage, job.start)
            if now > since:
                self._add(job, now - since, life)
                job.last_usage = now

    def end(self, job: SlurmJob, now: int) -> None:
        """Add what a job used since the last period."""
        if self.is_basic:
            return
        since = max(job.last_usage, job.start)
        if now > since:
            self._rank()
            self._add(job, now - since, self.site.cluster.priority.half_life)
            job.last_usage = now

    def _rank(self) -> None:
        """Rank users by usage as it was in the last period, if nobody has yet."""
        if self.is_stale:
            self.is_stale = False
            shares.fair_tree(self.site.root)

    def _add(self, job: SlurmJob, elapsed: int, life: int) -> None:
        decay = math.pow(0.5, elapsed / life) if life else 1.0
        qos = self.site.qos[job.qos]
        amount = elapsed * decay * job.cpus * qos.usage_factor
        for assoc in job.assoc.chain():
            assoc.usage += amount
