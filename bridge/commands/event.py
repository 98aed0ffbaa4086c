"""The event-driven scheduler, as commands know it: judged on a log, on a platform, behind a socket."""

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from bridge.base.arrays import Flags, Ints, behind
from bridge.base.cache import is_checkpoint
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressReporter
from bridge.commands.request import CommandOutput, CommandRequest, StoppedError
from bridge.commands.validate import validate
from bridge.experiment.prepare import beliefs, placement, with_agent
from bridge.experiment.site_jobs import on_nodes
from bridge.experiment.spec import Sampling, policy_fields
from bridge.judge.action_metrics import compute_action_metrics, mean_of
from bridge.judge.compare import trained_on_them
from bridge.judge.sequences import SAMPLERS, Play, compare_to_base, sample, values_of
from bridge.learn.resolve import agents_of
from bridge.platform.capacities import capacities
from bridge.platform.read import read_platform
from bridge.policy_name import combine_names, parse_policy
from bridge.report import evaluation_tables
from bridge.scheduler.protocol import Policy
from bridge.workload.catalogue import read_log
from bridge.workload.select import Jobs
from bridge.workload.table import Workload
from bridge.worlds.batsim.dispatcher import DispatcherConfig as Deciding
from bridge.worlds.batsim.estimates import estimate_requested
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    from bridge.learn.checkpoint import LogAgent
    from bridge.learn.recipe import Recipe
    from bridge.learn.training import TrainingData
#: Parameters that mean something to the time-stepped pool only.
_POOL = frozenset(
    {"data", "kill", "rate", "steps", "units", "slots", "oracle_clamp", "objective", "teacher", "no_start"}
)


@dataclass(frozen=True)
class Contestant:
    setup: SchedulerConfig
    agent: "LogAgent | None" = None

    @property
    def name(self) -> str:
        if self.agent is not None:
            return self.agent.name
        setup = self.setup
        if setup.recorded:
            return setup.order
        backfill = f"+{setup.backfill}" if setup.backfill != "none" else ""
        by = f" by {setup.candidate_order}" if setup.candidate_order else ""
        return setup.order + backfill + by + (f"+{setup.action}" if setup.action else "")

    @property
    def estimator(self) -> str:
        return self.setup.estimator or self.setup.rules()[0].estimator

    def prepare(self, jobs: Jobs) -> Scenario:
        return self.setup.build_scenario(jobs, self.agent.recipe.policy(self.setup) if self.agent else None)

    def play(self) -> Play | None:
        """Return the function that plays its sequences; None = the built-in rules."""
        if self.agent is None:
            return None
        from bridge.learn.agent import play_sequences

        return functools.partial(play_sequences, self.agent)


#: A contestant, whether it is an oracle, its value on every sequence; its means of `ACTION_METRICS`, where
#: any contestant has a rule of action.
Result = tuple[Contestant, bool, "NDArray[Any]", dict[str, float | None] | None]


