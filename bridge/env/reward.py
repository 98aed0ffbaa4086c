"""What became of an episode's jobs, under an agent and under the base policy, and what that is worth."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.errors import BridgeError
from bridge.config import Unsigned, verify
from bridge.env.batch import Batch
from bridge.judge.idle import idle_fitting
from bridge.judge.metrics import BSLD_THRESHOLD, bounded_slowdown
from bridge.scheduler.state import SECOND
from bridge.scheduler.timed_state import OVER, TimedState
from bridge.workload.select import Jobs
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule, replay_sequences

#: What an episode is measured by; lower is better.
Metric = Literal["bsld", "wait", "bsld.max", "wait.max"]
#: How it is compared with the base's.
Form = Literal["native", "percentage", "relative", "winloss", "plain"]


@dataclass(frozen=True)
class EpisodeOutcome:
    """Jobs of an episode and when they started, [L] seconds; their demands [L, R] of a capacity [R].

    On a cluster, jobs are submitted when they are eligible, and those that never start (a start below 0)
    count nowhere.
    """

    submit: Floats
    run: Floats
    start: Floats
    demand: Ints
    capacity: Ints

    def value(self, metric: str) -> float:
        """Return the episode's metric, see `Reward`. Raises BridgeError: there is none of the name."""
        if metric not in get_args(Metric):
            remedy = f"Choose {', '.join(get_args(Metric))}."
            raise BridgeError("unknown metric of an episode", where=repr(metric), remedy=remedy)
        wait, (name, _, largest) = self.start - self.submit, metric.partition(".")
        values = bounded_slowdown(wait, self.run) if name == "bsld" else wait
        if not len(values):
            return 0.0
        return float(values.max() if largest else values.mean())

    def started(self) -> "EpisodeOutcome":
        which = self.start >= 0
        if which.all():
            return self
        columns = ("submit", "run", "start", "demand")
        return replace(self, **{name: getattr(self, name)[which] for name in columns})

    def idle(self, times: Floats) -> Floats:
        """Return the node time, up to each of these times, that was idle while a waiting job fitted.

        It counts in all the node time that the episode's jobs take; see `bridge.judge.idle.idle_fitting`.
        """
        submit, start, end = (
            np.rint(when * SECOND).astype(np.int64)
            for when in (self.submit, self.start, self.start + self.run)
        )
        moments, idle = idle_fitting(submit, start, end, self.demand, self.capacity)
        work = float((self.demand[:, 0] * self.run).sum()) or 1.0
        return np.asarray(np.interp(times, moments / SECOND, np.array(idle, np.float64) / SECOND) / work)


def episode_of(batch: Batch, b: int) -> EpisodeOutcome:
    """Return what became of the jobs of a batch's episode that is over."""
    start = batch.starts_of(b)
    jobs, state = batch.state.jobs[b, : len(start)], batch.state
    submit, run = np.array(jobs["submit"]) / SECOND, np.array(jobs["run"]) / SECOND
    if isinstance(state, TimedState):  # a job that was stopped may be eligible again; its last run counts
        timed = state.timed_jobs[b, : len(start)]
        first = np.array(timed["first_eligible"])
        submit = np.where(first >= 0, first / SECOND, submit)
        is_over = np.array((timed["doing"] == OVER) & (start >= 0))
        run = np.where(is_over, (np.array(jobs["end"]) - start) / SECOND, run)
    demand, capacity = np.array(state.demand[b, : len(start)]), np.array(state.capacity)
    return EpisodeOutcome(submit, run, start / SECOND, demand, capacity)


def broken_off(outcome: EpisodeOutcome) -> EpisodeOutcome:
    """Return what has become of jobs so far: who has not started yet starts at NaN."""
    return replace(outcome, start=np.where(outcome.start < 0, np.nan, outcome.start))


