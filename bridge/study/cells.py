"""A cell: one row on one log with one seed, keyed by a digest of contents; it trains, then judges."""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from bridge.base import plugins
from bridge.base.errors import BridgeError
from bridge.config.fields import fields_of
from bridge.learn.recipe import AnyRecipe, may_still_improve, with_training
from bridge.pool.study_rows import Heuristic, digest_of, learnt_by, read_jobs
from bridge.scheduler.names import PREFIX
from bridge.study.spec import Study, StudyRow
from bridge.study.store import Store
from bridge.study.windows import TestSet
from bridge.workload.catalogue import read_log
from bridge.worlds.fast.scheduler_config import SchedulerConfig


def digest(*parts: Any, letters: int = 12) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:letters]


def non_default_fields(value: Any) -> Any:
    """Return a dataclass as plain data without the fields that have their defaults.

    A field that is added later, with a default that changes nothing, leaves old results valid.
    """
    if not dataclasses.is_dataclass(value):
        return value
    held = ((key, f, getattr(value, f.name)) for key, f in fields_of(type(value)).items())
    return {
        key: f.of.digest(here) if f.of.digest else non_default_fields(here)
        for key, f, here in held
        if here != f.default
    }


#: Of a cell's record; another number makes other keys.
FORMAT = 1
#: Gives the log of a name.
Logs = Callable[[str], Any]


@dataclass(frozen=True)
class Cell:
    """One row on one log with one seed; trained and evaluated once.

    Attributes:
        row, log, seed: what it is called; seed 0 = nothing is learnt.
        sha256: digest of the log's contents.
        setup, reject, rule: the rules, where nobody learns.
        learnt_on, learnt_sha256: the log that it learns on.
        others: digests of the further logs that it learns on, which its recipe names.
        steps: where a training may end on its way to `longest`, ascending; its outcome is the same.
        deploy: how an agent answers, if not as it learnt to.
        file: the log, by name or path.
        heuristic: of the time-stepped pool, in place of the rules.
        teacher: the cell whose agent teaches.
        maker: what makes the fixed rule; it travels with the cell, for workers have registered nothing.
    """

    row: str
    log: str
    seed: int
    sha256: str
    setup: SchedulerConfig
    recipe: AnyRecipe | None
    learnt_on: str
    learnt_sha256: str
    tests: tuple[TestSet, ...]
    behind: float
    metrics: tuple[str, ...]
    reject: tuple[str, ...] = ()
    rule: str = ""
    deploy: Literal["", "greedy", "sample"] = ""
    file: str = ""
    heuristic: Heuristic | None = None
    teacher: "Cell | None" = None
    maker: Any = None
    others: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()

    @property
    def training_recipe(self) -> AnyRecipe | None:
        """The recipe by which its agent learns: one for all whose trainings are the same bit for bit."""
        return learnt_by(self.recipe)

    @functools.cached_property
    def agent_key(self) -> str:
        """The digest of its training; empty if nothing is learnt."""
        if self.recipe is None:
            return ""
        more = [*([self.teacher.agent_key] if self.teacher else []), *self.others]
        return digest(
            FORMAT, non_default_fields(self.training_recipe), self.learnt_sha256, self.seed, *more, letters=16
        )

    @functools.cached_property
    def key(self) -> str:
        """The digest of all that decides its outcome; names do not count."""
        who = self.agent_key or non_default_fields(self.setup)
        pool = self.heuristic and non_default_fields(self.heuristic)
        other = non_default_fields(self.recipe) if self.recipe != self.training_recipe else {}
        if more := [value for value in (self.reject, self.rule, self.deploy, pool, other) if value]:
            who = [who, *more]
        tests = [test.as_key() for test in self.tests]
        return digest(FORMAT, who, self.sha256, tests, self.behind, self.metrics, letters=16)

    @property
    def epochs(self) -> int:
        return self.recipe.training.epochs if self.recipe else 0

    @property
    def shorter(self) -> tuple["Cell", ...]:
        """The same, trained no longer than `epochs`, then than each of its steps; none if it is no longer."""
        recipe: Any = self.recipe
        if recipe is None or recipe.training.epoch_limit == recipe.training.epochs:
            return ()
        ends = (0, *(step for step in self.steps if step > recipe.training.epochs))
        recipes = [with_training(recipe, {"longest": end}) for end in ends]
        return tuple(replace(self, recipe=one, steps=ends[1:k]) for k, one in enumerate(recipes))

    @property
    def shortest(self) -> "Cell":
        """The same cell, it and its teacher trained for `epochs` at most."""
        cell = next(iter(self.shorter), self)
        return replace(cell, teacher=cell.teacher.shortest) if cell.teacher else cell

    @property
    def title(self) -> str:
        return f"{self.row} on {self.log}" + (f", seed {self.seed}" if self.seed else "")

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in (self.learnt_on, self.file) if name))


