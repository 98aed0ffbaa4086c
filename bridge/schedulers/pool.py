"""The time-stepped pool of RLSchert, as commands know it: judged on drawn sequences, and on a platform."""

import functools
import shlex
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from click import UsageError

from bridge.batsim.beliefs import at_submission, own_series
from bridge.batsim.process import DecisionProcess
from bridge.errors import BridgeError
from bridge.experiment.detailed import write_again
from bridge.experiment.prepare import read_sound
from bridge.experiment.spec import Detailed, Experiment, platform_file
from bridge.experiment.worlds import versions
from bridge.judge.agreement import DIFFERING, write_document
from bridge.learn.folder import sha256_of
from bridge.policy_name import PolicyName, combined, parse_policy
from bridge.pool.evaluate import Evaluation, jobs_of, judged, plain, prepare
from bridge.pool.jobset import JobSet
from bridge.pool.settings import Options, Settings
from bridge.pool.tables import pool_evaluation, pool_validation
from bridge.scheduler.names import NAMES
from bridge.schedulers import Outcome, Request
from bridge.schedulers.pool_runs import (
    READ_PLATFORM,
    Both,
    Policy,
    PoolTask,
    beyond,
    dispatcher,
    policy_of,
    refuse_one_place,
    simulate,
)
from bridge.watch import Watch

if TYPE_CHECKING:
    from bridge.learn.pool_network import PoolCheckpoint
    from bridge.learn.training import Material
    from bridge.pool.recipe import PoolRecipe

#: What a platform program is started with, of an experiment's options.
_PROGRAM = (
    *("platform", "profile", "placement", "program", "image", "options"),
    *("startup_timeout", "idle_timeout"),
)
_POOL = ("rate", "steps", "units", "slots", "seed", "sequences", "estimator")
_EVERYWHERE = ("scheduler", "policy", "policies", "agent", "as_json", "out")
#: Parameters that mean something here, by command.
_KNOWN = {
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
_BELIEVERS = {"running": own_series, "submit": at_submission}


class Pool:
    """See `bridge.schedulers.Scheduler`."""

    name, title = "pool", "the time-stepped pool"

    def refused(self, command: str, typed: Collection[str]) -> Iterable[str]:
        return {*typed} - _KNOWN[command]

    def evaluate(self, request: Request, watch: Watch) -> Outcome:
        typed = request.typed
        rules = [policy for policy in request.policies if not policy.agent]
        rules = _with_kills(rules or [parse_policy("saf")], typed.get("kill", ("none",)))
        folders = dict.fromkeys([*([request.log] if request.log else []), *request.agents])
        policies = [Policy(rule.text, "rule" if rule.kill == "rule" else "none") for rule in rules]
        policies += [policy_of(PolicyName(folder, agent=folder)) for folder in folders]
        jobs, options = _jobs_and_options(request, policies)
        watch.compiling()
        found: list[Evaluation] = []
        with watch.bar(self.title, len(policies) * options.sequences, "sequences") as advance:
            for policy in policies:
                before = len(found) * options.sequences
                report = functools.partial(lambda first, done: advance(first + done), before)
                found.append(policy.fast(jobs, _played(options, request, policy.agent), report))
        document = plain(found)
        return Outcome(document, pool_evaluation(document))

    def validate(self, request: Request, on: str, out: Path | None, watch: Watch) -> Outcome:
        typed = request.typed
        tolerance, start = typed.get("tolerance"), not typed.get("no_start")
        asked = request.settings(Detailed)
        Experiment(self.title, on=on, detailed=asked).check()
        platform = read_sound(platform_file(asked.platform), energy=asked.powered)
        policies = [policy_of(name) for name in dict.fromkeys(request.policies)]
        jobs, base = _jobs_and_options(request, policies)
        base = _unclamped(base)
        watch.compiling()
        everything: list[tuple[Policy, Options, list[PoolTask]]] = []
        for policy in policies:
            options = _played(base, request, policy.agent)
            if policy.agent is not None and options.settings.oracle_clamp:
                watch.say(f"{policy.name} has learnt with the oracle clamp, and is played without it")
                options = _unclamped(options)
            drawn = prepare(jobs, options)
            tasks = [
                PoolTask(on, policy, options.settings, drawn, s, platform, asked) for s in range(len(drawn))
            ]
            tasks[0].check()
            everything.append((policy, options, tasks))
        if out is not None:
            refuse_one_place(out, policies)
        if not start:
            assert out is not None
            return Outcome({}, [_written(policy, tasks, out) for policy, _, tasks in everything])
        record = {"command": _command(request, on), "versions": versions()}
        both: list[Both] = []
        for policy, options, tasks in everything:
            fast = policy.fast(jobs, options)
            schedules = [simulate(task, fast, record, out=out, watch=watch) for task in tasks]
            both.append(
                Both(policy, fast, judged(tasks[0].drawn, schedules, fast.policy, fast.kill, options))
            )
        documents = [one.as_dict() for one in both]
        about = {"scheduler": self.name, "world": on, "platform": platform.root.name}
        about |= {"profile": str(asked.kind), "placement": asked.placement}
        differing = sum(one[DIFFERING] for one in documents)
        document = {**about, DIFFERING: differing, "policies": documents}
        if out is not None:
            write_document(document, out / "agreement.json")
        problems = beyond(documents, tolerance) if tolerance is not None else []
        return Outcome(document, pool_validation(document), problems)

    def decide(self, request: Request) -> tuple[DecisionProcess, str]:
        typed, name = request.typed, request.policies[0]
        chosen = policy_of(_with_kills([name], [typed.get("kill", "none")])[0])
        options = _played(Options(), request, chosen.agent)
        if chosen.agent is not None:
            from bridge.learn.pool_rollout import require_pool

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
            read_sound(platform) if platform is not None else None,
            believe=_BELIEVERS[options.estimator],
            storage=typed.get("storage", {}),
        )
        return request.process(decided), f"{name.text}, kill {chosen.kill}, {options.settings.units} units"

    def material(self, recipe: "PoolRecipe", request: Request, known: str = "") -> "Material":  # noqa: ARG002
        from bridge.learn.training import Material

        jobs = jobs_of(request.log)
        return Material.of(recipe, jobs, "" if jobs.synthetic else sha256_of(Path(request.log)))


