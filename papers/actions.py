"""What an action wins: the rules of action on the known logs, against SAF with EASY, measured and shown.

python -m papers.actions [LOG …]    # measures anew; of all logs without names
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.base.arrays import Floats
from bridge.judge.action_metrics import ACTION_METRICS, compute_action_metrics
from bridge.judge.sequences import SAMPLERS, sample
from bridge.judge.stats import block_length
from bridge.report.folding import collapsible
from bridge.report.table import Table
from bridge.worlds.fast.replay import replay_sequences
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from papers import logs, store

LOGS = ("SDSC-SP2", "CTC-SP2", "HPC2N", "DataStar", "Theta", "Lublin-1")
#: Behind what agents learn from; sequences, and jobs of each; seed of their draw.
BEHIND, SEQUENCES, LENGTH, SEED = 0.6, 100, 1024, 1
#: The reference is the better of these beliefs on the same sequences, in hindsight.
REFERENCES = ("requested", "predicted")
#: What is measured: a rule of action (or none), and what is believed.
VARIANTS = (
    *(("", belief) for belief in (*REFERENCES, "actual")),
    *(
        (rule, "requested")
        for rule in ("speculative(600)", "trial(60)", "trial(300)", "trial(900)", "guest(300)")
    ),
    *((f"guest(300, share={share})", "requested") for share in (0.5, 0.25)),
    *((f"las(300, 3600, resume={cost})", "requested") for cost in (60, 300, 900)),
    ("las(300, 3600, latest=1)", "requested"),
    ("hybrid(300)", "requested"),
    *((f"hybrid(300, share={share})", "requested") for share in (0.5, 0.25)),
    *((f"hybrid(300, guard={seconds})", "requested") for seconds in (43_200, 86_400, 172_800)),
    *((rule, "blended") for rule in ("", "trial(300)", "guest(300)")),
    ("hybrid(0)", "actual"),
)
_DRAWS = 2_000


def measured(name: str) -> dict[str, Any]:
    """Return what every variant has of every sequence of a log, and the sequences' first jobs."""
    rows = []
    jobs = SchedulerConfig().select(logs.log(name))
    before = round(len(jobs) * BEHIND)
    starts = before + sample(SAMPLERS["standard"], len(jobs) - before, SEQUENCES, LENGTH, SEED)
    for action, belief in VARIANTS:
        setup = SchedulerConfig("saf", "easy", action=action, estimator=belief)
        prepared = setup.build_scenario(jobs)
        schedules = replay_sequences(prepared, starts, LENGTH)
        per_sequence = [
            compute_action_metrics(prepared, schedule, int(first))
            for first, schedule in zip(starts, schedules, strict=True)
        ]
        values = {key: [_rounded(one[key]) for one in per_sequence] for key in ACTION_METRICS}
        rows.append({"action": action, "belief": belief, "values": values})
        bsld = float(np.mean(np.array(values["bsld"], np.float64)))
        print(name, action or "no action", belief, round(bsld, 2), flush=True)
    return {"starts": starts.tolist(), "rows": rows}


