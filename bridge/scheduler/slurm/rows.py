"""Jobs as kernels read them: rows of jobs that wait, of each of their partitions, and of jobs that run."""

from collections.abc import Iterable
from struct import Struct
from typing import Protocol

import numpy as np

from bridge.base.arrays import Ints
from bridge.scheduler.slurm import arrays as at
from bridge.scheduler.slurm.advance import Advance
from bridge.scheduler.slurm.arrays import SlurmStore
from bridge.scheduler.slurm.choice import as_gres_row, is_exclusive, need_of
from bridge.scheduler.slurm.choice_kernels import FREE_CPUS
from bridge.scheduler.slurm.jobs import RUNNING, SlurmJob
from bridge.scheduler.slurm.limits import Ledger, job_limit
from bridge.scheduler.slurm.node_words import words_of
from bridge.scheduler.slurm.order import priority_in
from bridge.scheduler.slurm.site import Assoc, Site, SlurmPart

#: What is written of a job, and of an entry: faster than by NumPy.
_JOB, _ENTRY = Struct(f"{at.COUNT}q"), Struct(f"{at.ENTRY_SIZE}q")
_JOB_ARRAYS = ("jobs", "per_job", "per_node", "licenses", "job_gres", "job_factors", "changed")
_ENTRY_ARRAYS = ("entries", "need", "priority", "line", "turn", "terms")
_RUN_ARRAYS = (
    "runs",
    "run_nodes",
    "run_gres",
    "run_amounts",
    "run_licenses",
    "free_runs",
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
        (at.MAX_START, parameters.bf_max_start),
        (at.OVER_TIME, site.settings.over_time),
        (at.RESV_OVER_RUN, site.settings.resv_over_run),
        (at.KEEPS_USAGE, not site.settings.basic),
        (at.PERIODS, at.BY_KERNEL if site.cluster.priority.fair_tree else at.BY_PYTHON),
    ):
        rules[place] = int(value)
    if site.settings.basic:
        rules[at.PERIODS] = at.NO_PERIODS
    return rules


class Scores(Protocol):
    """What writes of jobs' rows what their priorities are made of."""

    def place_of(self, assoc: Assoc) -> int:
        """Return the row of an association."""

    def write_terms(self, job: SlurmJob, part: SlurmPart, e: int) -> None:
        """Write what of an entry's priority does not change."""