class EventBackend:
    name, title = "event", "the event-driven scheduler"

    def unsupported_options(self, command: str, typed: Collection[str]) -> Iterable[str]:
        return {*typed} & (_POOL | {"sequences"} if command == "validate" else _POOL)

    def evaluate(self, request: CommandRequest, watch: ProgressReporter) -> CommandOutput:
        named = is_checkpoint(request.log)
        agents = agents_of([*([request.log] if named else []), *request.agents])
        first = agents[0] if named else None
        sampling = request.settings(Sampling)
        # the agent's rules, if its folder stands for the log, with what was typed over them
        several = ("order", "backfill", "estimator")  # of which a contestant each is made
        own = {name: value for name, value in request.typed.items() if name not in several}
        setup = replace(request, typed=own).settings(SchedulerConfig, first.recipe.setup if first else None)
        refuse_protocols(request, agents, setup.protocol)
        contestants = contestants_of(request, setup, agents, named)
        name = first.origin.workload if first else request.log
        workload = read_log(name, request.typed.get("malformed", "refuse"))
        dependencies = bool(request.typed.get("dependencies"))
        if dependencies and agents:
            what = "jobs follow others under rules that have not learnt only"
            raise BridgeError(what, where="--dependencies", remedy="Leave it out, or the agents.")
        jobs = setup.select(workload, dependencies=dependencies)
        watch.dropped(jobs.tally)
        learnt = _trained_on(agents, name, workload, jobs, first)
        before = max(map(behind, learnt), default=0)
        before = before if sampling.part is None else round(len(jobs) * sampling.part)
        sampler = SAMPLERS.get(setup.rules()[1].name, SAMPLERS["standard"])
        if first is not None and not {"protocol", "preset"} & {*request.typed}:
            sampler = SAMPLERS["standard"]  # an agent's row, whatever it learnt under
        length, count = sampling.length or sampler.length, sampling.sequences or sampler.sequences
        seed = sampler.seed if sampling.seed is None else sampling.seed
        starts = before + sample(sampler, len(jobs) - before, count, length, seed)
        warnings = list(_warnings(agents, learnt, starts, length))
        results: list[Result] = []
        prepared = [one.prepare(jobs) for one in contestants]
        warnings += dict.fromkeys(text for scenario in prepared for text in scenario.warnings)
        warnings += _refuse_gaps(prepared, jobs)
        watch.warn(warnings)
        has_action = any(scenario.permits is not None for scenario in prepared)
        try:
            with watch.bar("sequences", len(starts) * len(contestants), "sequences") as advance:
                for one, ready in zip(contestants, prepared, strict=True):
                    before = len(results) * len(starts)
                    report = functools.partial(lambda first, done: advance(first + done), before)
                    notes: list[dict[str, float]] = []
                    note = functools.partial(_note_actions, notes)
                    values = values_of(
                        ready,
                        starts,
                        length,
                        sampling.metric,
                        report,
                        one.play(),
                        note if has_action else None,
                    )
                    results.append((one, ready.oracle, values, mean_of(notes) if has_action else None))
        except KeyboardInterrupt:
            if not results:
                raise
            message = f"{len(results)} of {len(contestants)} policies are finished"
            outcome = _judged(results, starts, length, sampling.metric, jobs.name, warnings)
            raise StoppedError(outcome, message) from None
        return _judged(results, starts, length, sampling.metric, jobs.name, warnings)

    def validate(
        self, request: CommandRequest, on: str, out: Path | None, watch: ProgressReporter
    ) -> CommandOutput:
        return validate(request, on, out, watch)

    def decide(self, request: CommandRequest) -> tuple[DecisionProcess, str]:
        setup, who = self.dispatcher_config(request)
        return request.process(setup), who

    def dispatcher_config(self, request: CommandRequest) -> tuple[Deciding, str]:
        """Return the dispatcher's configuration and the policy's label; BridgeError: as `decide`."""
        typed, name = request.typed, request.policies[0]
        agent = next(iter(agents_of(request.agents)), None)
        if agent is not None:
            refuse_protocols(request, [agent], "standard")
            policy = agent.recipe.policy()
        else:
            policy_fields(name)  # refuses those of the pool
            policy = name.policy(typed.get("backfill", Policy.backfill), typed.get("candidate_order", ""))
        estimator = typed.get("estimator") or (agent.recipe.setup.estimator if agent else "") or "requested"
        return with_agent(
            _deciding(policy, estimator, typed), agent
        ), f"{name.text}, backfill {policy.backfill}"

    def load_training_data(
        self, recipe: "Recipe", request: CommandRequest, digest: str = ""
    ) -> "TrainingData":
        from bridge.learn.agent import digest_of
        from bridge.learn.training import TrainingData

        log = read_log(request.log, request.typed.get("malformed", "refuse"))
        return TrainingData.of(recipe, log, digest_of(log, request.log, digest))


