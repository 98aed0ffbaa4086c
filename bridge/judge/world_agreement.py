"""How far a detailed platform agrees with the fast replay: metrics, waits, ranks, baselines."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridge.base import files
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.config import from_tables
from bridge.config.fields import record_of
from bridge.judge.compare import SAME, JobDifference, compare_runs
from bridge.judge.jobs import plain_ids
from bridge.judge.run import Run
from bridge.judge.stats import rank_agreement

#: Metrics by which policies are ranked, and whether less is better (which does not matter to τ).
RANKED = ("wait.mean", "bsld.mean", "turnaround.mean", "utilisation.nodes", "makespan")
#: Version of a baseline's layout.
FORMAT = 1
#: Jobs whose start differs between the worlds: of a policy, and of all; a document says it twice.
DIFFERING = "differing_starts"
_KILLED = "jobs.state.COMPLETED_WALLTIME_REACHED"


@dataclass(frozen=True)
class Agreement:
    """One policy in both worlds.

    Attributes:
        differences: detailed − fast; None where one is unknown.
        killed: jobs killed at their walltime in each world; beside the metrics, never mixed into them.
        jobs: starts and waits, job by job; differences are detailed − fast.
        longer: jobs that ran longer than on the fast world by more than a microsecond.
        stretch: mean and largest ratio of the run times, detailed / fast; None without common jobs.
        reason: why the first job whose start differs does so; empty if none does.
    """

    policy: str
    fast: Mapping[str, float | int | None]
    detailed: Mapping[str, float | int | None]
    differences: Mapping[str, float | int | None]
    killed: tuple[int, int]
    jobs: JobDifference
    longer: int
    stretch: tuple[float, float] | None
    reason: str


@dataclass(frozen=True)
class Rank:
    """Kendall's τ-b between the policies' order in both worlds, and its p-value.

    Both are None where all policies are tied in one world: then there is no order to agree with.
    """

    tau: float | None
    p: float | None

    def __str__(self) -> str:
        return "all tied" if self.tau is None else f"{self.tau:.2f}"


@dataclass(frozen=True)
class ValidationDocument:
    """A validation as its file has it (`as_dict`): each policy in both worlds, and `ranks`."""

    format: int
    inputs: Mapping[str, Any]
    policies: tuple[Agreement, ...]
    ranks: Mapping[str, Rank]


def compare_worlds(policy: str, fast: Run, detailed: Run) -> Agreement:
    """Compare one policy's two runs; BridgeError: one holds a job twice."""
    comparison = compare_runs([fast, detailed], ["fast", "detailed"])
    runs = _joined(fast, detailed)
    ratio = (runs["execution_time"] / runs["execution_time_fast"]).to_numpy(np.float64)
    ratio = ratio[np.isfinite(ratio)]
    difference = comparison.jobs[0]
    return Agreement(
        policy=policy,
        fast=dict(fast.metrics),
        detailed=dict(detailed.metrics),
        differences={key: row[1] for key, row in comparison.differences.items()},
        killed=(int(fast.metrics.get(_KILLED) or 0), int(detailed.metrics.get(_KILLED) or 0)),
        jobs=difference,
        longer=int((runs["execution_time"] > runs["execution_time_fast"] + SAME).sum()),
        stretch=(float(ratio.mean()), float(ratio.max())) if len(ratio) else None,
        reason=_reason(runs, difference),
    )


def _joined(fast: Run, detailed: Run) -> Any:
    columns = ["starting_time", "execution_time", "finish_time", "requested_number_of_resources"]
    runs = (fast, detailed)
    ids = plain_ids(*(run.jobs["job_id"].astype("str") for run in runs))
    here, there = (run.jobs[columns].set_axis(of, axis=0) for run, of in zip(runs, ids, strict=True))
    return there.join(here.add_suffix("_fast"), how="inner")


def _reason(runs: Any, difference: JobDifference) -> str:
    """Say what was different before the first start that differs."""
    first = difference.first
    if first is None:
        return ""
    if first.base_start is None or first.start is None:
        return f"it never starts {'on the detailed platform' if first.start is None else 'in the fast world'}"
    moment = min(first.base_start, first.start)
    earlier = runs[(runs["starting_time"] < moment + SAME) & (runs.index != first.job)]
    differ = (earlier["finish_time"] - earlier["finish_time_fast"]).abs() > SAME
    decisive = earlier[differ & (earlier[["finish_time", "finish_time_fast"]].min(axis=1) <= moment + SAME)]
    if len(decisive) == 0:
        return (
            f"no job had ended at another time before; it starts {first.start - first.base_start:+.6f} s "
            "later, so messages take time (management latency), hosts were out of service, or the worlds "
            "decide differently"
        )
    # the one whose nodes were missed last
    row = decisive.loc[decisive["finish_time_fast"].idxmax()]
    others = f" (as did {len(decisive) - 1} other jobs before)" if len(decisive) > 1 else ""
    return (
        f"job {row.name} held its {counted(int(row['requested_number_of_resources']), 'node')} until "
        f"{row['finish_time']:.6f} s, in the fast world until {row['finish_time_fast']:.6f} s: it ran "
        f"{row['execution_time']:.6f} s in place of {row['execution_time_fast']:.6f} s{others}"
    )


