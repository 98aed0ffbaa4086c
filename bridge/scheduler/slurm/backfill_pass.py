"""The backfill pass: every job in turn is planned against a map of time, and started if it can start now."""

from dataclasses import dataclass

from bridge.scheduler.slurm import advance, preemption
from bridge.scheduler.slurm.choice import is_exclusive
from bridge.scheduler.slurm.controller import LIMIT, STARTED, Controller
from bridge.scheduler.slurm.jobs import PENDING, RUNNING, SlurmJob
from bridge.scheduler.slurm.limits import job_limit
from bridge.scheduler.slurm.masks import mask_of
from bridge.scheduler.slurm.order import priority_in
from bridge.scheduler.slurm.site import SlurmPart
from bridge.scheduler.slurm.time_map import TimeMap
from bridge.scheduler.slurm.will_run import Prospect, will_run


@dataclass(slots=True)
class _Plan:
    """What a job was planned to; `later`: when other nodes become free."""

    start: int
    limit: int
    forecast: Prospect


class _Pass:
    def __init__(self, slurm: Controller, now: int) -> None:
        self.slurm, self.now = slurm, now
        self.parameters = slurm.site.parameters
        parameters = self.parameters
        self.map = TimeMap(now, parameters.bf_window, parameters.bf_resolution, slurm.site.all_nodes)
        self.tests = self.starts = 0
        self.is_over = False
        self.counts: dict[tuple[str, object], int] = {}
        self.reserved_in: dict[int, int] = {}
        self._sort_running()
        if parameters.bf_running_reserve:
            for job in self.running:
                if job.whole:
                    self._occupy(job)

    def _occupy(self, job: SlurmJob) -> None:
        """Take the nodes of a running job out of the map until its limit."""
        begin, resolution = self.map.records[0].begin, self.parameters.bf_resolution
        self.map.reserve(begin, max(job.end // resolution * resolution, begin + resolution), job.nodes)

    def _sort_running(self) -> None:
        jobs = (job for job in self.slurm.running.values() if job.state == RUNNING)
        self.running = sorted(jobs, key=lambda job: job.end)

    def look_at(self, job: SlurmJob, part: SlurmPart) -> str:
        """Plan one job; returns `started`, or what else came of it."""
        slurm, now, parameters = self.slurm, self.now, self.parameters
        if slurm.ledger.before(job, part) or not self._counts_in(job, part):
            return "skipped"
        if not slurm.has_licenses(job) and not parameters.bf_licenses:
            return "skipped"
        limit = job_limit(job, part)
        if job.min_limit:
            limit = min(limit, job.min_limit)
        own_qos = slurm.site.qos[job.qos]
        if own_qos.no_reserve and slurm.site.cluster.scheduler.preempt != "none":
            limit = min(limit, 60)
        start = now
        if job.het:
            start = max(start, max(slurm.het_estimates.get(job.het, {}).values(), default=0))
        while True:
            nodes, later = self._free(job, part, start, limit)
            if nodes.bit_count() < job.min_nodes or job.required & ~nodes:
                if later <= start:
                    return "none"
                start = later
                continue
            if self.tests > parameters.bf_max_test:
                self.is_over = True
                return "over"
            self.tests += 1
            forecast = self._forecast(job, part, nodes)
            if forecast is None:
                if later <= start:
                    return "none"
                start = later
                continue
            job.planned = sum(forecast.chosen.values())
            begin = max(forecast.start, start)
            chosen = mask_of(forecast.chosen)
            if begin <= now and chosen & slurm.completing_nodes:
                begin, later = now + 1, 0
            if begin <= now and job.het:
                slurm.het_estimates.setdefault(job.het, {})[job.het_offset] = begin
            elif begin <= now:
                result = self._start(job, part, nodes)
                if result in (STARTED, LIMIT):
                    return result
            if later and begin > later:
                start = later
                continue
            if job.het:
                slurm.het_estimates.setdefault(job.het, {})[job.het_offset] = begin
            if begin > now + parameters.bf_window:
                return "none"
            if self.map.count >= parameters.bf_map_size:
                self.is_over = True
                return "over"
            resolution = parameters.bf_resolution
            low, high = begin // resolution * resolution, (begin + limit) // resolution * resolution
            if self.map.overlaps(low, high, chosen):
                if begin <= start:
                    return "none"
                start = begin
                continue
            return self._reserve(job, part, low, max(high, low + resolution), chosen, forecast)

    def _free(self, job: SlurmJob, part: SlurmPart, start: int, limit: int) -> tuple[int, int]:
        """Return the nodes that a job may be planned on from an instant, and the next instant to look at."""
        slurm = self.slurm
        nodes = part.mask & slurm.up & ~job.excluded
        nodes, is_reserved = advance.usable_nodes(slurm.reservations, job, nodes, start, limit)
        nodes, later = self.map.free(start, start + limit, nodes)
        if is_reserved:
            end = advance.next_end(slurm.reservations, start, self.parameters.bf_resolution) + 1
            if end > 1 and (not later or end < later):
                later = end
        return nodes, later

    def _counts_in(self, job: SlurmJob, part: SlurmPart) -> bool:
        """Count a job in its user, partition and association; False if one had enough in this pass."""
        parameters = self.parameters
        for key, most in (
            (("user", job.user), parameters.bf_max_user),
            (("part", part.index), parameters.bf_max_part),
            (("assoc", job.assoc), parameters.bf_max_assoc),
            (("both", (job.user, part.index)), parameters.bf_max_user_part),
        ):
            if most:
                if self.counts.get(key, 0) >= most:
                    return False
                self.counts[key] = self.counts.get(key, 0) + 1
        return True

    def _forecast(self, job: SlurmJob, part: SlurmPart, nodes: int) -> Prospect | None:
        slurm = self.slurm
        exclusive = is_exclusive(job, part.about.exclusive)
        victims = preemption.candidates(slurm.site, job, part, slurm.running.values(), self.now)
        alternatives = [(one,) for one in job.features] if job.one_feature else [job.features]
        best: Prospect | None = None
        features, one_feature = job.features, job.one_feature
        try:
            for alternative in alternatives:
                job.features, job.one_feature = alternative, False
                forecast = will_run(
                    slurm.site,
                    job,
                    nodes,
                    part.index,
                    slurm.usage,
                    self.running,
                    victims,
                    slurm.weights,
                    self.now,
                    exclusive,
                )
                if forecast is not None and (best is None or forecast.start < best.start):
                    best = forecast
        finally:
            job.features, job.one_feature = features, one_feature
        return best

    def _start(self, job: SlurmJob, part: SlurmPart, nodes: int) -> str:
        slurm = self.slurm
        result = slurm.try_start(job, part, nodes & ~slurm.completing_nodes, self.now, "backfill")
        if result == STARTED:
            self.starts += 1
            self._sort_running()
            if job.whole:
                self._occupy(job)
            if self.parameters.bf_max_start and self.starts >= self.parameters.bf_max_start:
                self.is_over = True
        return result

    def _reserve(
        self, job: SlurmJob, part: SlurmPart, start: int, end: int, nodes: int, forecast: Prospect
    ) -> str:
        slurm, parameters = self.slurm, self.parameters
        tres = slurm.tres_of(job, part, forecast.chosen)
        if slurm.ledger.after(job, part, tres, nodes):
            return "limit"
        if slurm.site.qos[job.qos].no_reserve:
            return "unreserved"
        if parameters.bf_part_reserve:
            if self.reserved_in.get(part.index, 0) >= parameters.bf_part_reserve:
                return "unreserved"
            self.reserved_in[part.index] = self.reserved_in.get(part.index, 0) + 1
        if parameters.bf_min_prio and priority_in((job, part)) < parameters.bf_min_prio:
            return "unreserved"
        if parameters.bf_min_age and self.now - job.eligible < parameters.bf_min_age:
            return "unreserved"
        self.map.reserve(start, end, nodes)
        return "planned"


def backfill_pass(slurm: Controller, now: int) -> None:
    """Plan the queue once, and start what can start now."""
    slurm.het_estimates.clear()
    walk = _Pass(slurm, now)
    for head, part in slurm.queue(now):
        _look_at_all(walk, head, part)
        if walk.is_over:
            break
    _start_heterogeneous(slurm, now)


def _look_at_all(walk: _Pass, head: SlurmJob, part: SlurmPart) -> None:
    """Plan a job, or the next tasks of its array."""
    slurm, planned = walk.slurm, 0
    tasks = [head]
    if head.task >= 0:
        tasks = [one for one in slurm.by_id[head.id] if one.state == PENDING and one.key in slurm.pending]
    most = slurm.site.parameters.bf_array_resv
    for job in tasks:
        if job.state != PENDING or planned >= most or not slurm.is_independent(job, walk.now):
            return
        if head.array_most:
            running = sum(one.state == RUNNING for one in slurm.by_id[head.id])
            if running + planned >= head.array_most:
                return
        result = walk.look_at(job, part)
        if walk.is_over:
            return
        if result == STARTED:
            continue
        if result != "planned":
            return
        planned += 1


def _start_heterogeneous(slurm: Controller, now: int) -> None:
    """Start heterogeneous jobs all of whose components could start now."""
    for het, estimates in list(slurm.het_estimates.items()):
        jobs = sorted(
            (job for job in slurm.pending.values() if job.het == het), key=lambda job: job.het_offset
        )
        if not jobs or len(estimates) < len(jobs) or max(estimates.values()) > now:
            continue
        together: list[SlurmJob] = []
        for job in jobs:
            nodes = slurm.up & ~slurm.completing_nodes
            if slurm.try_start(job, job.parts[0], nodes, now, "backfill") != STARTED:
                break
            together.append(job)
