"""How good predictions of run times are, and what they are worth: the tables of docs/prediction.md.

    python benchmarks/prediction.py                            # synthetic iterative jobs
    python benchmarks/prediction.py --data vasp_jobs.csv.gz    # and predictions that came with logged ones
    python benchmarks/prediction.py --log SDSC-SP2-1998-4.2-cln.swf.gz --log HPC2N-2002-2.2-cln.swf.gz

Jobs without times are predicted in folds, each from the jobs of the others. Jobs of a log are predicted from
what had ended when they were submitted.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

import numpy as np  # noqa: E402
import torch  # noqa: E402

from bridge.base.arrays import Flags, Floats  # noqa: E402
from bridge.pool.evaluate import evaluate  # noqa: E402
from bridge.pool.jobset import JobSet, read_vasp  # noqa: E402
from bridge.pool.synthetic import synthetic  # noqa: E402
from bridge.prediction.accuracy import accuracy  # noqa: E402
from bridge.prediction.predictors import History, Predictor, Trees  # noqa: E402
from bridge.prediction.submissions import MICRO, of_jobs  # noqa: E402
from bridge.prediction.trees import Boosting  # noqa: E402
from bridge.report.table import Table  # noqa: E402
from bridge.scheduler.estimators import RunTimeEstimates  # noqa: E402
from bridge.workload.catalogue import resolve  # noqa: E402
from bridge.workload.formats import read  # noqa: E402
from bridge.worlds.fast.replay import replay  # noqa: E402
from bridge.worlds.fast.scheduler_config import SchedulerConfig  # noqa: E402
from papers.rlschert.beliefs import running_accuracy, with_beliefs  # noqa: E402
from papers.rlschert.synthetic import RUNNING, SUBMIT, predictions  # noqa: E402


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def show(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    Table(headings, rows, title=title).print()


def synthetic_jobs(count: int, folds_count: int, seed: int, seconds: list[float]) -> None:
    """Predict synthetic jobs and play the time-stepped pool with every prediction."""
    made = synthetic(count, seed)
    length = made.jobs.length
    kinds = {"single": ~made.multiple, "multiple": made.multiple, "all": np.ones(count, np.bool_)}
    found: dict[str, dict[str, Floats]] = {SUBMIT: {}, RUNNING: {}}
    for (name, when), predict in predictions(made, folds_count, seed).items():
        begun = time.perf_counter()
        found[when][name] = predict()
        seconds.append(time.perf_counter() - begun)
    before, running = found.values()
    running["recurrent, whole steps"] = np.rint(running["recurrent"])  # as the generator's are
    errors = {
        f"{name}, {SUBMIT}": [accuracy(length[k], p[k]).mape for k in kinds.values()]
        for name, p in before.items()
    }
    for name, p in running.items():
        errors[f"{name}, {RUNNING}"] = [running_accuracy(length[k], p[k]).overall for k in kinds.values()]
    rows = [[name, *map(percent, values)] for name, values in errors.items()]
    show(f"{made.jobs.name}, MAPE in % ({folds_count} folds)", ("", *kinds), rows)
    deciles(kinds, length.astype(np.float64), running)
    pool(made.jobs, before, running)


def deciles(kinds: Mapping[str, Flags], length: Floats, found: Mapping[str, Floats]) -> None:
    rows = [
        [f"{name}, {kind}", *map(percent, running_accuracy(length[k], totals[k]).deciles)]
        for name, totals in found.items()
        for kind, k in kinds.items()
    ]
    show("MAPE in % after this part of the run", ("", *(f"{d} %" for d in range(0, 100, 10))), rows)


def pool(jobs: JobSet, before: Mapping[str, Floats], while_running: Mapping[str, Floats]) -> None:
    """Play the time-stepped pool's heuristics with these beliefs."""
    sets = {name: with_beliefs(jobs, believed) for name, believed in before.items()}
    sets["trees, then recurrent"] = with_beliefs(jobs, before["trees"], while_running["recurrent"])
    sets["the generator's, before and while running"] = jobs
    rows = []
    for name, believing in sets.items():
        found = [evaluate(believing, "saf", kill) for kill in ("none", "rule")]
        rows.append([name, *(f"{one.slowdown:.2f}" for one in found)])
    show("time-stepped pool, SAF, mean slowdown", ("believed", "no kill", "rule kill"), rows)


def shipped(path: Path) -> None:
    """Show the errors of the predictions that came with logged jobs."""
    jobs = read_vasp(path)
    running = running_accuracy(jobs.length, jobs.beliefs)
    before = accuracy(jobs.length, jobs.believed)
    rows = [["at submission", percent(before.mape)], ["while running", percent(running.overall)]]
    show(f"{jobs.name}: predictions of the file, whole steps, MAPE in %", ("", "all"), rows)
    everyone = {"all": np.ones(len(jobs), np.bool_)}
    deciles(everyone, jobs.length.astype(np.float64), {jobs.name: jobs.beliefs.astype(np.float64)})


def log(name: str, first: int | None) -> None:
    """Predict a log's jobs and schedule them with EASY by what is predicted."""
    jobs = SchedulerConfig(first=first).select(read(resolve(name)))
    submitted, run = of_jobs(jobs), jobs.run / MICRO
    believed, seconds = {"requested": jobs.request}, {}
    high = Trees(boosting=Boosting(quantile=0.9))
    predictors: dict[str, Predictor] = {"history": History(), "trees": Trees(), "trees, quantile 0.9": high}
    for which, predict in predictors.items():
        begun = time.perf_counter()
        believed[which] = predict(submitted)
        seconds[which] = f"{time.perf_counter() - begun:.1f}"
    believed["actual"] = jobs.run
    rows = []
    for which, lengths in believed.items():
        good = accuracy(jobs.run, lengths)
        row = [
            which,
            seconds.get(which, ""),
            f"{good.median:.2f}",
            f"{good.overlap:.2f}",
            percent(good.under),
        ]
        for running in (lengths, jobs.request):
            for order in ("fcfs", "sjf"):
                found = RunTimeEstimates(lengths, lengths, running, oracle=which == "actual")
                schedule = replay(replace(SchedulerConfig(order=order).build_scenario(jobs), estimate=found))
                wait = (schedule.start - jobs.submit) / MICRO
                slowdown = np.maximum((wait + run) / np.maximum(run, 10.0), 1.0)
                row.append(f"{wait.mean():,.0f} {slowdown.mean():.1f}")
        rows.append(row)
    headings = ("believed", "s", "median error", "overlap", "too short, %")
    easy = [f"{order}{what}" for what in ("", ", running as requested") for order in ("fcfs", "sjf")]
    show(
        f"{jobs.name}: {len(jobs):,} jobs, EASY, mean wait (s) and bounded slowdown", (*headings, *easy), rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=4870, help="synthetic jobs")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="logged jobs with predictions (CSV)")
    parser.add_argument("--log", action="append", default=[], help="job log; may be repeated")
    parser.add_argument("--first", type=int, help="only the first N jobs of each log")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.log:
        for name in given.log:
            log(name, given.first)
        return
    took: list[float] = []
    synthetic_jobs(given.jobs, given.folds, given.seed, took)
    print(f"trees {took[1]:.1f} s, recurrent network {took[2]:.1f} s, one thread")
    if given.data is not None:
        shipped(given.data)


if __name__ == "__main__":
    main()