def ranks(agreements: Sequence[Agreement]) -> dict[str, Rank]:
    """Return how far both worlds rank the policies alike, per metric; empty for fewer than two policies."""
    if len(agreements) < 2:
        return {}
    ranks_by_metric = {}
    for key in RANKED:
        fast, detailed = [a.fast.get(key) for a in agreements], [a.detailed.get(key) for a in agreements]
        if None not in fast and None not in detailed:
            agreed = rank_agreement(fast, detailed)  # type: ignore[arg-type]
            ranks_by_metric[key] = Rank(*(v if math.isfinite(v) else None for v in agreed))
    return ranks_by_metric


def exceeding_tolerance(agreements: Sequence[Agreement], tolerance: float) -> list[str]:
    """Return, in words, each metric that is off the fast world's by more than this share."""
    return [
        f"{one.policy}: {key} is {one.detailed.get(key)!r} on the platform, {value!r} in the fast world"
        for one in agreements
        for key, value in one.fast.items()
        if not nearly_equal(value, one.detailed.get(key), tolerance)
    ]


def nearly_equal(value: float | None, other: float | None, tolerance: float) -> bool:
    """Tell whether two metrics are the same up to a relative tolerance; unknown equals unknown."""
    if value is None or other is None:
        return value is other
    return math.isclose(value, other, rel_tol=tolerance, abs_tol=0.0) or value == other


def as_dict(agreements: Sequence[Agreement], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a validation of these inputs as plain values for JSON; it also serves as a baseline."""
    differing = [one.jobs.differing_starts for one in agreements]
    return {
        "format": FORMAT,
        "inputs": dict(inputs),
        DIFFERING: sum(differing),
        "policies": [{**record_of(one), DIFFERING: n} for one, n in zip(agreements, differing, strict=True)],
        "ranks": {key: record_of(rank) for key, rank in ranks(agreements).items()},
    }


def write_document(document: Mapping[str, Any], path: Path) -> None:
    with files.atomic_write(path) as out:
        out.write((json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_baseline(path: Path) -> dict[str, Any]:
    """Read a validation that was saved as baseline; BridgeError: it is missing, or none."""
    try:
        document = files.read_json(path)
    except BridgeError as error:
        raise BridgeError(error.what, where=error.where, remedy="--save-baseline writes one.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        remedy = "Save it anew with --save-baseline."
        raise BridgeError(f"is no baseline of format {FORMAT}", where=str(path), remedy=remedy)
    return document


def read_validation(document: Any, where: str) -> ValidationDocument:
    """Return a validation from its document; BridgeError: another format, or a part that is none."""
    if document.get("format") != FORMAT:
        message = f"format {document.get('format')!r} is unknown, this version of bridge reads {FORMAT}"
        raise BridgeError(message, where=where, remedy="Validate anew.")
    own = _without_differing(document)
    if isinstance(policies := own.get("policies"), list):
        own["policies"] = [_without_differing(one) if isinstance(one, dict) else one for one in policies]
    return from_tables(ValidationDocument, own, where)


def _without_differing(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != DIFFERING}


def baseline_differences(
    document: Mapping[str, Any], baseline: Mapping[str, Any], tolerance: float
) -> list[str]:
    """Return, in words, everything in which a validation (`as_dict`) differs from an earlier one.

    Metrics may be off by a relative ``tolerance``.
    """
    inputs = document["inputs"]
    lines = [
        f"{key} is {inputs.get(key)!r}, the baseline's is {value!r}"
        for key, value in baseline["inputs"].items()
        if inputs.get(key) != value
    ]
    now, then = ({one["policy"]: one for one in each["policies"]} for each in (document, baseline))
    for name, before in then.items():
        if name not in now:
            lines.append(f"{name} is in the baseline only")
            continue
        lines += [
            f"{name}, {world}: {key} is {now[name][world].get(key)!r}, the baseline's is {value!r}"
            for world in ("fast", "detailed")
            for key, value in before[world].items()
            if not nearly_equal(value, now[name][world].get(key), tolerance)
        ]
        here, there = (one["jobs"][DIFFERING] for one in (now[name], before))
        if here != there:
            lines.append(
                f"{name}: {counted(here, 'start differs', 'starts differ')} between the worlds, "
                f"{there} in the baseline"
            )
    return lines + [f"{name} is not in the baseline" for name in now if name not in then]