@dataclass(frozen=True)
class Reward:
    """What an episode is worth, compared with the base policy on the same jobs.

    Attributes:
        metric: ``bsld``, ``wait`` (means), ``bsld.max`` or ``wait.max``; lower is better.
        form: ``native`` (base − x), ``percentage`` ((base − x) / base), ``relative`` ((base − x) / max(base,
            x, 1)) or ``winloss`` (−1, 0, 1): SchedInspector §3.4, and its public code for ``relative``;
            ``plain`` (−x, whatever the base is worth: RLScheduler §3.4).
        spread: with ``end`` the whole reward comes with the last decision. With ``time`` each decision gets
            the part that arises until the next decision: −Δ Σ wait / max(run, 10) (``bsld``) or −Δ Σ wait
            (``wait``) per job, divided by the base's value unless `form` is native. The sum is the same apart
            from a constant, but a part comes nearer to the decision that caused it.
        penalty: subtracted for every backfill that EASY would not allow (RLBackfilling's guard by penalty).
        idle: the price of node time that is idle while a waiting job fits. So much is added to the metric if
            this node time is as long as that of the episode's jobs (`EpisodeOutcome.idle`). If it is not 0, x
            and base are the metric plus this cost.
        base_order: order of the base's queue; empty = as in the agent's own setup.
        base_candidate_order: order among EASY's candidates of the base; empty = as in the agent's own setup.
    """

    metric: Metric = "bsld"
    form: Form = "percentage"
    spread: Literal["end", "time"] = "end"
    penalty: float = 0.0
    idle: Unsigned = 0.0
    base_order: str = ""
    base_candidate_order: str = ""

    def __post_init__(self) -> None:
        metric: object = self.metric
        if callable(metric):
            what, remedy = "metric cannot be a function", "A function is an environment's whole `reward`."
            raise BridgeError(what, where="reward", remedy=remedy)
        verify(self, "reward")

    def cost(self, episode: EpisodeOutcome) -> float:
        """Return what an episode that is over costs: its metric, and its idle nodes."""
        episode = episode.started()
        idle = float(episode.idle(np.array([episode.start.max()]))[0]) if self.idle else 0.0
        return episode.value(self.metric) + self.idle * idle

    def check(self) -> None:
        if self.base_candidate_order and not self.base_order:
            remedy = "Name reward.base_order, too, such as fcfs."
            raise BridgeError("reward.base_candidate_order belongs to a base of its own", remedy=remedy)
        if self.spread == "end":
            return
        for name, value, choices in (
            ("metric", self.metric, ("bsld", "wait")),
            ("form", self.form, ("native", "percentage")),
        ):
            if value not in choices:
                remedy = f"Only {' and '.join(choices)} can be spread over time."
                raise BridgeError(f"reward.{name} cannot be {value}", remedy=remedy)


@dataclass(frozen=True)
class OwnReward(Reward):
    """A user's function of an `EpisodeOutcome`: a finite reward, at the last decision; more is better."""

    form: Form = "plain"
    function: Callable[[EpisodeOutcome], float] = field(kw_only=True)

    def __post_init__(self) -> None:
        """A function is not plain data, which the parent's check is for."""

    def cost(self, episode: EpisodeOutcome) -> float:
        """Return minus the function's value; BridgeError: it is no finite number."""
        value = self.function(episode.started())
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            name = getattr(self.function, "__qualname__", repr(self.function))
            remedy = "Let it return one finite number of the episode that it is called with."
            raise BridgeError(f"the reward cannot be {value!r:.60}", where=f"function {name}", remedy=remedy)
        return -number


def refuse_idle_cost(reward: Reward, jobs: Jobs) -> None:
    """Raise BridgeError for a cost of idle nodes on a cluster: who fits there is another question."""
    if reward.idle and jobs.cluster is not None:
        what, where = "idle nodes have no cost on a cluster", f"reward.idle {reward.idle:g}"
        raise BridgeError(what, where=where, remedy="Set reward.idle = 0, or leave out --cluster.")


