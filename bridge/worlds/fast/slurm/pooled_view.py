"""A site under Slurm as features read it: one pool of nodes, in the records of the compiled scheduler."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bridge.base.arrays import Array
from bridge.base.jit import kernel
from bridge.scheduler import core
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.protocol import PROTOCOLS, Policy
from bridge.scheduler.reservation import reserve_head
from bridge.scheduler.slurm.agent_passes import SlurmQuestion
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.state import SECOND, State
from bridge.scheduler.state import allocate as allocate_state
from bridge.worlds.fast import episode

if TYPE_CHECKING:
    from bridge.worlds.fast.episode import Scenario


@kernel
def write_decision(state: State, b: int, now: int, free: int, head: int, candidates: Array) -> None:
    """Let a decision over `candidates` wait; before `head`, unless it is -1, which EASY would reserve."""
    env = state.scalars[b]
    env.now = now
    state.free[b, 0] = free
    env.n_candidates = candidates.shape[0]
    for k in range(candidates.shape[0]):
        state.candidates[b, k] = candidates[k]
    env.head = head
    env.is_reserved = 0
    if head >= 0:
        reserve_head(state, b, head)
        env.is_reserved = 1


_submit, _finish, _mark_running = Quick(core.submit), Quick(core.finish), Quick(core.mark_running)
_write_decision, _sort_by_scores = Quick(write_decision), Quick(core.sort_by_scores)


class PooledView:
    """What B sites look like at their decisions; a job counts as the nodes that it asks for.

    Free are the nodes that are up and have a free CPU. What is reserved for the head is what EASY would
    reserve on one pool of nodes: its shadow time, and the extra nodes.

    Attributes:
        state: the records; starts and ends of jobs in it are as of the last decision.
    """

    def __init__(self, prepared: "Scenario", batch: int, length: int, window: int, epoch: int) -> None:
        pooled = compile_policy(Policy("fcfs", "easy"), PROTOCOLS["standard"])
        self.scenario = replace(prepared, cluster=None, compiled=pooled)
        jobs = prepared.jobs
        state = allocate_state(batch, length, len(jobs.resources), window=window, users=len(prepared.share))
        self.state = episode.configure(state, self.scenario)
        self.state.switches.uses_fairshare = 1
        self.epoch = epoch
        self._waiting: list[set[int]] = [set() for _ in range(batch)]
        self._running: list[dict[int, SlurmJob]] = [{} for _ in range(batch)]

    def load(self, b: int, first: int, last: int) -> None:
        """Let site `b` be idle, and its jobs those of ``first:last``."""
        episode.fill(self.state, b, self.scenario, first, last)
        self._waiting[b], self._running[b] = set(), {}

    def _micro(self, instant: int) -> int:
        return (instant - self.epoch) * SECOND

    def _follow(self, b: int, slurm: Controller) -> None:
        """Let the records know who was submitted, started and ended since the last decision."""
        state, waiting, running = self.state, self._waiting[b], self._running[b]
        now = state.scalars.now
        for j in [j for j, job in running.items() if slurm.running.get(j) is not job]:
            now[b] = self._micro(running.pop(j).ended)
            _finish(state, b, j)
        for j in slurm.pending:
            if j not in waiting:
                _submit(state, b, j)
                waiting.add(j)
        for j, job in slurm.running.items():
            if j not in running:
                if j not in waiting:
                    _submit(state, b, j)
                _mark_running(state, b, j, self._micro(job.start))
                waiting.discard(j)
                running[j] = job
        for j in waiting - slurm.pending.keys():
            core.withdraw(state, b, j)
            waiting.discard(j)

    def show(self, b: int, slurm: Controller, now: int, question: SlurmQuestion) -> None:
        """Write a decision of site `b` to its records."""
        self._follow(b, slurm)
        free = (slurm.usage.not_full & slurm.up & ~slurm.completing_nodes).bit_count()
        candidates = np.array([job.key for job in question.candidates], np.int32)
        head = -1 if question.head is None else question.head.key
        _write_decision(self.state, b, self._micro(now), free, head, candidates)

    def sort_queue(self, b: int, slurm: Controller, now: int) -> None:
        """Bring the records' queue into the order of Slurm's, for features of the first waiting jobs."""
        ranks: dict[int, int] = {}
        for job, _ in slurm.entries(slurm.queue(now)):
            ranks.setdefault(job.key, len(ranks))
        score = self.state.jobs.score
        for j in self._waiting[b]:
            score[b, j] = -ranks.get(j, len(ranks))
        _sort_by_scores(self.state, b)

    def end(self, b: int, start: Sequence[int], eligible: Sequence[int]) -> None:
        """Write when the jobs of site `b` were eligible first and started, microseconds, -1: never."""
        jobs, n = self.state.jobs[b], len(start)
        first = np.array(eligible, np.int64)
        jobs.submit[:n] = np.where(first >= 0, first, jobs.submit[:n])
        jobs.start[:n] = start
