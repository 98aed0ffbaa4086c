"""Episodes: jobs, a policy and a protocol, filled into the scheduler's records."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.scheduler.action_state import ActionState, allocate_actions, reset_actions
from bridge.scheduler.actions import format_action
from bridge.scheduler.cluster_state import ClusterState
from bridge.scheduler.compiled import CompiledPolicy, Ranker, compile_policy
from bridge.scheduler.estimators import RunTimeEstimates, estimate, last_two_runs, progress_file
from bridge.scheduler.names import CONSERVATIVE, MULTIFACTOR
from bridge.scheduler.protocol import Policy, Protocol
from bridge.scheduler.python_rules import JobsView
from bridge.scheduler.state import NEVER, SECOND, State, reset
from bridge.scheduler.state import allocate as allocate_state
from bridge.workload.rules import LOAD_RULES, LoadRule
from bridge.workload.running_beliefs import RunningBeliefs, read_beliefs
from bridge.workload.select import END, Jobs
from bridge.worlds.fast import reestimates
from bridge.worlds.fast.action_terms import NO_TERMS, ActionTerms, read_terms
from bridge.worlds.fast.cluster_arrays import ClusterArrays, build_cluster_arrays, reset_cluster
from bridge.worlds.fast.multifactor import MultifactorPriorities
from bridge.worlds.fast.one_machine import check_machines
from bridge.worlds.fast.recorded_nodes import RecordedNodes
from bridge.worlds.fast.site_lookahead import SiteLookahead
from bridge.worlds.fast.slurm.log_jobs import reasons_of_refusals
from bridge.worlds.fast.user_shares import UserShares
from bridge.worlds.fast.world import WorldState


@dataclass(frozen=True)
class Scenario:
    """Jobs with what is believed about them, and the compiled policy that will schedule them.

    Attributes:
        estimate: believed lengths, each [n] microseconds.
        share: [U] each user's share of the workload's node-seconds.
        partition: [n] share of the job's queue in the workload's node-seconds.
        tie: [n] what breaks equal scores before the submission order does.
        true_requests: the loading rule put true run times in the requests' place.
        recorded: the log's own starts are played, see `bridge.worlds.fast.recorded`.
        recorded_nodes: where these jobs ran on the nodes of a cluster, whose rules decide nothing here.
        terms: what a rule of action may do to jobs, and at what costs.
        cluster: the nodes and rules that the jobs meet; None: one pool of nodes.
        beliefs: what is believed of jobs as they run; None: the same from start to end.
        seed: of the phases of clocks, where passes come by clocks of their own.
    """

    jobs: Jobs
    estimate: RunTimeEstimates
    compiled: CompiledPolicy
    users: Ints
    share: Floats
    partition: Floats
    tie: Ints
    true_requests: bool = False
    recorded: bool = False
    recorded_nodes: RecordedNodes | None = None
    terms: ActionTerms = NO_TERMS
    cluster: ClusterArrays | None = None
    beliefs: RunningBeliefs | None = None
    seed: int = 0

    def refuse_beliefs(self, subject: str) -> None:
        """Raise BridgeError if beliefs of running jobs are to change where they cannot."""
        if self.beliefs is not None:
            what = f"{subject} have one belief for a whole run"
            raise BridgeError(what, where="estimator progress(FILE)", remedy="Use it in `bridge replay`.")

    @property
    def permits(self) -> Ints | None:
        """What may be done to each job [n], see `bridge.scheduler.actions`; None without an action."""
        return self.terms.of_jobs.get("permits")

    @property
    def oracle(self) -> bool:
        """Tell whether true run times are read, by the estimator or as the jobs' requests."""
        return self.estimate.oracle or self.true_requests

    @property
    def warnings(self) -> list[str]:
        """What was decided for jobs in place of what they say, a line each."""
        notes = self.cluster.notes if self.cluster is not None else {}
        counts = (f"{counted(count, 'job')} {note}" for note, count in notes.items())
        record = self.recorded_nodes.notes if self.recorded_nodes is not None else ()
        return [*counts, *self.idle_events, *self._notes_of_priorities(), *self.terms.notes, *record]

    @property
    def idle_events(self) -> tuple[str, ...]:
        """What in the cluster's calendar changes nothing, and why, as far as it is seen beforehand."""
        calendar = self.cluster.calendar if self.cluster is not None else None
        return calendar.notes if calendar is not None else ()

    def _notes_of_priorities(self) -> tuple[str, ...]:
        """Return a note if an order that was chosen weighs nothing; Slurm's own rules always have it."""
        is_weighted = self.compiled.order.name == MULTIFACTOR and not self.compiled.protocol.own_passes
        if self.cluster is None or not is_weighted or self.cluster.cluster.priority.weighs:
            return ()
        name = self.cluster.cluster.name
        return (f"order multifactor is fcfs here: all weights in [priority] of cluster {name!r} are 0",)


