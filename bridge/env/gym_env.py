"""What all Gymnasium environments here do alike: one episode at a time, or many in one call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Protocol, TypeVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete, Space
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.errors import BridgeError
from bridge.env.snapshot import EpisodeSnapshot, render_pixels, render_text

#: How an environment can be shown: as text, or as a picture, uint8 [height, width, 3].
RENDER_MODES = ("ansi", "rgb_array")


@dataclass(frozen=True)
class StepResult:
    """What one answer to every waiting decision brought, each [B].

    Attributes:
        rewards: float64; 0 where nothing was waiting.
        terminated: the episode has ended with this answer.
        truncated: it was ended by force.
        invalid: the action was not among the legal ones, another answer was given for it.
    """

    rewards: Floats
    terminated: Flags
    truncated: Flags
    invalid: Flags


S = TypeVar("S", bound=StepResult)
#: What episodes are drawn with: one generator, or one for each place.
Draws = np.random.Generator | Sequence[np.random.Generator]


def drawn_by(rng: Draws, places: Ints) -> Iterator[tuple[Ints, np.random.Generator]]:
    """Yield places with the generator that draws for them: all at once, or place after place."""
    if isinstance(rng, np.random.Generator):
        yield places, rng
    else:
        yield from ((places[k : k + 1], rng[b]) for k, b in enumerate(places.tolist()))


class VectorEpisodes(Protocol[S]):
    """B parallel episodes; each waits for an action or has ended; `masks` [B, actions]: which are legal."""

    task: Any
    masks: Flags

    @property
    def waiting(self) -> Flags:
        """[B] whether a decision waits for an answer."""

    def spaces(self) -> tuple[Space[Any], Discrete]:
        """Return what is seen at a place, and what can be answered there."""

    def observation(self, b: int | EllipsisType = ...) -> Any:
        """Return what is seen at a place, or at all."""

    def info(self) -> dict[str, npt.NDArray[Any]]:
        """Return more about every place, each [B]."""

    def reset(self, rng: Draws, options: dict[str, Any], *, rewind: bool) -> None:
        """Begin an episode at every place; `rewind`: those of a list, if there is one, from the first on.

        BridgeError: there is no such option, or not such a value of it.
        """

    def reset_at(self, places: Ints, rng: np.random.Generator) -> None:
        """Begin an episode at each of these places; what waits elsewhere stays."""

    def step(self, actions: npt.NDArray[np.integer]) -> S:
        """Answer every waiting decision."""

    def snapshot(self, b: int) -> EpisodeSnapshot:
        """Return what a place's episode looks like now, for people."""

    def final_info(self, done: S) -> dict[str, Floats]:
        """Return what came of the episodes that ended with an answer, each [B], NaN elsewhere."""

    def job_outcomes(self, b: int) -> Any:
        """Return what has become of the jobs of a place's episode so far."""


def check_render_mode(mode: str | None) -> str | None:
    if mode is not None and mode not in RENDER_MODES:
        remedy = f"Choose {' or '.join(RENDER_MODES)}, or leave it out."
        raise BridgeError(f"unknown render mode {mode!r}", where="environment", remedy=remedy)
    return mode


def render(view: EpisodeSnapshot, mode: str | None) -> Any:
    """Return a moment as its render mode has it, None without one."""
    if mode is None:
        return None
    return render_text(view) if mode == "ansi" else render_pixels(view)


