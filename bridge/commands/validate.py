"""Policies of the event-driven scheduler in both worlds: run, compared, held against a baseline."""

import hashlib
from pathlib import Path
from typing import Any

from bridge.base.cache import is_checkpoint
from bridge.base.progress import ProgressReporter
from bridge.cluster.source import digest_of_cluster
from bridge.commands.request import CommandOutput, CommandRequest
from bridge.config.fields import fields_of
from bridge.experiment.prepare import PreparedExperiment, prepare_experiment
from bridge.experiment.program import PLATFORM
from bridge.experiment.run import detailed_run, run_fast
from bridge.experiment.spec import Detailed, Experiment, parse, policy_fields
from bridge.judge import world_agreement
from bridge.judge.run import run_folder, write_run
from bridge.learn.resolve import agents_of
from bridge.policy_name import refuse_twice
from bridge.report import evaluation_tables
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: Largest relative difference from a baseline, where none was typed.
_TOLERANCE = 1e-6


def validate(request: CommandRequest, on: str, out: Path | None, watch: ProgressReporter) -> CommandOutput:
    baseline, tolerance = request.typed.get("baseline"), request.typed.get("tolerance")
    before = world_agreement.read_baseline(baseline) if baseline is not None else None
    valid_names = {name for kind in (Experiment, SchedulerConfig, Detailed) for name in fields_of(kind)}
    typed = {name: value for name, value in request.typed.items() if name in valid_names}
    learnt = next(filter(is_checkpoint, request.agents), "")
    if "workload" not in typed and learnt:
        typed["workload"] = agents_of([learnt])[0].origin.workload
    refuse_twice(policy.text for policy in request.policies)
    experiments = {
        policy.text: parse({}, f"policy {policy.text!r}", {**typed, **policy_fields(policy), "on": on})
        for policy in request.policies
    }
    for experiment in experiments.values():
        experiment.check()
    agreements: list[world_agreement.Agreement] = []
    inputs: dict[str, Any] = {}
    for name, experiment in experiments.items():
        task = prepare_experiment(experiment)
        if not agreements:
            watch.dropped(task.prepared.jobs.tally)
        watch.warn(task.warnings)
        one, inputs = _both(name, task, out, watch)
        agreements.append(one)
    document, problems = world_agreement.as_dict(agreements, inputs), []
    if before is not None:
        problems = world_agreement.baseline_differences(document, before, tolerance or _TOLERANCE)
    elif tolerance is not None:
        problems = world_agreement.exceeding_tolerance(agreements, tolerance)
    if out is not None:
        world_agreement.write_document(document, out / "validation.json")
    return CommandOutput(
        document, evaluation_tables.agreements(agreements, world_agreement.ranks(agreements)), problems
    )


def _both(
    name: str, task: PreparedExperiment, out: Path | None, watch: ProgressReporter
) -> tuple[world_agreement.Agreement, dict[str, Any]]:
    fast = run_fast(task, watch)
    with detailed_run(task, watch) as (detailed, how):
        if out is not None:
            place = run_folder(out, name)
            write_run(fast, place / "fast")
            write_run(detailed, place / task.on, detailed=how.folder)
        if how.fault is not None:
            raise how.fault
        inputs = _inputs(task, how.folder)
    return world_agreement.compare_worlds(name, fast, detailed), inputs


def _inputs(task: PreparedExperiment, folder: Path) -> dict[str, Any]:
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
        **({"cluster_sha256": digest_of_cluster(task.setup.cluster)} if task.setup.cluster else {}),
    }