def with_preset(protocol: Protocol, preset: str) -> tuple[Protocol, LoadRule]:
    """Return a protocol and loading rule as one code base of the SchedGym family has them."""
    if preset == "rlbackfilling":
        protocol = replace(protocol, skip_next=True)
    elif preset == "schedinspector":
        protocol = replace(protocol, tie="nodes")
    return protocol, LOAD_RULES[preset]


def _shares(node_seconds: Floats, group: Ints) -> tuple[Ints, Floats]:
    """Return dense group numbers [n] and each group's share of the total."""
    dense = np.searchsorted(np.unique(group), group)  # with less memory than the inverse of `unique`
    share = np.asarray(np.bincount(dense, node_seconds), np.float64)
    total = float(share.sum())
    return dense, share / total if total > 0 else share


def _ties(jobs: Jobs, protocol: Protocol, rule: LoadRule) -> Ints:
    """Return what breaks equal scores [n] before the order of the jobs does; lower first."""
    if protocol.tie == "nodes":
        return jobs.demand[:, 0]
    # ids need not follow the submissions, by which equal scores go all the same
    return jobs.submit if rule.sort == "id" else np.zeros(len(jobs), np.int64)


def predict_from_history(jobs: Jobs) -> Ints:
    """Predict from the user's last two runs; see `last_two_runs`."""
    return last_two_runs(jobs.user, jobs.submit, jobs.run, jobs.request, jobs.logged_wait)