class Rows:
    """The rows of jobs; `jobs` and `runs` say whose they are, `parts` of which partition an entry is.

    A row of `runs` is nobody's until Python has taken over that its job has started.
    """

    def __init__(self, site: Site, ledger: Ledger, store: SlurmStore) -> None:
        self.site, self.ledger, self.store = site, ledger, store
        self.jobs: list[SlurmJob] = []
        self.parts: list[SlurmPart] = []
        self.kinds = list(site.licenses)
        self._free_jobs: list[int] = []
        self._free_entries: list[int] = []
        self._left: list[tuple[int, list[int]]] = []  # rows that may still stand in the line
        self.runs: list[SlurmJob | None] = []
        self._over: list[tuple[int, int]] = []  # rows of ended jobs, and how often `by_end` was sorted then
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
            free_licenses=np.array(list(site.licenses.values()), np.int64),
            job_gres=np.zeros((64, len(site.gres)), np.int64),
            job_factors=np.zeros(64),
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
            run_licenses=np.zeros((64, len(self.kinds)), np.int64),
            free_runs=np.zeros(64, np.int64),
            news=np.zeros((64, at.NEWS_SIZE), np.int64),
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
        if not self._free_jobs:
            self.forget_left()
        job.row = self._free_jobs.pop() if self._free_jobs else len(self.jobs)
        if job.row == len(self.jobs):
            self.jobs.append(job)
            self.store.make_room(len(self.jobs), *_JOB_ARRAYS)
        self.jobs[job.row] = job
        self.count += 1
        self.store.jobs[job.row, at.COUNT], self.store.jobs[job.row, at.IS_CHANGED] = self.count, 0
        self.store.now[at.N_WAITING] += 1
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
            self.store.now[at.N_ENTRIES] = e + 1
        job.entries[part.index] = e
        return e

    def withdraw(self, job: SlurmJob) -> None:
        """Let a job wait no more that does not run either."""
        self.store.jobs[job.row, at.IS_WAITING], self.store.now[at.HAS_GONE] = 0, 1
        self.store.now[at.N_WAITING] -= 1
        self.leave(job)

    def leave(self, job: SlurmJob) -> None:
        """Take away the rows of a job that waits no more, when they stand in no line."""
        self._left.append((job.row, list(job.entries.values())))

    def forget_left(self) -> None:
        """Let rows of jobs that wait no more be others', between passes if the line is up to date."""
        if self.store.now[at.HAS_GONE]:
            return
        for row, entries in self._left:
            self._free_jobs.append(row)
            self._free_entries += entries
        self._left.clear()

    def write(self, job: SlurmJob) -> None:
        """Write a job that waits as it now is."""
        store, j = self.store, job.row
        limit = self.ledger.memory_of(job)
        qos = self.site.qos[job.qos]
        _JOB.pack_into(
            *(store.jobs, j * store.jobs.strides[0]),
            *(1, job.submit, job.id, job.task, job.het, job.planned, job.blocked_at, job.min_cpus),
            *(self._place(self._users, job.user, "user_counts", "both_counts"),
              self._place(self._assocs, job.assoc, "assoc_counts")),
            *(job.eligible, int(qos.no_reserve), -1, int(bool(job.reservation)), job.preempting_until),
            *(*limit, int(bool(job.licenses)), 0),
            *(self.scores.place_of(job.assoc), job.site_factor, job.nice, int(job.held or job.never)),
            *(job.key, self.ledger.class_of(job, job.parts[0]).row),
        )  # fmt: skip
        store.job_factors[j] = qos.usage_factor
        if self.site.gres:
            store.job_gres[j] = as_gres_row(self.site, job)
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
            for array in ("licenses", "run_licenses", "free_licenses"):
                before = getattr(self.store, array)
                wider = np.zeros((*before.shape[:-1], len(self.kinds)), np.int64)
                wider[..., :-1] = before
                self.store.put(**{array: wider})

    def add_licenses(self, name: str, count: int) -> None:
        """Let so many licences more be free."""
        self._know(name)
        self.store.free_licenses[self.kinds.index(name)] += count

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
        _ENTRY.pack_into(
            *(store.entries, e * store.entries.strides[0]),
            *(job.row, part.index, part.about.tier, limit, for_backfill),
            *(self.ledger.class_of(job, part).row, fits, *self._sets_of(job)),
            *(self._set(job.required), self._set(job.excluded), job.limit or limit, 0),
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

    def make_room(self) -> None:
        """Let there be room for what passes may write until Python looks again."""
        store, waiting = self.store, int(self.store.now[at.N_WAITING])
        if store.now[at.N_FREE_RUNS] < waiting:
            self._forget_over()
            self._add_runs(waiting - int(store.now[at.N_FREE_RUNS]))
        need = waiting * len(self.site.nodes)
        if store.now[at.POOL] + need > len(store.pool):
            need = min(need, int(np.maximum(store.book[:, FREE_CPUS], 0).sum()))
            if store.now[at.POOL] + need > len(store.pool):
                self._pack_pool(need)
        running = int(store.now[at.N_RUNNING])
        store.make_room(int(store.now[at.N_NEWS]) + 2 * waiting + 256, "news")
        store.make_room(64 + 2 * (int(store.now[at.N_LINE]) + running + 2 * waiting), "times", "free")

    def _add_runs(self, count: int) -> None:
        """Let there be so many free rows more."""
        store, first = self.store, len(self.runs)
        for _ in range(max(count, first, 0)):
            self.runs.append(None)
        store.make_room(2 * len(self.runs), *_RUN_ARRAYS)
        n = int(store.now[at.N_FREE_RUNS])
        store.free_runs[n : n + len(self.runs) - first] = range(len(self.runs) - 1, first - 1, -1)
        store.now[at.N_FREE_RUNS] = n + len(self.runs) - first

    def _pack_pool(self, need: int) -> None:
        """Move the nodes of running jobs together, and let there be room for so many more rows."""
        store = self.store
        used = [r for r, job in enumerate(self.runs) if job is not None]
        count = sum(int(store.runs[r, at.LAST_ROW] - store.runs[r, at.FIRST_ROW]) for r in used)
        pool, place = np.zeros((4 * (count + need) + 16_384, 3), np.int64), 0
        for r in used:
            first, last = store.runs[r, at.FIRST_ROW : at.LAST_ROW + 1].tolist()
            pool[place : place + last - first] = store.pool[first:last]
            store.runs[r, at.FIRST_ROW : at.LAST_ROW + 1] = place, place + last - first
            place += last - first
        store.put(pool=pool)
        store.now[at.POOL] = place

    def end(self, job: SlurmJob) -> None:
        """Take the row of a job that runs no more, and whose nodes are free, when no pass remembers it."""
        self._over.append((job.run, int(self.store.now[at.N_ORDERINGS])))

    def _forget_over(self) -> None:
        """Let rows of jobs that run no more be others'."""
        store, orderings, left = self.store, int(self.store.now[at.N_ORDERINGS]), []
        for run, before in self._over:
            if before < orderings:
                self.runs[run] = None
                store.free_runs[store.now[at.N_FREE_RUNS]] = run
                store.now[at.N_FREE_RUNS] += 1
            else:
                left.append((run, before))
        self._over = left

    def write_ends(self, running: Iterable[SlurmJob]) -> None:
        """Write which jobs run, and until when."""
        store, n = self.store, 0
        for job in running:
            is_running = job.state == RUNNING
            row = store.runs[job.run]
            row[at.END], row[at.IS_RUNNING], row[at.DUE] = job.end, 1 if is_running else 2, self.due(job)
            row[at.COUNTED_IN] = self.ledger.class_of(job, job.parts[0]).row
            store.run_factors[job.run] = self.site.qos[job.qos].usage_factor
            if is_running:
                store.by_end[n] = job.run
                n += 1
        store.now[at.RUNS] = n

    def due(self, job: SlurmJob) -> int:
        """Return from when on a check of limits ends a running job."""
        if job.is_victim:
            return job.end
        settings = self.site.settings
        limit = job.end + settings.over_time
        return min(limit, job.until + settings.resv_over_run) if job.until else limit
