"""RLBackfilling, Table 4: how low an agent gets on the paper's own windows where it learns on nothing else.

Learning, the choice of its epoch and the test are the same ten sequences, which no honest number may be. It
is no strict bound: an agent finds in so many epochs what it finds.

python -m papers.insample [LOG …]           # what is not there yet; of all logs without names
python -m papers.insample --code [LOG …]    # the same in the environment of the authors' code
"""

import functools
import json
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.files import atomic_write
from bridge.learn.algorithms.log_learner import EpisodeBatch, EpisodeSource, ValidationSet
from bridge.learn.algorithms.ppo import Ppo
from bridge.learn.checkpoint_files import first_best
from bridge.learn.learner import TrainingContext
from bridge.learn.recipe import Recipe, with_training
from bridge.learn.trainer import Trainer
from bridge.learn.training import TrainingData, use_threads
from bridge.report.table import Table
from bridge.study.cells import Cell
from bridge.study.windows import starts_of
from bridge.workload.catalogue import read_log
from papers import store, studies

PAPER, TABLE, TEST = "rlbackfilling", "rlbackfilling-ablation-fcfs", "paper"
TITLE = "Learnt on the paper's ten windows alone"
#: Rows, and the logs of each: those whose published number is out of reach, beside two where it is not.
ROWS: dict[str, tuple[str, ...]] = {
    "four of the code's differences": ("SDSC-SP2", "Lublin-2", "HPC2N", "Lublin-1"),
    "as the paper": ("SDSC-SP2", "Lublin-2"),
}
#: The same in the environment of the authors' code.
CODE = "rlbackfilling-code"
TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    TABLE: ROWS,
    CODE: {"FCFS, as the public code": ("SDSC-SP2", "Lublin-2", "HPC2N", "Lublin-1")},
}
SEEDS, EPOCHS, EPISODES = 3, 40, 50
_PATH = store.path_of("rlbackfilling-insample", ".json")


class _Windows(EpisodeSource):
    """The same windows in every epoch, each as often."""

    def __init__(self, context: TrainingContext[Recipe], starts: Ints) -> None:
        recipe = context.recipe
        super().__init__(recipe, context.jobs, context.origin.constants, recipe.training.trajectories)
        self.starts = starts

    def draw(self, epoch: int, rng: np.random.Generator) -> EpisodeBatch:
        del epoch, rng
        starts = np.resize(self.starts, self.share)
        return EpisodeBatch(self.batch, starts, self.values(starts))


class Memorising(Ppo):
    """Learns on windows that begin with jobs `starts`, and is validated on them."""

    def __init__(self, context: TrainingContext[Recipe], starts: Ints) -> None:
        super().__init__(context)
        self.source = _Windows(context, starts)
        self.sources, self.valid_starts = [self.source], starts
        self.base = float(self.source.values(starts).mean())
        self.validations = [ValidationSet(self.source.batch, starts, self.base)]


def lowest(cell: Cell) -> tuple[float, int]:
    """Return the lowest mean that any validated epoch of a cell's agent has on its windows, and which."""
    assert isinstance(cell.recipe, Recipe)
    (test,) = (test for test in cell.tests if test.name == TEST)
    whole = [0.0, 0.99]  # of the log, as the windows are; something must be held out
    changes = {"length": test.length, "part": whole, "validation": whole, "trajectories": EPISODES}
    recipe = with_training(cell.recipe, {**changes, "epochs": EPOCHS, "longest": 0})
    material = TrainingData.of(
        replace(recipe, test_from=whole[1]), read_log(cell.learnt_on), cell.learnt_sha256
    )
    starts, _ = starts_of(test, len(material.jobs), cell.behind)
    origin = material.origin(cell.learnt_on, cell.seed)
    with tempfile.TemporaryDirectory() as folder:
        context = TrainingContext(material.recipe, material.jobs, origin, Path(folder))
        training = Trainer(context, functools.partial(Memorising, starts=starts))
        training.run()
    validated = [entry.valid_mean for entry in training.history]
    epoch = first_best(validated)
    return validated[epoch - 1], epoch


@functools.cache
def read_results() -> dict[str, Any]:
    """Return what was measured: row -> log -> seed -> mean, epoch, and the digest of the cell."""
    return dict(json.loads(_PATH.read_text(encoding="utf-8"))) if _PATH.exists() else {}


def published(row: str, log: str) -> float:
    name = next(table for table, rows in TABLES.items() if row in rows)
    study, _ = studies.table(PAPER, name)
    return next(one for one in study.rows if one.name == row).published[log]


def section(of: str = TABLE) -> list[str]:
    """Return what the page of a table folds of it; nothing where nothing was measured."""
    results = {row: logs for row, logs in read_results().items() if row in TABLES[of]}
    if not results:
        return []
    table = Table(
        ["row", "log", "published", "lowest validated mean, by seed", "beside the published"], words=(1,)
    )
    for row, logs in results.items():
        for log, seeds in logs.items():
            means, printed = [mean for mean, *_ in seeds.values()], published(row, log)
            beside = ", ".join(f"{mean / printed - 1:+.0%}" for mean in means)
            table.add(row, log, f"{printed:.2f}", ", ".join(f"{mean:.1f}" for mean in means), beside)
    says = (
        f"{EPOCHS} epochs of {EPISODES} episodes, every second one validated on the windows that it learns "
        "on; the best one counts, which no honest number may be. `python -m papers.insample`."
    )
    return [says, table.markdown().rstrip()]


def _cells(names: Collection[str], of: str = TABLE) -> Iterator[Cell]:
    """Yield the cells of a table whose windows are learnt."""
    rows = TABLES[of]
    for cell in studies.table(PAPER, of)[1]:
        if cell.seed <= SEEDS and cell.log in rows.get(cell.row, ()) and cell.log in (names or [cell.log]):
            yield cell


def is_known(cell: Cell) -> bool:
    """Tell whether this very cell, its recipe, log and windows, was measured."""
    *_, key = read_results().get(cell.row, {}).get(cell.log, {}).get(str(cell.seed), [""])
    return bool(key == cell.shortest.key)


def _keep(cell: Cell, mean: float, epoch: int) -> None:
    """Write a training's result beside those that are there; another run may do so, too."""
    with store.alone(_PATH):
        read_results.cache_clear()
        results = read_results()
        results.setdefault(cell.row, {}).setdefault(cell.log, {})[str(cell.seed)] = [
            mean,
            epoch,
            cell.shortest.key,
        ]
        ordered = {
            row: {log: dict(sorted(results[row][log].items())) for log in logs if log in results[row]}
            for rows in TABLES.values()
            for row, logs in rows.items()
            if row in results
        }
        with atomic_write(_PATH) as out:
            out.write((json.dumps(ordered, indent=1) + "\n").encode())
        read_results.cache_clear()


def main(words: Collection[str]) -> None:
    """Measure what is not there yet, one training after the other; each is kept."""
    names, of = [word for word in words if word != "--code"], CODE if "--code" in words else TABLE
    logs = dict.fromkeys(log for of in ROWS.values() for log in of)
    if unknown := [name for name in names if name not in logs]:
        raise SystemExit(f"papers.insample: no log {unknown[0]!r}; choose {', '.join(logs)}")
    use_threads(1)
    for cell in _cells(names, of):
        if not is_known(cell):
            mean, epoch = lowest(cell)
            _keep(cell, mean, epoch)
            print(f"{cell.title}: {mean:.1f} in epoch {epoch}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
