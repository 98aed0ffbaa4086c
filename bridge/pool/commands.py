"""The time-stepped pool of RLSchert, as commands know it: judged on drawn sequences, and on a platform."""

import functools
import shlex
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from click import UsageError

from bridge.base.errors import BridgeError
from bridge.base.progress import ProgressReporter
from bridge.commands.request import CommandOutput, CommandRequest
from bridge.experiment.detailed import write_again
from bridge.experiment.prepare import read_valid_platform
from bridge.experiment.run import versions
from bridge.experiment.spec import Detailed, Experiment, platform_file
from bridge.judge.world_agreement import DIFFERING, write_document
from bridge.learn.checkpoint_files import sha256_of
from bridge.policy_name import PolicyName, combine_names, parse_policy
from bridge.pool.evaluate import PoolEvaluation, as_document, build_evaluation, jobs_of, prepare
from bridge.pool.jobset import JobSet
from bridge.pool.platform_runs import (
    READ_PLATFORM,
    PoolPolicy,
    PoolTask,
    TwoWorldResult,
    beyond,
    dispatcher,
    policy_of,
    refuse_one_place,
    simulate,
)
from bridge.pool.settings import EvaluationOptions, PoolConfig
from bridge.pool.tables import pool_evaluation, pool_validation
from bridge.scheduler.names import NAMES
from bridge.worlds.batsim.estimates import estimate_at_submission, estimate_from_series
from bridge.worlds.batsim.process import DecisionProcess

if TYPE_CHECKING:
    from bridge.learn.training import TrainingData
    from bridge.pool.network import PoolCheckpoint
    from bridge.pool.recipe import PoolRecipe

#: What a platform program is started with, of an experiment's options.
_PROGRAM = (
    *("platform", "profile", "placement", "program", "image", "options"),
    *("startup_timeout", "idle_timeout"),
)
_POOL = ("rate", "steps", "units", "slots", "seed", "sequences", "estimator")
_EVERYWHERE = ("scheduler", "policy", "policies", "agent", "as_json", "out")
#: Parameters that mean something here, by command.
_VALID_OPTIONS = {
    "evaluate": {*_EVERYWHERE, *_POOL, "log", "data", "kill", "oracle_clamp"},
    "validate": {*_EVERYWHERE, *_POOL, *_PROGRAM, "data", "on", "tolerance", "no_start"},
    "train": {
        *("policy", "fast", "setting", "config", "seed", "epochs", "threads", "out", "resume", "tensorboard"),
        *("data", "objective", "oracle_clamp", "teacher"),
    },
    "decide": {
        *_EVERYWHERE,
        *("units", "slots", "kill", "address", "estimator", "placement", "platform", "storage"),
        *("energy", "strict", "batsim", "startup_timeout", "idle_timeout"),
    },
}
#: What can be believed of jobs that really run.
_BELIEVERS = {"running": estimate_from_series, "submit": estimate_at_submission}


