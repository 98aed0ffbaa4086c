"""Episodes as reinforcement learning wants them: fixed shapes, masks, rewards; B of them side by side."""

from dataclasses import dataclass, replace
from types import EllipsisType
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, Space

from bridge.env.asked import Flags, Floats, Ints, Step
from bridge.env.batch import Batch, View
from bridge.env.reward import Episode, base_values, episode_of, scale, score, weights
from bridge.env.source import Starts, constants_of, jobs_of
from bridge.env.task import Task
from bridge.errors import BridgeError
from bridge.fast.world import DONE
from bridge.scheduler.state import SECOND

_LIMIT = float(np.finfo(np.float32).max)  # features are finite; more is not known about them
Rows = npt.NDArray[np.float32]
#: The rows alone, or with the context: ``{"rows": …, "context": …}``.
Observation = Rows | dict[str, Rows]

#: Episodes in a row without any decision before the search for one is given up.
TRIES = 100


@dataclass(frozen=True)
class Valued(Step):
    """A step with the `values` float64 [B] of the metric of the episodes that are over, NaN elsewhere."""

    values: Floats


class Episodes:
    """B places, each with an episode that waits for a decision or is over.

    Args:
        task: what is decided. An encoder for any number of resources becomes one for the workload's.
        size: B.

    Attributes:
        task: what is decided, with the encoder for the workload.
        rows: float32 [B, rows, features]; an absent row is the encoder's padding. BACKFILL with a stop
            action: its row is the last. Every call makes a new array, so that a caller may keep it.
        context: float32 [B, C] of the waiting decisions, see `bridge.encode.encoder.Encoder`; zeros where the
            episode is over. A new array as well.
        masks: bool [B, actions] which actions are legal; none where the episode is over.
        first: int64 [B] the first job of each episode.
        base: float64 [B] the base policy's metric on each episode's jobs.

    Raises:
        BridgeError: the log cannot be read, no episode fits in it, it lacks a resource that is to be seen, or
            a name or an expression is unknown.
    """

    def __init__(self, task: Task, size: int) -> None:
        if size < 1:
            raise BridgeError("there is at least one place", where=f"{size} environments")
        jobs = jobs_of(task.workload, task.setup)
        task = replace(task, encoder=task.encoder.for_resources(len(jobs.resources)))
        self.task = task
        self.starts = Starts(len(jobs), task.length, task.part, task.starts)
        constants = constants_of(jobs) if task.constants is None else task.constants
        self.batch = Batch(
            task.setup.prepare(jobs, task.policy()), task.encoder.compile(constants), size, task.length
        )
        self._base_policy = task.setup.prepare(jobs)
        encoder = task.encoder
        self._padding = np.array(encoder.padding or np.zeros(encoder.width), np.float32)
        self.rows: Rows
        self.context: Rows
        self.masks: Flags
        self._clear()
        self.first = np.full(size, -1, np.int64)
        self.base = np.full(size, np.nan)
        self._known: dict[int, float] = {}  # base values by first job
        self._sizes = np.zeros(size, np.int64)  # rows of each waiting decision
        # what rewards in time read of the jobs at every step: microseconds, and metric per microsecond
        self._submit = np.zeros((size, task.length))
        self._weight = np.zeros((size, task.length))
        self._accrued = np.zeros(size)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def waiting(self) -> Flags:
        """[B] whether a decision waits for an answer."""
        return np.asarray(self.batch.kinds != DONE, np.bool_)

    def spaces(self) -> tuple[Space[Any], Discrete]:
        """Return the observation space and the action space of a place.

        What is seen is float32 [rows, features]; with a context a dictionary of these ``rows`` and the
        ``context``, float32 [C].
        """
        encoder = self.task.encoder
        rows = Box(-_LIMIT, _LIMIT, (encoder.rows, encoder.width), np.float32)
        actions = Discrete(encoder.actions)
        if not encoder.context:
            return rows, actions
        context = Box(-_LIMIT, _LIMIT, (encoder.context,), np.float32)
        return Dict({"rows": rows, "context": context}), actions

    def info(self) -> dict[str, npt.NDArray[Any]]:
        """Return the time of each decision or episode's end since the log began, s; and its first job."""
        return {"time": self.batch.now / SECOND, "first_job": self.first.copy()}

    def observation(self, b: int | EllipsisType = ...) -> Observation:
        """Return what is seen at a place, or at all: the rows, and the context if the encoder has one."""
        if not self.task.encoder.context:
            return self.rows[b]
        return {"rows": self.rows[b], "context": self.context[b]}

    def outcome(self, b: int) -> Episode:
        """Return what has become of an episode's jobs so far; who has not started yet starts at NaN."""
        seen = episode_of(self.batch, b)
        return replace(seen, start=np.where(seen.start < 0, np.nan, seen.start))

    def restart(self, rng: np.random.Generator, options: dict[str, Any], *, rewind: bool) -> None:
        """Begin an episode at every place, at the first jobs ``start`` if the options have them."""
        if rewind:
            self.starts.rewind()
        first = options.get("start")
        starts = None if first is None else np.broadcast_to(np.asarray(first, np.int64), len(self))
        self.begin(np.arange(len(self)), rng, starts)

    def begin(self, places: Ints, rng: np.random.Generator, starts: Ints | None = None) -> None:
        """Begin an episode at each of these places; what waits elsewhere stays.

        Episodes without any decision are passed over.

        Args:
            places: where.
            rng: the source of randomness.
            starts: first jobs, if they are not to be drawn.

        Raises:
            BridgeError: no episode with a decision was found, or as `bridge.env.batch.Batch.step`.
        """
        begun = places
        self.rows, self.context, self.masks = self.rows.copy(), self.context.copy(), self.masks.copy()
        self.rows[begun], self.context[begun], self.masks[begun] = self._padding, 0.0, False
        tries = 1 if starts is not None else TRIES
        if starts is None and self.starts.listed is not None:
            tries = len(self.starts.listed) + 1
        for _ in range(tries):
            first = self.starts.draw(len(places), rng) if starts is None else starts
            self._show(self.batch.begin(places, first))
            self.first[places] = first
            places = places[self.batch.kinds[places] == DONE]
            if not len(places):
                break
        else:
            raise BridgeError(
                "no decision had to be taken in any of these episodes",
                where=f"{self._base_policy.jobs.name}, first jobs such as {self.first[places[0]]}",
                remedy="The machine is never busy: use another log or part, or raise its load.",
            )
        self._compare(begun)

    def _compare(self, places: Ints) -> None:
        """Note what rewards of new episodes need: the base's value, and what accrued before the agent."""
        firsts = self.first[places]
        length, metric = self.task.length, self.task.reward.metric
        fresh = np.array(sorted(set(firsts.tolist()) - self._known.keys()), np.int64)
        values = base_values(self._base_policy, fresh, length, metric)
        self._known.update(zip(fresh.tolist(), values.tolist(), strict=True))
        self.base[places] = [self._known[first] for first in firsts.tolist()]
        which = firsts[:, None] + np.arange(length)
        jobs = self._base_policy.jobs
        self._submit[places] = jobs.submit[which]
        self._weight[places] = weights(jobs.run[which] / SECOND, metric) / (length * SECOND)
        if self.task.reward.spread == "time":
            self._accrued[places] = self._accrue(places)

    def answer(self, actions: npt.NDArray[np.integer]) -> Valued:
        """Answer every waiting decision.

        Args:
            actions: [B] integers. One that is not legal counts as DECLINE where there is such an action
                (BACKFILL with a stop action, INSPECT), else as the first legal one.

        Raises:
            BridgeError: as `bridge.env.batch.Batch.step`.
        """
        waiting = self.waiting
        answers, invalid = self._translate(np.asarray(actions).astype(np.int64))
        self._clear()
        self._show(self.batch.step(answers))
        over = waiting & (self.batch.kinds == DONE)
        reward = self.task.reward
        values = np.full(len(self), np.nan)
        given = np.zeros(len(self))
        for b in np.flatnonzero(over).tolist():
            values[b] = self.outcome(b).value(reward.metric)
            if reward.spread == "end":
                given[b] = score(reward, float(self.base[b]), float(values[b]))
        if reward.spread == "time":
            before, self._accrued = self._accrued, self._accrue()
            given[waiting] = ((before - self._accrued) / scale(reward, self.base))[waiting]
        given[waiting] -= reward.penalty * self.batch.late[waiting]
        return Valued(given, over, np.zeros_like(over), invalid & waiting, values)

    def results(self, done: Valued) -> dict[str, Floats]:
        """Return the metric of the episodes that have just ended, and the base policy's; NaN elsewhere."""
        return {"metric": done.values, "base": np.where(done.over, self.base, np.nan)}

    def _translate(self, actions: Ints) -> tuple[Ints, Flags]:
        """Return the batch's answers, and whether the actions were illegal."""
        encoder = self.task.encoder
        inside = (actions >= 0) & (actions < encoder.actions)
        legal = inside & self.masks[np.arange(len(self)), np.where(inside, actions, 0)]
        if self.task.decision == "inspect":
            return np.where(legal, actions, 1), ~legal
        if encoder.stop:
            return np.where(legal & (actions < encoder.window), actions, self._sizes - 1), ~legal
        return np.where(legal, actions, 0), ~legal

    def _clear(self) -> None:
        """Show nothing at any place."""
        encoder, size = self.task.encoder, len(self.batch.kinds)
        self.rows = np.empty((size, encoder.rows, encoder.width), np.float32)
        self.rows[:] = self._padding
        self.context = np.zeros((size, encoder.context), np.float32)
        self.masks = np.zeros((size, encoder.actions), np.bool_)

    def _show(self, view: View) -> None:
        """Put packed rows where their actions are, and keep contexts; places without stay as they are."""
        encoder = self.task.encoder
        sizes = np.diff(view.offsets)
        live = sizes > 0
        self._sizes[live] = sizes[live]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(owner)) - np.repeat(view.offsets[:-1], sizes)
        if encoder.stop:
            place[view.offsets[1:][live] - 1] = encoder.window
        self.rows[owner, place] = view.rows
        self.context[live] = view.context[live]  # the view's is the batch's own
        if self.task.decision == "inspect":
            self.masks[live] = True
        else:
            self.masks[owner, place] = True

    def _accrue(self, places: Ints | slice = slice(None)) -> Floats:
        """Return how much of the metric has accrued so far at places, see `bridge.env.reward.accrued`."""
        until = self.batch.state.jobs.view(np.ndarray)["start"][places].astype(np.float64)
        np.copyto(until, self.batch.now[places, None], where=until < 0)
        until -= self._submit[places]
        np.maximum(until, 0.0, out=until)  # who has not been submitted yet has not waited
        return np.asarray(np.einsum("bl,bl->b", until, self._weight[places]), np.float64)
