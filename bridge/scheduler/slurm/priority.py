"""Slurm's multifactor priority: when its factors are fresh, and how usage decays."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm import fair_tree as shares
from bridge.scheduler.slurm import usage_kernels as kernels
from bridge.scheduler.slurm.arrays import Number
from bridge.scheduler.slurm.jobs import PENDING, RUNNING, SlurmJob
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.rows import Rows
from bridge.scheduler.slurm.site import Assoc, Site, SlurmPart

#: The first job's priority under priority/basic; each further submission has one less.
FIRST_BASIC = 4_294_901_759
_rank_now = Quick(kernels.rank_now)
_set_priority, _decay = Quick(kernels.set_priority), Quick(kernels.decay_usage)
_add_usage, _end_usage = Quick(kernels.add_usage), Quick(kernels.end_usage)


def _by_id(job: SlurmJob) -> tuple[int, int, int]:
    return job.id, job.task, job.key


def _take(job: SlurmJob, fresh: Sequence[float]) -> None:
    """Take over the priorities that kernels computed of all entries."""
    if len(job.parts) == 1:
        part = job.parts[0].index
        job.priority = int(fresh[job.entries[part]])
        job.priorities = {part: job.priority}
    else:
        job.priorities = {part.index: int(fresh[job.entries[part.index]]) for part in job.parts}
        job.priority = max(job.priorities.values())


class Priorities:
    """Computes priorities, and keeps the usage of associations, see `usage_kernels`."""

    last = Number(at.LAST_PERIOD)

    def __init__(self, site: Site, rows: Rows) -> None:
        self.site, self.rows, self.store, self.ledger = site, rows, rows.store, rows.ledger
        self.next_basic = FIRST_BASIC
        self._places: dict[Assoc, int] = {}
        self._tree: shares.Tree | None = None
        weights = site.cluster.priority
        rows.scores = self
        factors = np.zeros(kernels.FACTORS_SIZE)
        factors[:] = (
            *(weights.age, weights.fairshare, weights.max_age or 0, weights.half_life or 0, 0.5),
            *(weights.job_size, int(weights.relative_to_time), int(weights.favor_small), site.cpus),
        )
        self.store.put(
            usage=np.zeros(64),
            fs=np.ones(64),
            above=np.full(64, -1),
            which=np.zeros(1, np.int64),
            factors=factors,
            terms=np.zeros((64, 3 + len(weights.tres))),
        )
        self._refresh_shares()
        self.store.now[at.IS_STALE] = int(weights.fair_tree)
        _rank_now(self.store.bundle, self.tree())

    @property
    def is_basic(self) -> bool:
        return self.site.settings.basic

    def place_of(self, assoc: Assoc) -> int:
        """Return the row of an association."""
        place = self._places.get(assoc)
        if place is None:
            above = -1 if assoc.parent is None else self.place_of(assoc.parent)
            place = self._places[assoc] = len(self._places)
            self.store.make_room(place + 1, "usage", "fs", "above")
            self.store.fs[place], self.store.above[place] = 1.0, above
        return place

    def tree(self) -> shares.ShareArrays:
        """Return the arrays of the tree, of which everybody has a row."""
        if self._tree is not None and self._tree is self.site.root.tree:
            return self._tree.arrays
        tree = shares.tree_of(self.site.root)
        if tree is not self._tree:
            self._tree = tree
            self.store.put(which=np.array([self.place_of(one) for one in tree.assocs], np.int64))
        return tree.arrays

    def _refresh_shares(self) -> None:
        """Take the shares of the classic formula as they now are."""
        if not self.site.cluster.priority.fair_tree:
            accounts = list(self.site.accounts.values())
            for one in accounts:
                one.usage = float(self.store.usage[self.place_of(one)])
            shares.normalise_shares(self.site.root)
            shares.set_effective(accounts, self.site.root)
            shares.forget_effective(self.site.users.values())

    def submit(self, job: SlurmJob, now: int) -> None:
        """Give a job that waits, whose rows are written, its priority."""
        if self.is_basic:
            if job.priority == 0 and not job.held:
                job.priority = max(self.next_basic - job.nice, 1)
            self.next_basic -= 1
        elif not job.held and not job.never:
            self._compute(job, now)

    def refresh(self, job: SlurmJob, now: int) -> None:
        """Compute the priorities of a job that waits afresh, one for each partition."""
        if self.is_basic or job.held or job.never or job.state != PENDING:
            return
        self.rows.write(job)
        self._compute(job, now)

    def _compute(self, job: SlurmJob, now: int) -> None:
        store, root = self.store, self.site.root
        if self.site.cluster.priority.fairshare:
            if self.site.cluster.priority.fair_tree:
                tree = self.tree()
                if store.now[at.IS_STALE]:
                    _rank_now(store.bundle, tree)
            else:
                for one in (job.assoc, root):
                    one.usage = float(store.usage[self.place_of(one)])
                store.fs[self.place_of(job.assoc)] = shares.classic(job.assoc, root)
        for part in job.parts:
            _set_priority(store.bundle, job.entries[part.index], now)
        _take(job, store.priority)

    def write_terms(self, job: SlurmJob, part: SlurmPart, e: int) -> None:
        """Write what of an entry's priority does not change."""
        if self.is_basic:
            return
        terms = job.terms.get(part.index)
        if terms is None:
            terms = job.terms[part.index] = tuple(self._terms(job, part))
        row = self.store.terms[e]
        row[: len(terms)], row[len(terms) :] = terms, 0.0

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

    # --- usage

    def take(self, waiting: Iterable[SlurmJob]) -> None:
        """Take over the priorities that a kernel computed."""
        fresh = self.store.priority.tolist()
        for job in waiting:
            if not job.held and not job.never:
                _take(job, fresh)

    def run_period(self, waiting: Iterable[SlurmJob], running: Iterable[SlurmJob], now: int) -> None:
        """Let usage decay since the last period, add what running jobs used, compute all priorities.

        This is the classic formula's period; that of the fair tree is a kernel.
        """
        life = self.site.cluster.priority.half_life
        decay = 0.5 ** ((now - self.last if self.last else 0) / life) if life else 1.0
        self.last = now
        self.ledger.decay(decay)
        _decay(self.store.bundle, decay)
        self._refresh_shares()
        for job in sorted((*waiting, *running), key=_by_id):
            if job.state == RUNNING:
                _add_usage(self.store.bundle, job.run, now)
            elif job.state == PENDING and not job.held and not job.never:
                self._compute(job, now)

    def end(self, job: SlurmJob, now: int) -> None:
        """Add what a job used since the last period."""
        if self.store.rules[at.KEEPS_USAGE]:
            _end_usage(self.store.bundle, self.tree(), job.run, now)