@functools.cache
def load_log(name: str) -> Any:
    """Return a log, or jobs of the time-stepped pool, read once a process."""
    return read_jobs(name) if name.startswith(PREFIX) else read_log(name)


@functools.cache
def sha256_of(name: str) -> str:
    return sha256_of_log(name, load_log(name))


def sha256_of_log(name: str, log: Any) -> str:
    digest: str = digest_of(log) if name.startswith(PREFIX) else log.digest()
    return digest


def cells_of(study: Study, digests: Mapping[str, str] = MappingProxyType({})) -> list[Cell]:
    """Return the cells of a study, first seeds first, so that every row has something early.

    `digests`: digests of logs that need not be there: their cells can be looked up, not carried out.
    BridgeError: a log or a recipe cannot be read.
    """
    cells = []
    for row in study.rows:
        for log in row.logs or study.logs:
            first = _cell(study, row, log, digests)
            seeds = range(1, (row.seeds or study.seeds) + 1) if first.recipe else (0,)
            cells += [_with_seed(first, seed) for seed in seeds]
    return sorted(cells, key=lambda cell: cell.seed)


def prefer_shorter_trainings(cells: Iterable[Cell], store: Store, *, for_now: bool = False) -> list[Cell]:
    """Return cells, but a shorter one where the store has it and its training would not go on.

    `for_now`: where it would, too, as long as no longer one is done.
    """
    return [_settled(cell, store, for_now) for cell in cells]


def _settled(cell: Cell, store: Store, for_now: bool) -> Cell:
    if cell.teacher is not None:
        cell = replace(cell, teacher=_settled(cell.teacher, store, for_now=False))
    done = [(one, record) for one in cell.shorter if (record := store.cell(one.key)) is not None]
    for one, record in done:
        best = record["best_epoch"]  # 0: an old record does not know it
        if best > 0 and not may_still_improve(best, record["epochs"]):
            return one
    if for_now and store.cell(cell.key) is None:
        if done:
            return done[-1][0]
        shortest = cell.shortest
        return shortest if store.cell(shortest.key) is not None else cell
    return cell


def _cell(study: Study, row: StudyRow, log: str, digests: Mapping[str, str]) -> Cell:
    row = study.for_log(row, log)
    recipe = row.recipe(study.epochs, max(study.longest, default=0)) if row.policy else None
    file, learnt_on = (study.files.get(name, name) for name in (log, row.training_log or log))
    rows = {one.name: one for one in study.rows}
    return Cell(
        row=row.name,
        log=log,
        seed=0,
        sha256=_digest(file, digests),
        setup=row.setup,
        recipe=recipe,
        learnt_on=learnt_on if recipe else "",
        learnt_sha256=_digest(learnt_on, digests) if recipe else "",
        tests=study.tests_of(row, log),
        behind=study.held_out_from,
        metrics=study.metrics,
        reject=row.reject,
        rule=row.rule,
        maker=plugins.find("rule", row.rule) if row.rule else None,
        deploy=row.deploy,
        file=file,
        heuristic=row.pool,
        teacher=_cell(study, rows[row.teacher], log, digests) if row.teacher else None,
        others=tuple(_digest(name, digests) for name in getattr(recipe and recipe.training, "logs", ())),
        steps=study.longest[:-1],
    )


def _with_seed(cell: Cell, seed: int) -> Cell:
    return replace(cell, seed=seed, teacher=_with_seed(cell.teacher, seed) if cell.teacher else None)


def _digest(file: str, digests: Mapping[str, str]) -> str:
    try:
        return sha256_of(file)
    except BridgeError:
        if file not in digests:
            raise
        return digests[file]