SCHEDULER = EventBackend()


def _rules_of(agent: "LogAgent", setup: SchedulerConfig) -> SchedulerConfig:
    """Return an agent's own order, backfilling and estimator under the rules of this evaluation."""
    own = agent.recipe.setup
    return replace(setup.with_policy_of(own), estimator=own.estimator)


def refuse_protocols(request: CommandRequest, agents: "Iterable[LogAgent]", protocol: str) -> None:
    for agent in agents:
        from bridge.learn.agent import require_protocol

        require_protocol(agent, protocol, bool(request.typed.get("cross_protocol")))


def contestants_of(
    request: CommandRequest, setup: SchedulerConfig, agents: "Sequence[LogAgent]", named: bool
) -> list[Contestant]:
    """Return the contestants, the base first; `named`: an agent's folder stands for the log."""
    typed, usual = request.typed, SchedulerConfig(protocol=setup.protocol).with_usual_policy(())
    rules = [policy for policy in request.policies if not (policy.agent or policy.plugin)]
    chosen = bool(rules or {"order", "backfill", "estimator", "candidate_order"} & {*typed})
    if rules and "backfill" in typed and "order" not in typed:
        remedy = f"Write it behind the policy's name, as in sjf+{typed['backfill'][0]}, or give --order."
        raise BridgeError("is the backfilling of --order", where="--backfill", remedy=remedy)
    if {"order", "backfill"} & {*typed} or not rules:
        short = combine_names(typed.get("order", (usual.order,)), typed.get("backfill", (usual.backfill,)))
        rules = [*map(parse_policy, short), *rules]
    ruled = []
    for policy in rules:
        own: dict[str, Any] = {"backfill": usual.backfill, **policy_fields(policy)}
        for believed in dict.fromkeys(("",) if policy.is_recorded else typed.get("estimator", ("",))):
            ruled.append(Contestant(replace(setup, **own, estimator=believed)))
    learnt = {str(agent.folder): Contestant(_rules_of(agent, setup), agent) for agent in agents}
    if agents and (named or not chosen):  # the base is the first agent's own order
        contestants = [Contestant(_rules_of(agents[0], setup)), *learnt.values(), *(ruled if chosen else [])]
    else:
        contestants = [*ruled, *learnt.values()]
    return list(dict.fromkeys(contestants))


def _trained_on(
    agents: "Sequence[LogAgent]", name: str, workload: Workload, jobs: Jobs, own: "LogAgent | None"
) -> list[Flags]:
    """Return which jobs each agent may have learnt on; `own`: its log is the one that it learnt on."""
    if not agents:
        return []
    from bridge.learn.agent import require_same, trained_on

    if own is not None:
        require_same(
            own, name, workload, f"If you mean this log: bridge evaluate {name} --agent {own.folder}"
        )
    return [trained_on(agent, name, workload, jobs) for agent in agents]


def _warnings(
    agents: "Sequence[LogAgent]", learnt: Sequence[Flags], starts: Ints, length: int
) -> Iterator[str]:
    """Yield a warning for each agent that is judged on sequences with jobs of its training."""
    for agent, jobs in zip(agents, learnt, strict=True):
        if n := sum(bool(jobs[first : first + length].any()) for first in starts.tolist()):
            yield trained_on_them(agent.name, n, len(starts), "sequences")


def _note_actions(notes: list[dict[str, float]], prepared: Scenario, schedule: Schedule, first: int) -> None:
    notes.append(compute_action_metrics(prepared, schedule, first))


def _refuse_gaps(prepared: Sequence[Scenario], jobs: Jobs) -> list[str]:
    """Return warnings about a judged record; BridgeError: it lacks some of the jobs."""
    records = [one for one in prepared if one.recorded]
    if missing := max((len(jobs) - len(one.jobs) for one in records), default=0):
        what = (
            f"{missing:,} of {counted(len(jobs), 'job')} have no recorded start, so that "
            "sequences would differ"
        )
        remedy = "Leave the policy recorded out, or compare whole replays: bridge fidelity LOG."
        raise BridgeError(what, where=f"{jobs.name}, policy 'recorded'", remedy=remedy)
    warning = "recorded: its jobs met the whole machine's queue, those of rules begin on an idle machine"
    return [warning] if records else []