def base_costs(
    base: Scenario,
    starts: Ints,
    length: int,
    reward: Reward,
    play: Callable[[Scenario, Ints, int], list[Schedule]] = replay_sequences,
) -> Floats:
    """Return what the base policy's schedules cost of the `length` jobs from each of `starts` on.

    `play` makes them, where it is not only rules that decide.
    """
    values, jobs = [], base.jobs
    for first, schedule in zip(starts.tolist(), play(base, starts, length), strict=True):
        part = slice(first, first + length)
        submit, run = jobs.submit[part] / SECOND, jobs.run[part] / SECOND
        if schedule.eligible is not None:
            submit = np.where(schedule.eligible < 0, submit, schedule.eligible / SECOND)
        # where jobs may be stopped: when it would have started to run through to its end
        start = schedule.start / SECOND if schedule.lives is None else schedule.end / SECOND - run
        if schedule.lives is None and schedule.ran is not None:
            run = np.where(schedule.ran >= 0, schedule.ran / SECOND, run)
            start = np.where(schedule.ran >= 0, (schedule.end - schedule.ran) / SECOND, start)
        values.append(reward.cost(EpisodeOutcome(submit, run, start, jobs.demand[part], jobs.capacity)))
    return np.array(values)


def compute_final_reward(reward: Reward, base: float, value: float) -> float:
    """Return what an episode with this value is worth against the base's."""
    worth = {
        "plain": -value,
        "native": base - value,
        "percentage": (base - value) / base if base > 0 else min(base - value, 0.0),
        "relative": (base - value) / max(base, value, 1.0),
        "winloss": float(np.sign(base - value)),
    }
    return worth[reward.form]


def scale(reward: Reward, base: Floats) -> Floats:
    """Return what rewards that are spread over time are divided by, for base values of any shape."""
    return np.where((base > 0) & (reward.form == "percentage"), base, 1.0)


def weights(run: Floats, metric: str) -> Floats:
    """Return how fast each job's part of the metric grows while it waits; `run` in seconds, any shape."""
    return 1.0 / np.maximum(run, BSLD_THRESHOLD) if metric == "bsld" else np.ones_like(run)


def accrued_cost(episode: EpisodeOutcome, metric: str, times: Floats) -> Floats:
    """Return how much of the metric's mean has accrued at each of these times, waits counted as they pass.

    bsld: Σ wait so far / max(run, 10) / L; wait: Σ wait so far / L. Up to a constant (bsld: and for jobs
    shorter than the threshold) the last value is the metric.
    """
    weight = np.where(episode.start < 0, 0.0, weights(episode.run, metric))
    moments = np.concatenate((episode.submit, np.maximum(episode.start, episode.submit)))
    slopes = np.concatenate((weight, -weight))
    order = np.argsort(moments, kind="stable")
    moments, slopes = moments[order], np.cumsum(slopes[order])
    sums = np.concatenate(([0.0], np.cumsum(slopes[:-1] * np.diff(moments))))
    return np.asarray(np.interp(times, moments, sums) / len(weight), np.float64)


def compute_rewards(reward: Reward, episode: EpisodeOutcome, base: float, times: Ints, late: Flags) -> Floats:
    """Return the reward of each of D decisions of an episode, taken at `times` (µs, ascending).

    `late`: [D] whether it may have delayed the blocked head. `base`: the base policy's value.
    """
    base_rewards = np.zeros(len(times))
    if len(times) == 0:
        return base_rewards
    if reward.spread == "end":
        base_rewards[-1] = compute_final_reward(reward, base, reward.cost(episode))
    else:
        ends = np.concatenate((times / SECOND, [episode.start.max()]))
        cost = accrued_cost(episode, reward.metric, ends)
        if reward.idle:
            cost = cost + reward.idle * episode.idle(ends)
        base_rewards = -np.diff(cost) / scale(reward, np.array(base))
    return base_rewards - reward.penalty * late
