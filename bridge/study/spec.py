"""Studies as their file says it: rows, logs, seeds, tests, metrics, comparisons, a budget of epochs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal

from bridge.config import Constraint, Count, from_tables, merged
from bridge.learn.recipe import AnyRecipe, from_dict, with_training
from bridge.learn.registry import find_recipe
from bridge.pool.study_rows import Heuristic
from bridge.study.windows import LogFraction, TestSet
from bridge.worlds.fast.scheduler_config import SchedulerConfig

_WORD = "Write one word of letters, digits, dots, - and _ that does not begin with a dot."


@dataclass(frozen=True)
class StudyRow:
    """One who is judged: rules of scheduling, or an agent that learns first.

    Attributes:
        name: what tables call it; unique.
        setup: the rules, where nobody learns.
        reject: beside the rules: expressions of features that INSPECT sees; where any is above 0, the pick is
            rejected.
        rule: beside the rules: a fixed rule that a package or program registers as ``rule``.
        pool: a heuristic of the time-stepped pool, in place of rules.
        policy: of an agent; empty = the rules alone.
        setting: of the policy; empty = its first.
        changes: values that replace those of the setting's recipe, as in a file for `bridge train --config`.
        deploy: how the agent answers when it is judged, if not as its recipe says; it trains all the same.
        logs: that it is judged on; empty = all of the study.
        tests: that it is judged by; empty = all of the study.
        training_log: the log that the agent learns on, if not the one that it is judged on.
        seeds: trainings, if not as many as the study says.
        base: the rows that it is compared with, if not the first; tables show it beside the first of them.
        teacher: the row whose agent of the same seed teaches this one, where its recipe wants an agent.
        published: by log: what a paper prints of it, for the last of its tests.
    """

    name: str
    setup: SchedulerConfig = field(default_factory=SchedulerConfig)
    reject: tuple[str, ...] = ()
    rule: str = ""
    pool: Heuristic | None = None
    policy: str = ""
    setting: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    deploy: Literal["", "greedy", "sample"] = ""
    logs: Annotated[tuple[str, ...], Constraint(single=True)] = ()
    tests: Annotated[tuple[str, ...], Constraint(single=True)] = ()
    training_log: Annotated[str, Constraint(key="learnt_on")] = ""
    seeds: Count | None = None
    base: Annotated[tuple[str, ...], Constraint(single=True)] = ()
    teacher: str = ""
    published: Mapping[str, float] = field(default_factory=dict)

    def recipe(self, epochs: int | None, longest: int = 0) -> AnyRecipe:
        """Return what is trained, for so many epochs or the recipe's own; raises BridgeError."""
        full_recipe: Any = from_dict(self.changes, f"row {self.name!r}", _recipe(self.policy, self.setting))
        if epochs is not None:
            full_recipe = with_training(full_recipe, {"epochs": epochs})
        longer = with_training(full_recipe, {"longest": longest or full_recipe.training.max_epochs})
        is_longer = longer.training.epoch_limit > full_recipe.training.epoch_limit
        recipe: AnyRecipe = longer if is_longer else full_recipe
        return recipe


#: An installed recipe, which a study's many cells have in common: looked for once a process.
_recipe = cache(find_recipe)


@dataclass(frozen=True)
class RowComparison:
    """Two rows whose difference is asked for, row − base, on every log that both are judged on."""

    row: str
    base: str


def _one_word(name: str) -> None:
    """Refuse what is no file's name in the folder of the pages."""
    if not re.fullmatch(r"[\w-][\w.-]*", name):
        raise ValueError("it names files")


@dataclass(frozen=True)
class Study:
    """A study: which rows are judged on which logs.

    Attributes:
        title: of its page.
        logs: names or paths, see `bridge workload list`.
        rows: who is judged.
        name: of its page's files.
        introduction: a paragraph below the title.
        details: what else there is to say, folded on the page.
        metric: what rows are compared by: bsld, wait, slowdown, turnaround, utilisation, bsld.max, wait.max,
            wait.small, wait.large, idle.fitting; utilisation.NAME of a resource; slowdown and completion on
            the time-stepped pool.
        extra_metrics: further metrics that are measured.
        seeds: trainings of every agent, with seeds 1, 2, …
        epochs: of every training, in place of the recipes' own.
        longest: epochs at most of a training whose best one is among its last: it trains on until it is not;
            ascending, where what has ended at an earlier one is to count.
        held_out_from: fraction of each log from which on jobs are held out.
        changes_on: by log: values that every row has there: of an agent's recipe, of rules' ``setup``, of the
            settings (``pool``) of the time-stepped pool.
        tests: which sequences rows are judged on.
        comparisons: of rows; none = each row with its base, by default the first one.
        files: of logs: name or path, where `logs` has another word for it.
        record: a file of cells that are done, beside the study's; see `bridge study archive`.
    """

    title: str
    logs: Annotated[tuple[str, ...], Constraint(single=True)]
    rows: tuple[StudyRow, ...]
    name: Annotated[str, Constraint(parse=_one_word, remedy=_WORD)] = "study"
    introduction: Annotated[str, Constraint(key="says")] = ""
    details: str = ""
    metric: str = "bsld"
    extra_metrics: Annotated[tuple[str, ...], Constraint(key="more")] = ("wait", "utilisation")
    seeds: Count = 3
    epochs: Count | None = None
    longest: Annotated[tuple[int, ...], Constraint(single=True, ge=1)] = ()
    held_out_from: LogFraction = 0.6
    changes_on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tests: tuple[TestSet, ...] = (TestSet(),)
    comparisons: tuple[RowComparison, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    record: str = ""

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.metric, *self.extra_metrics)))

    @property
    def compared(self) -> tuple[RowComparison, ...]:
        first = (self.rows[0].name,)
        pairs = ((row.name, base) for row in self.rows for base in dict.fromkeys(row.base or first))
        return self.comparisons or tuple(RowComparison(row, base) for row, base in pairs if row != base)

    def for_log(self, row: StudyRow, log: str) -> StudyRow:
        changes = self.changes_on.get(log, {})
        if row.policy or not changes:
            return replace(row, changes=merged(row.changes, changes))
        where = f"changes_on.{log!r}"
        if row.pool:
            own = row.pool.settings
            settings = from_tables(type(own), changes.get("pool", {}), where, own)
            return replace(row, pool=replace(row.pool, settings=settings))
        return replace(row, setup=from_tables(SchedulerConfig, changes.get("setup", {}), where, row.setup))

    def tests_of(self, row: StudyRow, log: str) -> tuple[TestSet, ...]:
        return tuple(test.on(log) for test in self.tests if not row.tests or test.name in row.tests)
