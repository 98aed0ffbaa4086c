"""Jobs as kernels read them: rows of jobs that wait, of each of their partitions, and of jobs that run."""

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from bridge.base.arrays import Ints
from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm.advance import Advance
from bridge.scheduler.slurm.arrays import SlurmStore
from bridge.scheduler.slurm.choice import is_exclusive, need_of
from bridge.scheduler.slurm.jobs import RUNNING, SlurmJob
from bridge.scheduler.slurm.limits import Ledger, job_limit
from bridge.scheduler.slurm.node_words import words_of
from bridge.scheduler.slurm.order import priority_in
from bridge.scheduler.slurm.site import Assoc, Site, SlurmPart

_JOB_ARRAYS = ("jobs", "per_job", "per_node", "licenses")
_ENTRY_ARRAYS = ("entries", "need", "priority", "line", "turn", "changed", "terms")
_RUN_ARRAYS = (
    "runs",
    "run_nodes",
    "run_gres",
    "run_amounts",
    "ends",
    "staying",
    "giving",
    "by_end",
    "by_id",
    "run_factors",
)


def rules_of(site: Site) -> Ints:
    """Return the numbers of a site that never change, by the names of `arrays`."""
    parameters, rules = site.parameters, np.zeros(at.RULES_SIZE, np.int64)
    for place, value in (
        (at.QUEUE_DEPTH, parameters.queue_depth),
        (at.PARTITION_DEPTH, parameters.partition_depth),
        (at.LIMIT_STOP, parameters.limit_stop),
        (at.BF_LICENSES, parameters.bf_licenses),
        (at.BF_MIN_PRIO, parameters.bf_min_prio),
        (at.BF_MIN_AGE, parameters.bf_min_age),
        (at.BF_PART_RESERVE, parameters.bf_part_reserve),
        (at.BF_MAX_USER, parameters.bf_max_user),
        (at.BF_MAX_PART, parameters.bf_max_part),
        (at.BF_MAX_ASSOC, parameters.bf_max_assoc),
        (at.BF_MAX_USER_PART, parameters.bf_max_user_part),
        (at.RUNNING_RESERVE, parameters.bf_running_reserve),
        (at.SAFE, site.settings.safe),
        (at.SIZE_COUNTS, bool(site.cluster.priority.job_size)),
        (at.IS_UNIFORM, site.is_uniform),
        (at.PREEMPTS, site.cluster.scheduler.preempt != "none"),
        (at.SPAN, parameters.bf_window),
        (at.RESOLUTION, parameters.bf_resolution),
        (at.MAP_SIZE, parameters.bf_map_size),
        (at.MOST_TESTS, parameters.bf_max_test),
        (at.SCALE, parameters.bf_window_scale),
        (at.LATE, site.settings.kill_wait + site.settings.over_time),
    ):
        rules[place] = int(value)
    return rules


class Scores(Protocol):
    """What writes of jobs' rows what their priorities are made of."""

    def place_of(self, assoc: Assoc) -> int:
        """Return the row of an association."""

    def write_terms(self, job: SlurmJob, part: SlurmPart, e: int) -> None:
        """Write what of an entry's priority does not change."""


