"""Episodes as reinforcement learning wants them: fixed shapes, masks, rewards; B of them side by side."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete, Space

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.errors import BridgeError
from bridge.env.bounds import VariableBounds, observation_bounds
from bridge.env.env_config import EnvConfig
from bridge.env.episode_starts import EpisodeStarts, constants_of, jobs_of
from bridge.env.gym_env import Draws, StepResult, drawn_by
from bridge.env.log_snapshot import take_snapshot
from bridge.env.observation import ObservationBuffer, build_spaces
from bridge.env.options import refuse_options
from bridge.env.reward import (
    EpisodeOutcome,
    base_costs,
    broken_off,
    compute_final_reward,
    episode_of,
    refuse_idle_cost,
    scale,
    weights,
)
from bridge.env.slurm_batch import open_batch
from bridge.env.snapshot import EpisodeSnapshot
from bridge.scheduler.cluster_state import HELD_FOR_EVER, NOT_HELD, ClusterState
from bridge.scheduler.state import SECOND
from bridge.scheduler.timed_state import OVER, TimedState
from bridge.worlds.fast.lives import worked_since
from bridge.worlds.fast.world import DONE

#: Episodes in a row without any decision before the search for one is given up.
TRIES = 100


@dataclass(frozen=True)
class StepResultWithCost(StepResult):
    """A step with the `values` float64 [B] of the episodes that are over (`Reward.cost`), NaN elsewhere."""

    values: Floats


class LogEpisodes(ObservationBuffer):
    """B parallel episodes; each waits for an action or has ended.

    Observations: see `ObservationBuffer`. An encoder for any number of resources is fitted to the workload.
    `first`: int64 [B] the first job of each episode. `base`: float64 [B] what its jobs cost under the base
    policy (`Reward.cost`). Raises BridgeError: the log cannot be read, no episode fits in it, it lacks a
    resource that is to be seen, or a name or an expression is unknown.
    """

    def __init__(self, task: EnvConfig, size: int) -> None:
        if size < 1:
            raise BridgeError("there is at least one place", where=f"{size} environments")
        jobs = jobs_of(task.workload, task.setup)
        refuse_idle_cost(task.reward, jobs)
        task = replace(task, encoder=task.encoder.for_resources(len(jobs.resources)))
        super().__init__(task.encoder, size)
        self.task = task
        self.starts = EpisodeStarts(len(jobs), task.length, task.part, task.starts)
        constants = constants_of(jobs) if task.constants is None else task.constants
        self.batch = open_batch(
            task.setup.build_scenario(jobs, task.policy()), task.encoder.compile(constants), size, task.length
        )
        self._base_policy = task.base().build_scenario(jobs)
        self.first = np.full(size, -1, np.int64)
        self.base = np.full(size, np.nan)
        self._base_values: dict[int, float] = {}  # base values by first job
        # what rewards in time read of the jobs at every step: microseconds, and metric per microsecond
        self._submit = np.zeros((size, task.length))
        self._weight = np.zeros((size, task.length))
        self._accrued = np.zeros(size)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def waiting(self) -> Flags:
        """[B] whether a decision waits for an answer."""
        return np.asarray(self.batch.decision_kinds != DONE, np.bool_)

    def info(self) -> dict[str, npt.NDArray[Any]]:
        """Return the time of each decision or episode's end since the log began, s; and its first job."""
        return {"time": self.batch.now / SECOND, "first_job": self.first.copy()}

    def spaces(self) -> tuple[Space[Any], Discrete]:
        """Return the observation space, with the bounds of this workload's features, and the actions."""
        variables = VariableBounds(self.batch.prepared, self.task.length)
        return build_spaces(self.task.encoder, observation_bounds(self.batch.encoder, variables))

    def snapshot(self, b: int) -> EpisodeSnapshot:
        return take_snapshot(self.batch, b)

    def job_outcomes(self, b: int) -> EpisodeOutcome:
        """Return what has become of an episode's jobs so far; who has not started yet starts at NaN."""
        return broken_off(episode_of(self.batch, b))

    def reset(self, rng: Draws, options: dict[str, Any], *, rewind: bool) -> None:
        """Begin an episode at every place, at the first jobs ``start`` if the options have them."""
        refuse_options(options, ("start",))
        first = options.get("start")
        starts = None if first is None else self._starts(first)
        if rewind:
            self.starts.rewind()
        for places, own in drawn_by(rng, np.arange(len(self))):
            self.reset_at(places, own, None if starts is None else starts[places])

    def _starts(self, first: object) -> Ints:
        indices = np.asarray(first)
        if indices.dtype.kind not in "iu" or indices.shape not in ((), (1,), (len(self),)):
            several = f", or {len(self)} of them" if len(self) > 1 else ""
            remedy = f"The number of a job, counted from 0{several}."
            raise BridgeError(f"start cannot be {first!r:.60}", where="reset", remedy=remedy)
        return np.broadcast_to(indices.astype(np.int64), len(self))

    def reset_at(self, places: Ints, rng: np.random.Generator, starts: Ints | None = None) -> None:
        """Begin an episode at these places, at first jobs `starts` or drawn ones; what waits elsewhere stays.

        Episodes without any decision are passed over. BridgeError: none with a decision was found.
        """
        places_begun = places
        self.rows, self.context, self.masks = self.rows.copy(), self.context.copy(), self.masks.copy()
        self.rows[places_begun], self.context[places_begun], self.masks[places_begun] = (
            self._padding,
            0.0,
            False,
        )
        tries = 1 if starts is not None else TRIES
        if starts is None and self.starts.listed is not None:
            tries = len(self.starts.listed) + 1
        for _ in range(tries):
            first = self.starts.draw(len(places), rng) if starts is None else starts
            self.write(self.batch.begin(places, first))
            self.first[places] = first
            places = places[self.batch.decision_kinds[places] == DONE]
            if not len(places):
                break
        else:
            raise BridgeError(
                "no decision had to be taken in any of these episodes",
                where=f"{self._base_policy.jobs.name}, first jobs such as {self.first[places[0]]}",
                remedy="The machine is never busy: use another log or part, or raise its load.",
            )
        self._compare(places_begun)

    def _compare(self, places: Ints) -> None:
        """Note what rewards of new episodes need: the base's value, and what accrued before the agent."""
        firsts = self.first[places]
        length, reward = self.task.length, self.task.reward
        fresh = np.array(sorted(set(firsts.tolist()) - self._base_values.keys()), np.int64)
        values = base_costs(self._base_policy, fresh, length, reward)
        self._base_values.update(zip(fresh.tolist(), values.tolist(), strict=True))
        self.base[places] = [self._base_values[first] for first in firsts.tolist()]
        which = firsts[:, None] + np.arange(length)
        jobs = self._base_policy.jobs
        self._submit[places] = jobs.submit[which]
        self._weight[places] = weights(jobs.run[which] / SECOND, reward.metric) / (length * SECOND)
        if reward.spread == "time":
            self._accrued[places] = self._accrue(places)

    def step(self, actions: npt.NDArray[np.integer]) -> StepResultWithCost:
        """Answer every waiting decision, [B] integers; illegal ones: `ObservationBuffer.map_actions`."""
        waiting = self.waiting
        answers, invalid = self.map_actions(np.asarray(actions).astype(np.int64))
        self.clear()
        self.write(self.batch.step(answers))
        over = waiting & (self.batch.decision_kinds == DONE)
        reward = self.task.reward
        values = np.full(len(self), np.nan)
        rewards_now = np.zeros(len(self))
        for b in np.flatnonzero(over).tolist():
            values[b] = reward.cost(self.job_outcomes(b))
            if reward.spread == "end":
                rewards_now[b] = compute_final_reward(reward, float(self.base[b]), float(values[b]))
        if reward.spread == "time":
            before, self._accrued = self._accrued, self._accrue()
            rewards_now[waiting] = ((before - self._accrued) / scale(reward, self.base))[waiting]
        rewards_now[waiting] -= reward.penalty * self.batch.delays_head[waiting]
        return StepResultWithCost(rewards_now, over, np.zeros_like(over), invalid & waiting, values)

    def final_info(self, done: StepResultWithCost) -> dict[str, Floats]:
        """Return what the episodes that have just ended cost, and what the base's; NaN elsewhere."""
        return {"metric": done.values, "base": np.where(done.terminated, self.base, np.nan)}

    def _accrue(self, places: Ints | slice = slice(None)) -> Floats:
        """Return how much of the cost has accrued so far at places, see `bridge.env.reward.accrued_cost`."""
        state, now = self.batch.state, self.batch.now[places, None]
        until = worked_since(state, places, slice(None), now).astype(np.float64)
        np.copyto(until, now, where=until < 0)
        until -= self._since(until, places)
        np.maximum(until, 0.0, out=until)  # who has not been submitted yet has not waited
        accrued = np.einsum("bl,bl->b", until, self._weights(places))
        if price := self.task.reward.idle:
            accrued += price * np.array([self._idle(b) for b in np.arange(len(self))[places].tolist()])
        return np.asarray(accrued, np.float64)

    def _weights(self, places: Ints | slice) -> Floats:
        """Return how fast jobs' parts of the metric grow; of one that was stopped its last run counts."""
        state: Any = self.batch.state
        if not isinstance(state, TimedState):
            return self._weight[places]
        jobs, rows = state.jobs.view(np.ndarray)[places], state.timed_jobs.view(np.ndarray)[places]
        worked = jobs["end"] - jobs["start"] - rows["stood"]
        run = np.where((rows["doing"] == OVER) & (jobs["start"] >= 0), worked, jobs["run"]) / SECOND
        return weights(run, self.task.reward.metric) / (self.task.length * SECOND)

    def _since(self, until: Floats, places: Ints | slice) -> Floats:
        """Return since when jobs wait, microseconds; on a cluster, since they are eligible."""
        state: Any = self.batch.state
        if not isinstance(state, ClusterState):
            return self._submit[places]
        if isinstance(state, TimedState):
            first = state.timed_jobs.view(np.ndarray)["first_eligible"][places]
            never = state.node_jobs.view(np.ndarray)["held"][places] == HELD_FOR_EVER
            return np.where((first < 0) | never, until, first)
        eligible = state.jobs.view(np.ndarray)["submit"][places].astype(np.float64)
        held = state.node_jobs.view(np.ndarray)["held"][places] != NOT_HELD
        return np.where(held, until, eligible)

    def _idle(self, b: int) -> float:
        """Return the node time that was idle so far at a place, see `EpisodeOutcome.idle`."""
        now, outcome = self.batch.now[b] / SECOND, episode_of(self.batch, b)
        waits = np.maximum(outcome.submit, now)  # who waits, or is not there yet, begins no sooner
        return float(
            replace(outcome, start=np.where(outcome.start < 0, waits, outcome.start)).idle(np.array([now]))[0]
        )
