"""The event-driven scheduler, as commands know it: judged on a log, on a platform, behind a socket."""

import functools
import hashlib
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from bridge.arrays import Flags, Ints, behind
from bridge.batsim.beliefs import requested
from bridge.batsim.dispatcher import Setup as Deciding
from bridge.batsim.process import DecisionProcess
from bridge.config.fields import fields_of
from bridge.errors import BridgeError
from bridge.experiment.prepare import Task, beliefs, by_agent, load, placement
from bridge.experiment.program import PLATFORM
from bridge.experiment.spec import Detailed, Experiment, Sampling, parse, policy_fields
from bridge.experiment.worlds import run_fast, simulated
from bridge.fast.episode import Prepared
from bridge.fast.setup import Setup
from bridge.judge import agreement
from bridge.judge.compare import trained_on_them
from bridge.judge.run import place_of, write_run
from bridge.judge.sequences import SAMPLERS, Play, judge, sample, values_of
from bridge.learn.folder import is_checkpoint, is_of_pool
from bridge.platform.capacities import capacities
from bridge.platform.read import read_platform
from bridge.policy_name import combined, is_own, parse_policy, refuse_twice
from bridge.scheduler.protocol import Policy
from bridge.schedulers import Outcome, Request, StoppedError, tables
from bridge.watch import Watch
from bridge.workload.catalogue import read_log
from bridge.workload.select import Jobs
from bridge.workload.table import Workload

if TYPE_CHECKING:
    from bridge.learn.checkpoint import Checkpoint
    from bridge.learn.recipe import Recipe
    from bridge.learn.training import Material
#: Parameters that mean something to the time-stepped pool only.
_POOL = frozenset(
    {"data", "kill", "rate", "steps", "units", "slots", "oracle_clamp", "objective", "teacher", "no_start"}
)
#: Largest relative difference from a baseline, where none was typed.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Contestant:
    """One policy: an order with a backfilling rule, or an agent on top of them."""

    setup: Setup
    agent: "Checkpoint | None" = None

    @property
    def name(self) -> str:
        """What the table calls it."""
        if self.agent is not None:
            return self.agent.name
        setup = self.setup
        backfill = f"+{setup.backfill}" if setup.backfill != "none" else ""
        return setup.order + backfill + (f" by {setup.candidate_order}" if setup.candidate_order else "")

    @property
    def estimator(self) -> str:
        """What run times it believes."""
        return self.setup.estimator or self.setup.rules()[0].estimator

    def prepare(self, jobs: Jobs) -> Prepared:
        """Bring it together with the jobs."""
        return self.setup.prepare(jobs, self.agent.recipe.policy() if self.agent else None)

    def play(self) -> Play | None:
        """Return what plays its sequences; None = the built-in rules."""
        if self.agent is None:
            return None
        from bridge.learn.agent import schedules

        return functools.partial(schedules, self.agent)


#: A contestant, whether it is an oracle, and its value on every sequence.
Result = tuple[Contestant, bool, "NDArray[Any]"]