def _judged(
    results: Sequence[Result], starts: Any, length: int, metric: str, name: str, warnings: Sequence[str]
) -> CommandOutput:
    """Return the results with intervals, and differences from the first one."""
    first, _, base, _ = results[0]
    higher = metric == "utilisation"
    judged = [
        compare_to_base(values, base if k else None, starts, length, higher=higher)
        for k, (_, _, values, _) in enumerate(results)
    ]
    document = {
        "workload": name,
        "metric": metric,
        "length": length,
        "sequences": len(starts),
        "starts": [int(s) for s in starts],
        "warnings": [*warnings],
        "policies": [
            {
                "name": who.name,
                "agent": str(who.agent.folder) if who.agent else "",
                **{key: getattr(who.setup, key) for key in _RULES},
                "estimator": who.estimator,
                "oracle": oracle,
                "mean": j.mean.mean,
                "ci95": j.mean.as_dict(),
                "difference": j.difference.as_dict() if j.difference else None,
                "verdict": j.verdict,
                "values": [float(v) for v in values],
                **({} if costs is None else {"action_metrics": costs}),
            }
            for (who, oracle, values, costs), j in zip(results, judged, strict=True)
        ],
    }
    setup = first.setup
    protocol = setup.protocol + (f"/{setup.preset}" if setup.preset else "")
    return CommandOutput(document, evaluation_tables.evaluation(document, judged, protocol))


#: Fields of a setup that an evaluation's record has for every policy.
_RULES = ("order", "backfill", "candidate_order", "action", "protocol", "preset")


def _deciding(policy: Policy, estimator: str, typed: Mapping[str, Any]) -> Deciding:
    """Return the configuration of a decision process without an experiment, from options alone.

    BridgeError: an option does not go with the others.
    """
    path, workload = typed.get("platform"), typed.get("workload")
    rule: str = typed.get("placement", Deciding.placement_name)
    machine, amounts = None, {}
    if path is not None:
        machine = read_platform(path)
        amounts = {resource: n for resource, n in capacities(machine).items() if resource != "nodes"}
    for name, text in typed.get("resources", {}).items():
        if not text.isdecimal() or name == "nodes":
            what, where = "is no whole amount of a further resource", f"--resource {name}={text}"
            raise BridgeError(what, where=where, remedy="Write NAME=BYTES.")
        amounts[name] = int(text)
    setup = Deciding(
        policy,
        placement=placement(rule, machine),
        placement_name=rule,
        resources=amounts,
        storage=typed.get("storage", {}),
    )
    if workload is None:
        if estimator.strip() != "requested":
            what, where = "reads the log of the simulated jobs", f"estimator {estimator!r}"
            raise BridgeError(what, where=where, remedy="Give --workload.")
        if "first" in typed:
            raise BridgeError("counts jobs of the log", where="--first", remedy="Give --workload.")
        if "cluster" in typed:
            what, where = "needs the log whose jobs ask for its nodes", f"--cluster {typed['cluster']}"
            raise BridgeError(what, where=where, remedy="Give --workload.")
        return setup
    replay = replace(
        SchedulerConfig(policy.order, policy.backfill, policy.candidate_order),
        estimator=estimator,
        first=typed.get("first"),
        cluster=typed.get("cluster"),
    )
    prepared = replay.build_scenario(
        replay.select(read_log(workload)), None if "cluster" not in typed else policy
    )
    recorded, facts = beliefs(prepared)
    believed = estimate_requested if estimator.strip() == "requested" else recorded
    return on_nodes(replace(setup, facts=facts, estimator=believed), prepared)
