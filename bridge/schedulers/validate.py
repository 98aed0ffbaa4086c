"""Policies of the event-driven scheduler in both worlds: run, compared, held against a baseline."""

import hashlib
from pathlib import Path
from typing import Any

from bridge.cache import is_checkpoint
from bridge.config.fields import fields_of
from bridge.experiment.prepare import Task, load
from bridge.experiment.program import PLATFORM
from bridge.experiment.spec import Detailed, Experiment, parse, policy_fields
from bridge.experiment.worlds import run_fast, simulated
from bridge.fast.setup import Setup
from bridge.judge import agreement
from bridge.judge.run import place_of, write_run
from bridge.learn.resolve import agents_of
from bridge.policy_name import refuse_twice
from bridge.schedulers import Outcome, Request, tables
from bridge.watch import Watch

#: Largest relative difference from a baseline, where none was typed.
_TOLERANCE = 1e-6


def validate(request: Request, on: str, out: Path | None, watch: Watch) -> Outcome:
    """Compare policies in the fast world with the same on a platform, see `bridge.schedulers.Scheduler`."""
    baseline, tolerance = request.typed.get("baseline"), request.typed.get("tolerance")
    before = agreement.read_baseline(baseline) if baseline is not None else None
    known = {name for kind in (Experiment, Setup, Detailed) for name in fields_of(kind)}
    typed = {name: value for name, value in request.typed.items() if name in known}
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