class Rows:
    """The rows of jobs; `jobs` and `runs` say whose they are, `parts` of which partition an entry is."""

    def __init__(self, site: Site, ledger: Ledger, store: SlurmStore) -> None:
        self.site, self.ledger, self.store = site, ledger, store
        self.jobs: list[SlurmJob] = []
        self.parts: list[SlurmPart] = []
        self.kinds = list(site.licenses)
        self._free_jobs: list[int] = []
        self._free_entries: list[int] = []
        self._left: list[tuple[int, list[int]]] = []  # rows that may still stand in the line
        self.runs: list[SlurmJob] = []
        self._free_runs: list[int] = []
        self._over: list[int] = []  # rows of ended jobs that may still stand in `by_end`
        self._sets: dict[int, int] = {}
        self._alternatives: dict[tuple[tuple[frozenset[str], ...], bool], tuple[int, int]] = {}
        self._n_sets = 0
        self._users: dict[str, int] = {}
        self._assocs: dict[Assoc, int] = {}
        self.count = 0
        self.scores: Scores
        resources, n_parts, n_words = len(ledger.resources), len(site.parts), site.n_words
        store.put(
            jobs=np.zeros((64, at.JOB_SIZE), np.int64),
            per_job=np.zeros((64, resources), np.int64),
            per_node=np.zeros((64, resources), np.int64),
            licenses=np.zeros((64, len(self.kinds)), np.int64),
            entries=np.zeros((64, at.ENTRY_SIZE), np.int64),
            need=np.zeros((64, 12 + len(site.gres)), np.int64),
            priority=np.zeros(64),
            line=np.zeros(64, np.int64),
            turn=np.zeros(64, np.int64),
            changed=np.zeros(64, np.int64),
            sets=np.zeros((16, n_words), np.int64),
            runs=np.zeros((64, at.RUN_SIZE), np.int64),
            run_nodes=np.zeros((64, n_words), np.int64),
            run_gres=np.zeros((64, len(site.gres)), np.int64),
            run_amounts=np.zeros((64, resources), np.int64),
            pool=np.zeros((1024 + 4 * len(site.nodes), 3), np.int64),
            ends=np.zeros(64, np.int64),
            staying=np.zeros(64, np.int64),
            giving=np.zeros(64, np.int64),
            by_end=np.zeros(64, np.int64),
            by_id=np.zeros(64, np.int64),
            run_factors=np.zeros(64),
            user_counts=np.zeros(64, np.int64),
            assoc_counts=np.zeros(64, np.int64),
            both_counts=np.zeros((64, n_parts), np.int64),
        )

    # --- sets of nodes

    def _append_set(self, mask: int) -> int:
        self.store.make_room(self._n_sets + 1, "sets")
        self.store.sets[self._n_sets] = words_of(mask, self.site.n_words)
        self._n_sets += 1
        return self._n_sets - 1

    def _set(self, mask: int) -> int:
        if mask not in self._sets:
            self._sets[mask] = self._append_set(mask)
        return self._sets[mask]

    def _sets_of(self, job: SlurmJob) -> tuple[int, int]:
        """Return the first and behind the last of the sets of nodes of which a job takes one."""
        if job.gres and any(kind not in self.site.gres for kind in job.gres):
            return 0, 0
        key = (job.features, job.one_feature)
        if key not in self._alternatives:
            alternatives = [(one,) for one in job.features] if job.one_feature else [job.features]
            first = self._n_sets
            for one in alternatives:
                self._append_set(self.site.with_features(one))
            self._alternatives[key] = first, self._n_sets
        return self._alternatives[key]

    # --- jobs that wait

    def add(self, job: SlurmJob) -> None:
        """Give a job that waits its rows."""
        job.row = self._free_jobs.pop() if self._free_jobs else len(self.jobs)
        if job.row == len(self.jobs):
            self.jobs.append(job)
            self.store.make_room(len(self.jobs), *_JOB_ARRAYS)
        self.jobs[job.row] = job
        self.count += 1
        self.store.jobs[job.row, at.COUNT] = self.count
        job.entries = {}
        self.write(job)

    def _add_entry(self, job: SlurmJob, part: SlurmPart) -> int:
        if self._free_entries:
            e = self._free_entries.pop()
            self.parts[e] = part
        else:
            e = len(self.parts)
            self.parts.append(part)
            self.store.make_room(e + 2, *_ENTRY_ARRAYS)
        job.entries[part.index] = e
        return e

    def remove(self, job: SlurmJob) -> None:
        """Take away the rows of a job that waits no more, when they stand in no line."""
        self.store.jobs[job.row, at.IS_WAITING] = 0
        self._left.append((job.row, list(job.entries.values())))

    def forget_left(self) -> None:
        """Let rows of jobs that wait no more be others', before a pass and after the line is up to date."""
        for row, entries in self._left:
            self._free_jobs.append(row)
            self._free_entries += entries
        self._left.clear()

    def write(self, job: SlurmJob) -> None:
        """Write a job that waits as it now is."""
        store, j = self.store, job.row
        limit = self.ledger.memory_of(job)
        row = store.jobs[j]
        qos = self.site.qos[job.qos]
        row[: at.COUNT] = (
            *(1, job.submit, job.id, job.task, job.het, job.planned, job.blocked_at, job.min_cpus),
            *(self._place(self._users, job.user, "user_counts", "both_counts"),
              self._place(self._assocs, job.assoc, "assoc_counts")),
            *(job.eligible, int(qos.no_reserve), -1, int(bool(job.reservation)), job.preempting_until),
            *(*limit, int(bool(job.licenses)), 0),
            *(self.scores.place_of(job.assoc), job.site_factor, job.nice, int(job.held or job.never)),
        )  # fmt: skip
        if len(self.ledger.resources) > 3:
            store.per_job[j], store.per_node[j] = self.ledger.per_job(job), self.ledger.per_node(job)
        for name in job.licenses:
            self._know(name)
        if job.licenses:
            store.licenses[j] = [job.licenses.get(name, 0) for name in self.kinds]
        elif self.kinds:
            store.licenses[j] = 0
        for part in job.parts:
            self._write_entry(job, part, no_reserve=qos.no_reserve)

    def _know(self, name: str) -> None:
        """Let there be a column for a licence, even if the site has none of it."""
        if name not in self.kinds:
            self.kinds.append(name)
            wider = np.zeros((len(self.store.licenses), len(self.kinds)), np.int64)
            wider[:, :-1] = self.store.licenses
            self.store.put(licenses=wider, free_licenses=np.zeros(len(self.kinds), np.int64))

    def write_priorities(self, waiting: Iterable[SlurmJob]) -> None:
        """Write priorities that were computed afresh."""
        entries, fresh = [], []
        for job in waiting:
            for part in job.parts:
                entries.append(job.entries[part.index])
                fresh.append(priority_in((job, part)))
        self.store.priority[entries] = fresh

    def _place(self, places: dict, who: object, *names: str) -> int:  # type: ignore[type-arg]
        """Return the place of a user, or an association, in the counts of a pass."""
        place: int = places.setdefault(who, len(places))
        if place >= len(getattr(self.store, names[0])):
            self.store.make_room(place + 1, *names)
        return place

    def _write_entry(self, job: SlurmJob, part: SlurmPart, *, no_reserve: bool) -> None:
        e = job.entries[part.index] if part.index in job.entries else self._add_entry(job, part)
        store, site = self.store, self.site
        limit = for_backfill = job_limit(job, part)
        if job.min_limit:
            for_backfill = min(limit, job.min_limit)
        if site.cluster.scheduler.preempt != "none" and no_reserve:
            for_backfill = min(for_backfill, 60)
        could = job.could.get(part.index)
        fits = at.UNKNOWN if could is None else at.FITS if could else at.FITS_NOT
        store.entries[e] = (
            *(job.row, part.index, part.about.tier, limit, for_backfill),
            *(self.ledger.class_of(job, part).row, fits, *self._sets_of(job)),
            *(self._set(job.required), self._set(job.excluded)),
        )
        store.need[e] = need_of(site, job, part.index, is_exclusive(job, part.about.exclusive))
        store.priority[e] = priority_in((job, part))
        self.scores.write_terms(job, part, e)

    # --- reservations and licences

    def write_reservations(self, reservations: dict[str, Advance], waiting: Iterable[SlurmJob]) -> None:
        """Write advance reservations, and whose jobs are."""
        store, n_words = self.store, self.site.n_words
        booked = np.zeros((max(len(reservations), 1), at.BOOKED_SIZE), np.int64)
        nodes = np.zeros((len(booked), n_words), np.int64)
        for v, one in enumerate(reservations.values()):
            booked[v] = (one.start, one.end, int(one.maint), int(one.flex), 0)
            nodes[v] = words_of(one.nodes, n_words)
        if len(store.booked) == len(booked):  # in the midst of a pass
            booked[:, at.IS_FAILED] = store.booked[:, at.IS_FAILED]
        store.put(booked=booked, booked_nodes=nodes)
        store.now[at.RESERVATIONS] = len(reservations)
        places = {name: place for place, name in enumerate(reservations)}
        for job in waiting:
            store.jobs[job.row, at.OWN] = places.get(job.reservation, -1) if job.reservation else -1

    # --- jobs that run

    def start(self, job: SlurmJob) -> int:
        """Return the row of a job that begins to run."""
        job.run = self._free_runs.pop() if self._free_runs else len(self.runs)
        if job.run == len(self.runs):
            self.runs.append(job)
            self.store.make_room(2 * len(self.runs), *_RUN_ARRAYS)
        self.runs[job.run] = job
        self.store.runs[job.run, at.RUN_KEY] = job.key
        self.store.run_factors[job.run] = self.site.qos[job.qos].usage_factor
        if self.store.now[at.POOL] + len(self.site.nodes) > len(self.store.pool):
            self._pack_pool()
        return job.run

    def _pack_pool(self) -> None:
        """Move the nodes of running jobs together, and let there be room for as many again."""
        store, free = self.store, {*self._free_runs}
        used = [r for r in range(len(self.runs)) if r not in free and store.runs[r, at.LAST_ROW]]
        count = sum(int(store.runs[r, at.LAST_ROW] - store.runs[r, at.FIRST_ROW]) for r in used)
        pool, place = np.zeros((2 * count + 1024 + 4 * len(self.site.nodes), 3), np.int64), 0
        for r in used:
            first, last = store.runs[r, at.FIRST_ROW : at.LAST_ROW + 1].tolist()
            pool[place : place + last - first] = store.pool[first:last]
            store.runs[r, at.FIRST_ROW : at.LAST_ROW + 1] = place, place + last - first
            place += last - first
        store.put(pool=pool)
        store.now[at.POOL] = place

    def end(self, job: SlurmJob) -> None:
        """Take the row of a job that runs no more, when no pass remembers it."""
        self.store.runs[job.run, at.IS_RUNNING] = 0
        self._over.append(job.run)

    def forget_over(self) -> None:
        """Let rows of jobs that run no more be others'."""
        self._free_runs += self._over
        self._over.clear()

    def write_ends(self, running: Iterable[SlurmJob]) -> None:
        """Write which jobs run, and until when."""
        store, n = self.store, 0
        for job in running:
            is_running = job.state == RUNNING
            store.runs[job.run, at.END], store.runs[job.run, at.IS_RUNNING] = job.end, 1 if is_running else 2
            store.run_factors[job.run] = self.site.qos[job.qos].usage_factor
            if is_running:
                store.by_end[n] = job.run
                n += 1
        store.now[at.RUNS] = n