class PoolBackend:
    name, title = "pool", "the time-stepped pool"

    def unsupported_options(self, command: str, typed: Collection[str]) -> Iterable[str]:
        return {*typed} - _VALID_OPTIONS[command]

    def evaluate(self, request: CommandRequest, watch: ProgressReporter) -> CommandOutput:
        typed = request.typed
        rules = [policy for policy in request.policies if not policy.agent]
        rules = _with_kills(rules or [parse_policy("saf")], typed.get("kill", ("none",)))
        folders = dict.fromkeys([*([request.log] if request.log else []), *request.agents])
        policies = [PoolPolicy(rule.text, "rule" if rule.kill == "rule" else "none") for rule in rules]
        policies += [policy_of(PolicyName(folder, agent=folder)) for folder in folders]
        jobs, options = _jobs_and_options(request, policies)
        evaluations: list[PoolEvaluation] = []
        with watch.bar(self.title, len(policies) * options.sequences, "sequences") as advance:
            for policy in policies:
                before = len(evaluations) * options.sequences
                report = functools.partial(lambda first, done: advance(first + done), before)
                evaluations.append(policy.fast(jobs, _played(options, request, policy.agent), report))
        document = as_document(evaluations)
        return CommandOutput(document, pool_evaluation(document))

    def validate(
        self, request: CommandRequest, on: str, out: Path | None, watch: ProgressReporter
    ) -> CommandOutput:
        typed = request.typed
        tolerance, start = typed.get("tolerance"), not typed.get("no_start")
        detailed = request.settings(Detailed)
        Experiment(self.title, on=on, detailed=detailed).check()
        platform = read_valid_platform(platform_file(detailed.platform), energy=detailed.powered)
        policies = [policy_of(name) for name in dict.fromkeys(request.policies)]
        jobs, base = _jobs_and_options(request, policies)
        base = _unclamped(base)
        everything: list[tuple[PoolPolicy, EvaluationOptions, list[PoolTask]]] = []
        for policy in policies:
            options = _played(base, request, policy.agent)
            if policy.agent is not None and options.settings.oracle:
                oracles = options.settings.oracles
                them = "them" if len(oracles) > 1 else "it"
                knowledge = " and ".join(f"the {name.replace('_', ' ')}" for name in oracles)
                watch.say(f"{policy.name} has learnt with {knowledge}, and is played without {them}")
                options = _unclamped(options)
            sequences = prepare(jobs, options)
            tasks = [
                PoolTask(on, policy, options.settings, sequences, s, platform, detailed)
                for s in range(len(sequences))
            ]
            tasks[0].check()
            everything.append((policy, options, tasks))
        if out is not None:
            refuse_one_place(out, policies)
        if not start:
            assert out is not None
            return CommandOutput({}, [_written(policy, tasks, out) for policy, _, tasks in everything])
        record = {"command": _command(request, on), "versions": versions()}
        both: list[TwoWorldResult] = []
        for policy, options, tasks in everything:
            fast = policy.fast(jobs, options)
            schedules = [simulate(task, fast, record, out=out, watch=watch) for task in tasks]
            both.append(
                TwoWorldResult(
                    policy,
                    fast,
                    build_evaluation(tasks[0].sequences, schedules, fast.policy, fast.kill, options),
                )
            )
        documents = [one.as_dict() for one in both]
        about = {"scheduler": self.name, "world": on, "platform": platform.root.name}
        about |= {"profile": str(detailed.kind), "placement": detailed.placement}
        differing = sum(one[DIFFERING] for one in documents)
        document = {**about, DIFFERING: differing, "policies": documents}
        if out is not None:
            write_document(document, out / "agreement.json")
        problems = beyond(documents, tolerance) if tolerance is not None else []
        return CommandOutput(document, pool_validation(document), problems)

    def decide(self, request: CommandRequest) -> tuple[DecisionProcess, str]:
        typed, name = request.typed, request.policies[0]
        chosen = policy_of(_with_kills([name], [typed.get("kill", "none")])[0])
        options = _played(EvaluationOptions(), request, chosen.agent)
        if chosen.agent is not None:
            from bridge.pool.rollout import require_pool

            options = _unclamped(options)
            require_pool(chosen.agent, options.settings)
        if options.estimator not in _BELIEVERS:
            what = "cannot be had of jobs that really run"
            remedy = "Use running (the jobs' own series) or submit."
            raise BridgeError(what, where=f"estimator {options.estimator!r}", remedy=remedy)
        rule, platform = typed.get("placement", Detailed.placement), typed.get("platform")
        if platform is not None and rule not in READ_PLATFORM:
            raise UsageError(f"--placement {rule} does not read --platform; leave it out")
        decided = dispatcher(
            chosen,
            options.settings,
            rule,
            read_valid_platform(platform) if platform is not None else None,
            believe=_BELIEVERS[options.estimator],
            storage=typed.get("storage", {}),
        )
        return request.process(decided), f"{name.text}, kill {chosen.kill}, {options.settings.units} units"

    def load_training_data(
        self,
        recipe: "PoolRecipe",
        request: CommandRequest,
        digest: str = "",  # noqa: ARG002
    ) -> "TrainingData":
        from bridge.learn.training import TrainingData

        jobs = jobs_of(request.log)
        return TrainingData.of(recipe, jobs, "" if jobs.synthetic else sha256_of(Path(request.log)))


SCHEDULER = PoolBackend()


def _with_kills(rules: Iterable[PolicyName], kills: Iterable[str]) -> list[PolicyName]:
    """Return every heuristic that names no kill rule with each of these, and the others as they are.

    BridgeError: a policy is neither a heuristic nor an agent.
    """
    policies: list[PolicyName] = []
    for rule in rules:
        if rule.agent or rule.kill:
            policies.append(rule)
        elif rule.order in NAMES and not rule.backfill:
            policies += map(parse_policy, combine_names([rule.order], [*kills]))
        else:
            policy_of(rule)
    return list(dict.fromkeys(policies))


def _played(
    base: EvaluationOptions, request: CommandRequest, agent: "PoolCheckpoint | None"
) -> EvaluationOptions:
    """Return what is played: what was typed, else what the agent has learnt on, else the paper's test set."""
    if agent is not None:
        from bridge.pool.rollout import options_of

        base = options_of(agent, base)
    settings = request.settings(PoolConfig, base.settings)
    return replace(request.settings(EvaluationOptions, base), settings=settings)


def _jobs_and_options(
    request: CommandRequest, policies: Iterable[PoolPolicy]
) -> tuple[JobSet, EvaluationOptions]:
    """Return what sequences are drawn from, and what is played, by what the first agent has learnt on."""
    first = next((policy.agent for policy in policies if policy.agent), None)
    jobs = jobs_of(request.typed.get("data", first.origin.workload if first else None))
    return jobs, _played(EvaluationOptions(), request, first)


def _unclamped(options: EvaluationOptions) -> EvaluationOptions:
    return replace(options, settings=options.settings.honest())


def _written(policy: PoolPolicy, tasks: list[PoolTask], out: Path) -> str:
    """Write the files of all simulations of a policy, and scripts that run them; say where."""
    for task in tasks:
        (folder := task.place(out)).mkdir(parents=True)
        task.write_inputs(folder)
        write_again(task, folder)
    return f"{policy.name}: {len(tasks)} simulations; start one with {tasks[0].place(out)}/again.sh"


def _command(request: CommandRequest, on: str) -> str:
    """Return the command line that validates once more."""
    words = ["bridge", "validate", *(policy.text for policy in request.policies), "--scheduler", "pool"]
    words += ["--on", on]
    names = {"units": "pool-units", "slots": "pool-slots"}
    for name, value in request.typed.items():
        if name == "options":
            words += [f"--option={text}" for text in value]
        elif name in _VALID_OPTIONS["validate"] - {*_EVERYWHERE, "on", "tolerance"}:
            words += [f"--{names.get(name, name.replace('_', '-'))}", str(value)]
    return shlex.join(words)