SCHEDULER = Pool()


def _with_kills(rules: Iterable[PolicyName], kills: Iterable[str]) -> list[PolicyName]:
    """Return every heuristic that names no kill rule with each of these, and the others as they are.

    BridgeError: a policy is neither a heuristic nor an agent.
    """
    found: list[PolicyName] = []
    for rule in rules:
        if rule.agent or rule.kill:
            found.append(rule)
        elif rule.order in NAMES and not rule.backfill:
            found += map(parse_policy, combined([rule.order], [*kills]))
        else:
            policy_of(rule)
    return list(dict.fromkeys(found))


def _played(base: Options, request: Request, agent: "PoolCheckpoint | None") -> Options:
    """Return what is played: what was typed, else what the agent has learnt on, else the paper's test set."""
    if agent is not None:
        from bridge.learn.pool_rollout import options_of

        base = options_of(agent, base)
    settings = request.settings(Settings, base.settings)
    return replace(request.settings(Options, base), settings=settings)


def _jobs_and_options(request: Request, policies: Iterable[Policy]) -> tuple[JobSet, Options]:
    """Return what sequences are drawn from, and what is played, by what the first agent has learnt on."""
    first = next((policy.agent for policy in policies if policy.agent), None)
    jobs = jobs_of(request.typed.get("data", first.origin.workload if first else None))
    return jobs, _played(Options(), request, first)


def _unclamped(options: Options) -> Options:
    """Return options without the oracle clamp, which no platform can have."""
    return replace(options, settings=replace(options.settings, oracle_clamp=False))


def _written(policy: Policy, tasks: list[PoolTask], out: Path) -> str:
    """Write the files of all simulations of a policy, and scripts that run them; say where."""
    for task in tasks:
        (folder := task.place(out)).mkdir(parents=True)
        task.write_inputs(folder)
        write_again(task, folder)
    return f"{policy.name}: {len(tasks)} simulations; start one with {tasks[0].place(out)}/again.sh"


def _command(request: Request, on: str) -> str:
    """Return the command line that validates once more."""
    words = ["bridge", "validate", *(policy.text for policy in request.policies), "--scheduler", "pool"]
    words += ["--on", on]
    names = {"units": "pool-units", "slots": "pool-slots"}
    for name, value in request.typed.items():
        if name == "options":
            words += [f"--option={text}" for text in value]
        elif name in _KNOWN["validate"] - {*_EVERYWHERE, "on", "tolerance"}:
            words += [f"--{names.get(name, name.replace('_', '-'))}", str(value)]
    return shlex.join(words)