class Event:
    """See `bridge.schedulers.Scheduler`."""

    name, title = "event", "the event-driven scheduler"

    def refused(self, command: str, typed: Collection[str]) -> Iterable[str]:
        return {*typed} & (_POOL | {"sequences"} if command == "validate" else _POOL)

    def evaluate(self, request: Request, watch: Watch) -> Outcome:
        named = is_checkpoint(request.log)
        agents = _agents([*([request.log] if named else []), *request.agents])
        first = agents[0] if named else None
        sampling = request.settings(Sampling)
        # the agent's rules, if its folder stands for the log, with what was typed over them
        several = ("order", "backfill", "estimator")  # of which a contestant each is made
        own = {name: value for name, value in request.typed.items() if name not in several}
        setup = replace(request, typed=own).settings(Setup, first.recipe.setup if first else None)
        _refuse_protocols(request, agents, setup.protocol)
        contestants = _contestants(request, setup, agents, named)
        name = first.origin.workload if first else request.log
        workload = read_log(name, request.typed.get("malformed", "refuse"))
        jobs = setup.select(workload)
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
        watch.warn(warnings)
        watch.compiling()
        results: list[Result] = []
        prepared = [one.prepare(jobs) for one in contestants]
        try:
            with watch.bar("sequences", len(starts) * len(contestants), "sequences") as advance:
                for one, ready in zip(contestants, prepared, strict=True):
                    before = len(results) * len(starts)
                    report = functools.partial(lambda first, done: advance(first + done), before)
                    values = values_of(ready, starts, length, sampling.metric, report, one.play())
                    results.append((one, ready.oracle, values))
        except KeyboardInterrupt:
            if not results:
                raise
            said = f"{len(results)} of {len(contestants)} policies are finished"
            outcome = _judged(results, starts, length, sampling.metric, jobs.name, warnings)
            raise StoppedError(outcome, said) from None
        return _judged(results, starts, length, sampling.metric, jobs.name, warnings)

    def validate(self, request: Request, on: str, out: Path | None, watch: Watch) -> Outcome:
        baseline, tolerance = request.typed.get("baseline"), request.typed.get("tolerance")
        before = agreement.read_baseline(baseline) if baseline is not None else None
        known = {name for kind in (Experiment, Setup, Detailed) for name in fields_of(kind)}
        typed = {name: value for name, value in request.typed.items() if name in known}
        learnt = next(filter(is_checkpoint, request.agents), "")
        if "workload" not in typed and learnt:
            typed["workload"] = _agents([learnt])[0].origin.workload
        refuse_twice(policy.text for policy in request.policies)
        experiments = {
            policy.text: parse({}, f"policy {policy.text!r}", {**typed, **policy_fields(policy), "on": on})
            for policy in request.policies
        }
        for experiment in experiments.values():
            experiment.check()
        found: list[agreement.Agreement] = []
        inputs: dict[str, Any] = {}
        for name, experiment in experiments.items():
            task = load(experiment)
            if not found:
                watch.dropped(task.prepared.jobs.tally)
            watch.warn(task.warnings)
            one, inputs = _both(name, task, out, watch)
            found.append(one)
        document, problems = agreement.as_dict(found, inputs), []
        if before is not None:
            problems = agreement.against(document, before, tolerance or _TOLERANCE)
        elif tolerance is not None:
            problems = agreement.beyond(found, tolerance)
        if out is not None:
            agreement.write_document(document, out / "validation.json")
        return Outcome(document, tables.agreements(found, agreement.ranks(found)), problems)

    def decide(self, request: Request) -> tuple[DecisionProcess, str]:
        setup, who = self.deciding(request)
        return request.process(setup), who

    def deciding(self, request: Request) -> tuple[Deciding, str]:
        """Return who decides in a world from outside, and how it is called; BridgeError: as `decide`."""
        typed, name = request.typed, request.policies[0]
        agent = next(iter(_agents(request.agents)), None)
        if agent is not None:
            _refuse_protocols(request, [agent], "standard")
            policy = agent.recipe.policy()
        else:
            fields = policy_fields(name)
            backfill = fields.get("backfill") or typed.get("backfill", Policy.backfill)
            policy = Policy(fields["order"], backfill, typed.get("candidate_order", ""))
        estimator = typed.get("estimator") or (agent.recipe.setup.estimator if agent else "") or "requested"
        return by_agent(
            _deciding(policy, estimator, typed), agent
        ), f"{name.text}, backfill {policy.backfill}"

    def material(self, recipe: "Recipe", request: Request, known: str = "") -> "Material":
        from bridge.learn.agent import digest_of
        from bridge.learn.training import Material

        log = read_log(request.log, request.typed.get("malformed", "refuse"))
        return Material.of(recipe, log, digest_of(log, request.log, known))


SCHEDULER = Event()


def _agents(folders: Iterable[str]) -> "list[Checkpoint]":
    """Return the agents, each once; ``module:ATTR`` stands for a policy of the user's own.

    BridgeError: no checkpoint, or one of the time-stepped pool.
    """
    names = list(dict.fromkeys(folders))
    if not names:
        return []
    from bridge.learn import checkpoint
    from bridge.learn.own import load_own

    for name in names:
        if not is_own(name) and is_of_pool(name):
            remedy = f"Judge it without a log: bridge evaluate {shlex.quote(name)}"
            raise BridgeError("is an agent of the time-stepped pool", where=name, remedy=remedy)
    return [load_own(name) if is_own(name) else checkpoint.load(name) for name in names]


def _rules_of(agent: "Checkpoint", setup: Setup) -> Setup:
    """Return an agent's own order, backfilling and estimator under the rules of this evaluation."""
    own = agent.recipe.setup
    return replace(setup.deciding_as(own), estimator=own.estimator)


def _refuse_protocols(request: Request, agents: "Iterable[Checkpoint]", protocol: str) -> None:
    for agent in agents:
        from bridge.learn.agent import require_protocol

        require_protocol(agent, protocol, bool(request.typed.get("cross_protocol")))


