"""A trained agent at work: on sequences and whole logs, as another world's decider; where it may decide."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.base.arrays import Flags, Ints, behind
from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.cluster.source import digest_of_cluster
from bridge.env.batch import PackedObservations
from bridge.env.encoder import CompiledEncoder
from bridge.env.inspected_picks import Picks
from bridge.env.rows import choice_from_action, encode, key_rows, list_rows, write_context
from bridge.learn.checkpoint import LogAgent
from bridge.learn.checkpoint_files import sha256_of
from bridge.learn.picks import batch_of, picking_agent, picks_of
from bridge.learn.rollout import ActionFunction, copy_for_inference, make_action_function, play
from bridge.learn.user_policy import OwnAgent
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.decisions import PICK
from bridge.scheduler.session import Session
from bridge.workload.catalogue import resolve
from bridge.workload.select import Jobs
from bridge.workload.table import Workload
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule

#: Sequences that are played side by side.
_TOGETHER = 100


def action_function_of(agent: LogAgent) -> ActionFunction:
    """Return how the agent answers, alike in every world."""
    if isinstance(agent, OwnAgent):
        return agent.answer
    return make_action_function(copy_for_inference(agent.actor), agent.mode, agent.origin.seed)


def play_sequences(
    agent: LogAgent,
    prepared: Scenario,
    starts: Ints,
    length: int,
    progress: ProgressCallback = ignore_progress,
) -> list[Schedule]:
    """Play sequences of `length` jobs from `starts` [k] on, each on an idle machine, under an agent.

    `prepared` is the workload under its policy; `progress` is called with the number of finished sequences.
    BridgeError: a sequence reaches past the end, or the agent brings everything to a halt.
    """
    require_resources(agent, prepared.jobs.resources)
    encoder, answer, picks = agent.encoder(), action_function_of(agent), picks_of(picker_of(agent))
    return schedules_by(encoder, answer, prepared, starts, length, progress, picks=picks)


def schedules_by(
    encoder: CompiledEncoder,
    answer: ActionFunction,
    prepared: Scenario,
    starts: Ints,
    length: int,
    progress: ProgressCallback = ignore_progress,
    *,
    picks: Picks | None = None,
) -> list[Schedule]:
    """Return `play_sequences` of whatever answers, for example a fixed rule, by what it sees.

    `picks`: who makes the picks that are inspected, if it is not an order.
    """
    batch = batch_of(prepared, encoder, min(_TOGETHER, max(len(starts), 1)), length, picks)
    schedules: list[Schedule] = []
    for k in range(0, len(starts), _TOGETHER):
        part = starts[k : k + _TOGETHER]
        play(batch, answer, part)
        schedules += [batch.schedule(b, first) for b, first in enumerate(part.tolist())]
        progress(len(schedules))
    return schedules


def replay(agent: LogAgent, prepared: Scenario, progress: ProgressCallback = ignore_progress) -> Schedule:
    """Replay all jobs under the agent's policy. Raises BridgeError: the agent brings everything to a halt."""
    require_resources(agent, prepared.jobs.resources)
    n = len(prepared.jobs)
    answer = action_function_of(agent)
    batch = batch_of(prepared, agent.encoder(), 1, n, picks_of(picker_of(agent)), whole=True)

    def record_actions(view: PackedObservations) -> Ints:
        progress(int(batch.memory.clock.arrived[0] - batch.state.scalars.n_waiting[0]))
        return answer(view)

    play(batch, record_actions, np.zeros(1, np.int64))
    return batch.schedule(0, 0)


def picker_of(agent: LogAgent) -> LogAgent | None:
    """Return the agent whose picks an agent inspects, if it does; errors as `picking_agent`."""
    return picking_agent(agent.recipe, agent.origin.picks_sha256)


def window_of(agent: LogAgent) -> int:
    """Return how many candidates are shown at most to an agent, or to the one whose picks it inspects."""
    return (picker_of(agent) or agent).recipe.encoder.window