class SchedulingEnvBase(gymnasium.Env[Any, np.int64]):
    """One episode after the other, from episodes of one place.

    An action that is not legal never fails: another answer is given for it, and ``info["invalid"]`` is True.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (as Gymnasium declares it)
        "render_modes": [*RENDER_MODES],
        "render_fps": 4,
    }

    def __init__(self, episodes: VectorEpisodes[Any], render_mode: str | None = None) -> None:
        self.render_mode = check_render_mode(render_mode)
        self._episodes, self.task = episodes, episodes.task
        self.observation_space, self.action_space = episodes.spaces()
        if self.task.seed is not None:
            super().reset(seed=self.task.seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the next episode; a seed is that of all draws that follow, listed episodes begin again."""
        super().reset(seed=seed)
        self._episodes.reset(self.np_random, options or {}, rewind=seed is not None)
        return self._episodes.observation(0), self._info(np.zeros(1, np.bool_), {})

    def step(self, action: np.int64 | int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Answer the decision that waits; BridgeError: the episode is over, or as episodes' ``answer``."""
        if not self._episodes.waiting[0]:
            raise BridgeError("no decision waits for an answer", remedy="Call reset() first.")
        done = self._episodes.step(np.array([action], np.int64))
        terminated, truncated = bool(done.terminated[0]), bool(done.truncated[0])
        info = self._info(done.invalid, self._episodes.final_info(done) if terminated or truncated else {})
        return self._episodes.observation(0), float(done.rewards[0]), terminated, truncated, info

    def _info(self, invalid: Flags, more: dict[str, Floats]) -> dict[str, Any]:
        info = {**self._episodes.info(), "invalid": invalid, **more}
        values: dict[str, Any] = {name: values[0].item() for name, values in info.items()}
        return {**values, "action_mask": self._episodes.masks[0].astype(np.int8)}

    def render(self) -> Any:
        """Show the moment: ``ansi``: text; ``rgb_array``: a picture, uint8 [height, width, 3].

        An environment that was made without ``render_mode`` shows nothing, as in Gymnasium.
        """
        return render(self._episodes.snapshot(0), self.render_mode)

    def action_masks(self) -> Flags:
        """Return [actions] which are legal now, as sb3-contrib's MaskablePPO asks; none behind the end."""
        return np.array(self._episodes.masks[0])

    def job_outcomes(self) -> Any:
        """Return what has become of the episode's jobs so far."""
        return self._episodes.job_outcomes(0)


class SchedulingVectorEnvBase(gymnasium.vector.VectorEnv[Any, Ints, npt.NDArray[Any]]):
    """Episodes at B places, all from one generator, in one call.

    A place whose episode has ended begins the next one at the following step, whatever its action
    (Gymnasium's ``NEXT_STEP``). `info` holds arrays [B]; what `SchedulingEnvBase` returns with an episode's
    last step comes with masks (``_NAME``) of the places whose episode has just ended.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (as Gymnasium declares it)
        "render_modes": [*RENDER_MODES],
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, episodes: VectorEpisodes[Any], render_mode: str | None = None) -> None:
        self.render_mode = check_render_mode(render_mode)
        self._episodes, self.task = episodes, episodes.task
        self.num_envs = len(episodes.masks)
        self.single_observation_space, self.single_action_space = episodes.spaces()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._generators: list[np.random.Generator] = []  # a place's own, after a list of seeds
        if self.task.seed is not None:
            super().reset(seed=self.task.seed)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode at every place; arguments as in `SchedulingEnvBase.reset`.

        With a list of seeds [B], each place draws like a single environment of its seed, as in Gymnasium's
        ``SyncVectorEnv``; None leaves a place's generator as it is.
        """
        if seed is None or isinstance(seed, int | np.integer):
            super().reset(seed=None if seed is None else int(seed))
            self._generators = self._generators if seed is None else []
        else:
            self._generators = self._seeded(seed)
        self._episodes.reset(self._draws, options or {}, rewind=seed is not None)
        invalid = np.zeros(self.num_envs, np.bool_)
        return self._episodes.observation(), {
            **self._episodes.info(),
            "invalid": invalid,
            **self._mask_info(),
        }

    @property
    def _draws(self) -> Draws:
        return self._generators or self.np_random

    def _seeded(self, seeds: Sequence[int | None]) -> list[np.random.Generator]:
        """Return a generator for each place, by its seed; without one the place's own goes on."""
        try:
            listed = list(seeds)
        except TypeError:
            listed = []
        whole = all(s is None or (isinstance(s, int | np.integer) and s >= 0) for s in listed)
        if len(listed) != self.num_envs or not whole:
            remedy = f"One whole number from 0 on, or a list of {self.num_envs}, one for each environment."
            raise BridgeError(f"seed cannot be {seeds!r:.60}", where="reset", remedy=remedy)
        before: Sequence[np.random.Generator | None] = self._generators or [None] * self.num_envs
        return [
            own if seed is None and own is not None else np_random(None if seed is None else int(seed))[0]
            for seed, own in zip(listed, before, strict=True)
        ]

    def step(self, actions: Ints) -> tuple[Any, Floats, Flags, Flags, dict[str, Any]]:
        """Answer every waiting decision, and begin the next episode where one was over."""
        ended = np.flatnonzero(~self._episodes.waiting)
        done = self._episodes.step(actions)
        if len(ended):
            for places, rng in drawn_by(self._draws, ended):
                self._episodes.reset_at(places, rng)
        info = {**self._episodes.info(), "invalid": done.invalid, **self._mask_info()}
        if (last := done.terminated | done.truncated).any():
            for name, values in self._episodes.final_info(done).items():
                info |= {name: values, f"_{name}": last.copy()}
        return self._episodes.observation(), done.rewards, done.terminated.copy(), done.truncated, info

    def _mask_info(self) -> dict[str, npt.NDArray[np.int8]]:
        return {"action_mask": self._episodes.masks.astype(np.int8)}

    def render(self) -> Any:
        """Show the moment at each place: a tuple of what `SchedulingEnvBase.render` returns."""
        return tuple(render(self._episodes.snapshot(b), self.render_mode) for b in range(self.num_envs))

    def action_masks(self) -> Flags:
        """Return [B, actions] which are legal now; none at places whose episode is over.

        The next step begins an episode there and reads no action, so any will do: Gymnasium's
        ``action_space.sample(mask)`` gives 0 for such a row.
        """
        return np.array(self._episodes.masks)

    def job_outcomes(self, place: int) -> Any:
        """Return what has become of the jobs of a place's episode so far."""
        return self._episodes.job_outcomes(place)