def _contestants(
    request: Request, setup: Setup, agents: "Sequence[Checkpoint]", named: bool
) -> list[Contestant]:
    """Return who is judged, the base first; `named`: an agent's folder stands for the log."""
    typed = request.typed
    rules = [policy for policy in request.policies if not (policy.agent or policy.plugin)]
    chosen = bool(rules or {"order", "backfill", "estimator", "candidate_order"} & {*typed})
    if rules and "backfill" in typed and "order" not in typed:
        remedy = f"Write it behind the policy's name, as in sjf+{typed['backfill'][0]}, or give --order."
        raise BridgeError("is the backfilling of --order", where="--backfill", remedy=remedy)
    if {"order", "backfill"} & {*typed} or not rules:
        short = combined(typed.get("order", (Setup.order,)), typed.get("backfill", (Setup.backfill,)))
        rules = [*map(parse_policy, short), *rules]
    ruled = []
    for policy in rules:
        own: dict[str, Any] = {"backfill": Setup.backfill, **policy_fields(policy)}
        for believed in dict.fromkeys(typed.get("estimator", ("",))):
            ruled.append(Contestant(replace(setup, **own, estimator=believed)))
    learnt = {str(agent.folder): Contestant(_rules_of(agent, setup), agent) for agent in agents}
    if agents and (named or not chosen):  # the base is the first agent's own order
        found = [Contestant(_rules_of(agents[0], setup)), *learnt.values(), *(ruled if chosen else [])]
    else:
        found = [*ruled, *learnt.values()]
    return list(dict.fromkeys(found))


def _trained_on(
    agents: "Sequence[Checkpoint]", name: str, workload: Workload, jobs: Jobs, own: "Checkpoint | None"
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
    agents: "Sequence[Checkpoint]", learnt: Sequence[Flags], starts: Ints, length: int
) -> Iterator[str]:
    """Yield a line for each agent that is judged on sequences with jobs that it may have learnt on."""
    for agent, jobs in zip(agents, learnt, strict=True):
        if n := sum(bool(jobs[first : first + length].any()) for first in starts.tolist()):
            yield trained_on_them(agent.name, n, len(starts), "sequences")


def _judged(
    results: Sequence[Result], starts: Any, length: int, metric: str, name: str, warnings: Sequence[str]
) -> Outcome:
    """Return the results with intervals, and differences from the first one."""
    first, _, base = results[0]
    higher = metric == "utilisation"
    judged = [
        judge(values, base if k else None, starts, length, higher=higher)
        for k, (*_, values) in enumerate(results)
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
            }
            for (who, oracle, values), j in zip(results, judged, strict=True)
        ],
    }
    setup = first.setup
    protocol = setup.protocol + (f"/{setup.preset}" if setup.preset else "")
    return Outcome(document, tables.evaluation(document, judged, protocol))


#: Fields of a setup that an evaluation's record has for every policy.
_RULES = ("order", "backfill", "candidate_order", "protocol", "preset")


def _both(
    name: str, task: Task, out: Path | None, watch: Watch
) -> tuple[agreement.Agreement, dict[str, Any]]:
    """Run one policy in both worlds, write both runs (also of one that failed), and compare them."""
    fast = run_fast(task, watch)
    with simulated(task, watch) as (detailed, how):
        if out is not None:
            place = place_of(out, name)
            write_run(fast, place / "fast")
            write_run(detailed, place / task.on, detailed=how.folder)
        if how.fault is not None:
            raise how.fault
        inputs = _inputs(task, how.folder)
    return agreement.agree(name, fast, detailed), inputs


def _inputs(task: Task, folder: Path) -> dict[str, Any]:
    """Return what a validation depends on, and a baseline must share."""
    detailed, jobs = task.detailed, task.prepared.jobs
    assert task.platform is not None
    return {
        "workload": jobs.name,
        "jobs": len(jobs),
        "node_seconds": float((jobs.demand[:, 0] * (jobs.run / 1e6)).sum()),
        "nodes": int(jobs.capacity[0]),
        "platform": task.platform.root.name,
        "platform_sha256": hashlib.sha256((folder / PLATFORM).read_bytes()).hexdigest(),
        "world": task.on,
        "profile": str(detailed.kind),
        "staging": detailed.staging,
        "power": [detailed.power, detailed.power_budget, detailed.shutdown_after, detailed.dvfs],
        "walltime": detailed.limit.name,
        "placement": detailed.placement,
        "estimator": task.setup.estimator or "requested",
    }


def _deciding(policy: Policy, estimator: str, typed: Mapping[str, Any]) -> Deciding:
    """Return the setup of a decision process that knows no experiment, only what was typed.

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
        return setup
    replay = replace(
        Setup(policy.order, policy.backfill, policy.candidate_order),
        estimator=estimator,
        first=typed.get("first"),
    )
    recorded, facts = beliefs(replay.prepare(replay.select(read_log(workload))))
    believed = requested if estimator.strip() == "requested" else recorded
    return replace(setup, facts=facts, estimator=believed)