class AgentDecider:
    """Answers the decisions of a scheduler that another world drives, exactly as in the fast world."""

    def __init__(self, agent: LogAgent) -> None:
        self._agent, self._compared = agent, False
        picker = picker_of(agent)
        self._picker = AgentDecider(picker) if picker else None
        self._encoder, self._answer = agent.encoder(), action_function_of(agent)
        shape = agent.recipe.encoder
        self._rows = np.zeros((shape.rows, shape.width), np.float32)
        self._context = np.zeros((1, shape.context), np.float32)
        self._keys = np.zeros(shape.rows, np.int64)

    def __call__(self, session: Session, kind: int) -> int:
        """Return a place among the candidates, or DECLINE; BridgeError: a feature is no number."""
        if self._picker is not None and kind == PICK:
            return self._picker(session, kind)
        state, shape, programs = session.state, self._encoder.encoder, self._encoder.programs
        if not self._compared:
            self._compare(session)
        n = list_rows(state, 0, kind, shape.stop)
        encode(state, 0, programs, n, self._rows)
        key_rows(state, 0, n, self._keys)
        if self._context.size:
            write_context(state, 0, programs, self._context[0])
        if state.scalars.bad_score[0] >= 0:
            what = (
                f"a feature of job {state.jobs.id[0, int(state.scalars.bad_score[0])]} is not a finite number"
            )
            raise BridgeError(what, where=f"features {', '.join(shape.names)}")
        view = PackedObservations(self._rows[:n], np.array([0, n], np.int64), self._keys[:n], self._context)
        return int(choice_from_action(state, 0, kind, int(self._answer(view)[0])))

    def _compare(self, session: Session) -> None:
        """Refuse a machine with other resources than the agent sees: the kernels would read beyond it."""
        sees, there = self._encoder.encoder.resources, len(session.state.capacity)
        if sees > there:
            remedy = "Say how much there is of the others (`--resource NAME=AMOUNT`), in the order of its "
            remedy += "training workload."
            raise refused(self._agent, f"the agent sees {sees} resources, the machine has {there}", remedy)
        state: Any = session.state
        if isinstance(state, ClusterState):
            self._encoder.refuse_places(len(state.partition_cores), len(state.qos_priority))
        else:
            self._encoder.refuse_places(None, 0)
        if session.resources:
            require_resources(self._agent, session.resources)
        self._compared = True


def refused(agent: LogAgent, what: str, remedy: str) -> BridgeError:
    return BridgeError(what, where=str(agent.folder), remedy=remedy)


def require_resources(agent: LogAgent, names: Sequence[str]) -> None:
    """Refuse an agent where its resources are others than those it learnt with, or stand in another order."""
    trained_resources = agent.origin.resources[: agent.recipe.encoder.resources]
    here = tuple(names)[: len(trained_resources)]
    if trained_resources and len(here) == len(trained_resources) and here != trained_resources:
        what = f"has learnt with {', '.join(trained_resources)}, and here are {', '.join(here)}"
        raise refused(agent, what, "Use a workload whose resources are the same, in the same order.")


def require_protocol(agent: LogAgent, protocol: str, cross: bool) -> None:
    learnt = agent.recipe.setup.protocol
    if learnt != protocol and not cross:
        what = f"has learnt under the protocol {learnt}, not {protocol}"
        raise refused(agent, what, "Add --cross-protocol if that is what you want to know.")


def digest_of(workload: Workload, name: str, known_name: str = "") -> str:
    """Return the digest of a log's contents; or that of its file, if this is the `known_name` one.

    Older checkpoints know their log by the digest of its file.
    """
    return known_name if known_name and known_name == sha256_of(resolve(name)) else workload.digest()


def was_trained_on(agent: LogAgent, name: str, workload: Workload) -> bool:
    """Tell whether a log is one that the agent learnt on; arguments are those of `digest_of`."""
    own = agent.origin
    return digest_of(workload, name, own.sha256) in (own.sha256, *own.extra_log_digests.values())


def require_same(agent: LogAgent, name: str, workload: Workload, remedy: str) -> None:
    """Refuse a log that is no longer the one that the agent learnt on; `remedy` says how to name another.

    Likewise a cluster.
    """
    if (cluster := agent.recipe.setup.cluster) and digest_of_cluster(cluster) != agent.origin.cluster_sha256:
        what = f"the cluster {cluster} has changed since the agent was trained on it"
        raise refused(agent, what, remedy)
    if not was_trained_on(agent, name, workload):
        raise refused(agent, f"the log {name} has changed since the agent was trained on it", remedy)


def trained_on(agent: LogAgent, name: str, workload: Workload, jobs: Jobs) -> Flags:
    """Tell which jobs of a log the agent may have learnt on, training and validation; none of another log."""
    picker = picker_of(agent)
    picked = trained_on(picker, name, workload, jobs) if picker else np.zeros(len(jobs), np.bool_)
    if not was_trained_on(agent, name, workload):
        return picked
    own = agent.recipe.setup.select(workload)
    return np.isin(jobs.id, own.id[: round(len(own) * agent.recipe.test_from)]) | picked


def first_unseen_job(agent: LogAgent, name: str, workload: Workload, jobs: Jobs) -> int:
    """Return the place among jobs of a log behind which the agent has seen none; 0 on another log."""
    return behind(trained_on(agent, name, workload, jobs))