def prepare(
    jobs: Jobs,
    protocol: Protocol,
    policy: Policy,
    estimator: str,
    rule: LoadRule,
    predictor: Callable[[Jobs], Ints] = predict_from_history,
) -> Scenario:
    """Bring jobs, protocol and policy together; `predictor`: jobs → lengths [n], microseconds.

    Raises BridgeError: unknown order, backfilling or estimator (`bridge.scheduler.estimators`), a pair that
    the protocol does not have, or believed times beyond 64 bits.
    """
    compiled = compile_policy(policy, protocol, on_nodes=jobs.cluster is not None)
    cluster = None
    if jobs.cluster is not None:
        refuse_followers(jobs)
        cluster = build_cluster_arrays(jobs.cluster, jobs, acts=compiled.action is not None)
        _refuse_suspensions(compiled, cluster)
        check_machines(protocol, cluster, [str(name) for name in jobs.id])
        if protocol.own_passes:
            more = dict.fromkeys((*cluster.reasons, *reasons_of_refusals(jobs.cluster)))
            cluster = replace(cluster, reasons=tuple(more))
        jobs = replace(jobs, demand=cluster.requested_nodes[:, None])
        if not protocol.own_passes:
            compiled = replace(compiled, priorities=_priorities(compiled, cluster, jobs))
        if protocol.extra_second:
            jobs = replace(jobs, run=np.maximum(jobs.run // SECOND, 1) * SECOND + SECOND)
    terms = read_terms(compiled.action, jobs, cluster)
    if protocol.own_passes and estimator != protocol.estimator:
        what = f"the protocol {protocol.name} plans by time limits"
        raise BridgeError(what, where=f"estimator {estimator!r}", remedy="Leave out the estimator.")
    true_run = jobs.logged_run if rule.true_estimates == "logged" else jobs.run
    beliefs = _beliefs_of_running(estimator, jobs, compiled)
    believed = (
        _before_start(beliefs, jobs)
        if beliefs
        else estimate(
            estimator,
            true_run,
            jobs.request,
            columns=jobs.extra,
            predictor=lambda: predictor(jobs),
            jobs=lambda: JobsView(
                id=jobs.number,
                user=jobs.user,
                submitted=jobs.submit / SECOND,
                requested=jobs.request / SECOND,
                waited=np.zeros(len(jobs)),
                nodes=jobs.demand[:, 0],
                demand=jobs.demand,
                now=0.0,
                free=jobs.capacity,
                gap=0.0,
                extra=np.zeros_like(jobs.capacity),
            ),
        )
    )
    _refuse_too_long(jobs, believed)
    node_seconds = jobs.demand[:, 0] * (jobs.run / SECOND)
    users, share = _shares(node_seconds, jobs.user)
    queues, queue_share = _shares(node_seconds, jobs.queue)
    return Scenario(
        jobs=jobs,
        estimate=believed,
        compiled=compiled,
        users=users,
        share=share,
        partition=queue_share[queues],
        tie=_ties(jobs, protocol, rule),
        true_requests=rule.request == "oracle",
        terms=terms,
        cluster=cluster,
        beliefs=beliefs,
    )


def _refuse_too_long(jobs: Jobs, believed: RunTimeEstimates) -> None:
    """Raise BridgeError if a believed end may be beyond 64 bits at the last instant that can be."""
    latest = float(jobs.submit.max(initial=0)) + float(jobs.run.sum(dtype=np.float64))
    for lengths in (believed.waiting, believed.running):
        if latest + float(lengths.max(initial=0)) > END:
            raise jobs.too_long("believed length", lengths)


def refuse_followers(jobs: Jobs) -> None:
    """Raise BridgeError if jobs on a cluster arrive after the end of others."""
    if jobs.cluster is not None and jobs.follows is not None:
        raise BridgeError(
            "jobs that arrive after the end of others do not know the nodes of a cluster yet",
            where=f"cluster {jobs.cluster.name!r}",
            remedy="Leave out --dependencies, and write the column 'dependency'; or leave out --cluster.",
        )


def _priorities(compiled: CompiledPolicy, cluster: ClusterArrays, jobs: Jobs) -> Ranker | None:
    """Return what ranks the jobs of a log, if its order needs it."""
    if compiled.order.lookahead is not None:
        return SiteLookahead(compiled.order.lookahead, compiled.order.others)
    if not compiled.order.by_priority:
        return None
    if compiled.order.name == MULTIFACTOR:
        return MultifactorPriorities(cluster, jobs)
    return UserShares(cluster, jobs, compiled.protocol.start_gap)


def allocate(
    prepared: Scenario, batch: int, length: int, *, window: int, whole: bool = False, pauses: bool = False
) -> State:
    """Return the memory of schedulers of up to `length` jobs each, with policy and machine in place.

    On a cluster: `whole`: what jobs are allocated is kept for the world, all of it unless the kernel `pauses`
    for the world to collect it.
    """
    users, cluster, resources = len(prepared.share), prepared.cluster, len(prepared.jobs.resources)
    if prepared.compiled.protocol.own_passes:
        what = f"the protocol {prepared.compiled.protocol.name} is there for whole replays"
        raise BridgeError(what, where="this command", remedy="Use bridge replay or bridge run.")
    if cluster is None and prepared.permits is not None:
        acting = allocate_actions(batch, length, resources, window=window, users=users)
        return configure(acting, prepared)
    if cluster is None:
        return configure(allocate_state(batch, length, resources, window=window, users=users), prepared)
    books = bool(prepared.compiled.rules["backfill"][0] == CONSERVATIVE)
    logs = {"whole": whole, "pauses": pauses}
    nodes = cluster.allocate(batch, length, window=window, users=users, books=books, **logs)
    return configure(nodes, prepared)


def _refuse_suspensions(compiled: CompiledPolicy, cluster: ClusterArrays) -> None:
    """Raise BridgeError where partitions or QOS suspend jobs beside a rule of action."""
    if compiled.action is not None and cluster.calendar is not None and cluster.calendar.suspends:
        what = "does not know jobs that a higher tier or QOS suspends: would their limit go on meanwhile?"
        remedy = "Set preempt_mode to requeue, cancel or off, or leave out the action."
        raise BridgeError(what, where=f"action {format_action(compiled.action)!r}", remedy=remedy)


def _beliefs_of_running(estimator: str, jobs: Jobs, compiled: CompiledPolicy) -> RunningBeliefs | None:
    """Return the beliefs that an estimator ``progress(FILE)`` names; None for any other."""
    if (file := progress_file(estimator)) is None:
        return None
    reestimates.check(compiled.protocol, int(compiled.rules[0]["backfill"]), jobs.cluster is not None)
    if compiled.action is not None:
        what = f"the action {format_action(compiled.action)} has one belief for a whole run"
        raise BridgeError(
            what, where=f"estimator {estimator!r}", remedy="Leave out the action, or the estimator."
        )
    if jobs.follows is not None:
        what = "jobs that arrive after the end of others have one belief for a whole run"
        raise BridgeError(what, where=f"estimator {estimator!r}", remedy="Leave out --dependencies.")
    return read_beliefs(Path(file), [jobs.called(int(number)) for number in jobs.number])


def _before_start(beliefs: RunningBeliefs, jobs: Jobs) -> RunTimeEstimates:
    """Return what is believed of jobs until their first change."""
    believed = beliefs.before_start(jobs.request)
    return RunTimeEstimates(believed, believed, believed, beliefs.synthetic)


def configure(state: State, prepared: Scenario) -> State:
    """Return the state with the policy's switches, programs and the machine's capacities in place."""
    state.capacity[:] = prepared.jobs.capacity
    state.constants[:2] = prepared.estimate.order.max() / SECOND, prepared.jobs.capacity[0]
    state.share[:] = prepared.share
    return prepared.compiled.install_in(state)


def load_episode(state: State, world: WorldState, b: int, prepared: Scenario, first: int, last: int) -> None:
    """Make episode `b` the jobs ``first:last``, submitted to an idle machine."""
    fill(state, b, prepared, first, last)
    behind = int(prepared.jobs.submit[last]) if last < len(prepared.jobs) else -1
    world.clock[b] = (0, last - first, 0, 0, NEVER, behind)


def fill(state: State, b: int, prepared: Scenario, first: int, last: int) -> None:
    """Let scheduler `b` of an idle machine know the jobs ``first:last``, none of them submitted."""
    reset(state, b)
    write(state, b, 0, prepared, first, last)
    if prepared.permits is not None and prepared.cluster is None:
        reset_actions(cast(ActionState, state), b)
    if prepared.cluster is not None:
        reset_cluster(cast(ClusterState, state), b)


def write(state: State, b: int, place: int, prepared: Scenario, first: int, last: int) -> None:
    """Write what is known of the jobs ``first:last`` to scheduler `b`'s records from `place` on."""
    jobs, believed = prepared.jobs, prepared.estimate
    part = slice(first, last)
    row = state.jobs[b][place : place + last - first]
    for name, values in (
        ("submit", jobs.submit),
        ("run", jobs.run),
        ("id", jobs.number),
        ("est_wait", believed.waiting),
        ("est_run", believed.running),
        ("tie", prepared.tie),
        ("user", prepared.users),
        ("p", prepared.partition),
        ("n", jobs.demand[:, 0]),
    ):
        row[name] = values[part]
    row["t"] = believed.order[part] / SECOND
    row["s"] = jobs.submit[part] / SECOND
    state.demand[b, place : place + last - first] = jobs.demand[part]
    for name, values in prepared.terms.of_jobs.items():
        cast(ActionState, state).lives[name][b, place : place + last - first] = values[part]
    if prepared.cluster is not None:
        prepared.cluster.write(cast(ClusterState, state), b, place, first, last)