def _rounded(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def read_actions() -> dict[str, Any]:
    return store.read_json("actions")


def _values(document: dict[str, Any], action: str, belief: str, metric: str) -> Floats:
    row = next(row for row in document["rows"] if (row["action"], row["belief"]) == (action, belief))
    return np.array([np.nan if v is None else v for v in row["values"][metric]], np.float64)


def reference(document: dict[str, Any]) -> str:
    """Return the belief of a log's reference."""
    return min(REFERENCES, key=lambda belief: float(_values(document, "", belief, "bsld").mean()))


def pooled(documents: Sequence[dict[str, Any]], action: str, belief: str, metric: str) -> tuple[float, ...]:
    """Return the ratio of means to the reference in %, pooled by geometric mean over logs, and its interval.

    Of utilisation and waste the mean difference, in points. Paired moving-block bootstrap of the sequences of
    each log, in order of their first jobs.
    """
    is_share = metric in ("utilisation.useful", "waste")
    scale = 100.0 if metric == "utilisation.useful" else 1.0
    totals, counted = np.zeros(_DRAWS + 1), 0
    rng = np.random.default_rng(0)
    for document in documents:
        order = np.argsort(document["starts"], kind="stable")
        mine = _values(document, action, belief, metric)[order]
        base = _values(document, "", reference(document), metric)[order]
        defined = np.isfinite(mine) & np.isfinite(base)
        if not defined.any():  # no users in the log, or no long jobs
            continue
        counted += 1
        mine, base, starts = mine[defined], base[defined], np.sort(document["starts"])[defined]
        n, size = len(mine), max(1, round(block_length(starts.astype(np.float64), LENGTH)))
        firsts = rng.integers(0, n, (_DRAWS, -(-n // size)))
        which = ((firsts[:, :, None] + np.arange(size)) % n).reshape(_DRAWS, -1)[:, :n]
        which = np.vstack([np.arange(n), which])
        ours, theirs = mine[which].mean(axis=1), base[which].mean(axis=1)
        totals += scale * (ours - theirs) if is_share else np.log(ours / theirs)
    if not counted:
        return (np.nan, np.nan, np.nan)
    totals /= counted
    results = totals if is_share else 100 * (np.exp(totals) - 1)
    low, high = np.quantile(results[1:], [0.025, 0.975])
    return float(results[0]), float(low), float(high)


def _cell(values: tuple[float, ...], digits: int = 0) -> str:
    mean, low, high = values
    return f"{mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def _name(action: str, belief: str) -> str:
    return (action or "no action") + {"actual": "*", "blended": ", blended"}.get(belief, "")


def page() -> str:
    every = read_actions()
    documents = list(every.values())
    variants = [(a, b) for a, b in VARIANTS if a or b not in REFERENCES]
    shown_metrics = ("bsld", "wait", "waste", "utilisation.useful")
    first = Table(("rule", "slowdown, %", "wait, %", "waste, %", "useful utilisation, points"))
    second_metrics = ("bsld.600", "slowdown.long", "wait.area", "wait.max", "bsld.user.max", "bsld.size.max")
    second = Table(
        (
            "rule",
            *(f"{ACTION_METRICS[m].removesuffix(', s')}, %" for m in second_metrics),
            "preemptions a job",
        )
    )
    third = Table(("rule", *every))
    for action, belief in variants:
        cells = [
            _cell(pooled(documents, action, belief, m), int(m in shown_metrics[2:])) for m in shown_metrics
        ]
        first.add(_name(action, belief), *cells)
        means = [float(_values(d, action, belief, "preemptions").mean()) for d in documents]
        second.add(
            _name(action, belief),
            *(_cell(pooled(documents, action, belief, m)) for m in second_metrics),
            f"{np.mean(means):.2f}",
        )
        ratios = (pooled([document], action, belief, "bsld") for document in documents)
        third.add(_name(action, belief), *(f"{ratio[0]:+.0f}" for ratio in ratios))
    chosen = {name: reference(document) for name, document in every.items()}
    references = "; ".join(
        f"{belief} on {', '.join(name for name in chosen if chosen[name] == belief)}"
        for belief in dict.fromkeys(chosen.values())
    )
    how = (
        f"There are {SEQUENCES} sequences of {LENGTH:,} jobs from the last {1 - BEHIND:.0%} of each log "
        f"(seed {SEED}). The machine is idle at first. For each log, the mean with the rule is divided by "
        "the mean of the reference. The tables have the geometric mean of these ratios over the logs, as a "
        "change in %. (Waste and useful utilisation are mean differences.) The 95 % intervals come from a "
        "paired moving-block bootstrap.",
        "The reference is SAF with EASY. It estimates run times by requests, or by the mean of the user's "
        "last two runs (predicted). For each log, the better one of the two is used, chosen afterwards on "
        f"the same sequences: {references}. Rows with a rule of action use requests. In rows with *blended*, "
        "the order uses √(request × mean of the user's last two runs).",
        "Every job permits the rule. In rows with a share, users are drawn until this share of all jobs is "
        "theirs, and only their jobs permit the rule. (If a log has no users, jobs are drawn.) Inside a "
        "level, `las` preempts the smallest job first. "
        "With `latest=1` it preempts the job that started last. Bounded slowdown and wait count to the end "
        "of a job's last life. Waste is node-time that jobs occupied in addition to the useful node-time, in "
        "% of the useful node-time.",
    )
    parts = (
        "# What an action gains, and what it costs",
        "A [rule of action](../scheduling.md#actions) starts jobs for a limited time, stops them or suspends "
        f"them. This page compares two schedulers on {len(documents)} logs: SAF and EASY with such a rule, "
        f"and SAF and EASY alone. {_largest_gain(documents, variants)} Rows with * read true run times "
        "(oracle).",
        *collapsible("How it was measured", how),
        first.markdown().rstrip(),
        "## What it costs other jobs",
        _price_of_guard(documents),
        second.markdown().rstrip(),
        "## Slowdown of each log, %",
        third.markdown().rstrip(),
        "Made by `python -m papers.actions`.",
    )
    return "\n\n".join(parts) + "\n"


def _price_of_guard(documents: Sequence[dict[str, Any]]) -> str:
    """Return what the guard of `hybrid` bounds, and what it costs."""
    metrics = ("wait.area", "wait.max", "bsld", "slowdown.long", "wait")
    free, guarded = (
        [f"{pooled(documents, action, 'requested', metric)[0]:+.0f} %" for metric in metrics]
        for action in ("hybrid(300)", "hybrid(300, guard=86400)")
    )
    area, largest, bsld, long, wait = (f"{b} ({a} without)" for a, b in zip(free, guarded, strict=True))
    return (
        "`hybrid` lets large jobs wait. A guard bounds this: a job that has waited for 86,400 s comes first "
        "among the jobs with at least 300 s of service. "
        f"With the guard the area-weighted wait changes by {area}, and the largest wait by {largest}. "
        f"This costs a part of the gain: slowdown {bsld}, slowdown of jobs above 1 h {long}, mean wait "
        f"{wait}."
    )


def _largest_gain(documents: Sequence[dict[str, Any]], variants: Sequence[tuple[str, str]]) -> str:
    """Return which rule lowers the slowdown most without true run times, and what it wastes."""
    rules = [(action, belief) for action, belief in variants if action and belief != "actual"]
    best = min(rules, key=lambda rule: pooled(documents, rule[0], rule[1], "bsld")[0])
    gain, waste = (
        _cell(pooled(documents, best[0], best[1], metric), int(metric == "waste"))
        for metric in ("bsld", "waste")
    )
    return (
        f"Among the rules that do not read true run times, `{_name(*best)}` lowers the slowdown most ({gain} "
        f"%). It wastes {waste} % of the useful node-time."
    )


def main(names: list[str]) -> None:
    for _ in store.measure_logs("actions", LOGS, measured, names):
        pass
    print(store.written("actions", page()))


if __name__ == "__main__":
    main(sys.argv[1:])
