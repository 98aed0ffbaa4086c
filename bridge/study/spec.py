"""A study as its file says it: rows, logs, seeds, tests, metrics, comparisons, a budget of epochs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from bridge.config import Count, Of, Share, build, read_toml
from bridge.errors import BridgeError, placed
from bridge.fast.setup import Setup
from bridge.learn.recipe import Recipe, from_dict, with_training
from bridge.learn.registry import recipe_of
from bridge.study.windows import Test


@dataclass(frozen=True)
class Row:
    """One who is judged: rules of scheduling, or an agent that learns first.

    Attributes:
        name: what tables call it; unique.
        setup: the rules, where nobody learns.
        policy: of an agent; empty = the rules alone.
        setting: of the policy; empty = its first.
        changes: values that replace those of the setting's recipe, as in a file for `bridge train --config`.
        logs: that it is judged on; empty = all of the study.
        learnt_on: the log that the agent learns on, if not the one that it is judged on.
        seeds: trainings, if not as many as the study says.
    """

    name: str
    setup: Setup = field(default_factory=Setup)
    policy: str = ""
    setting: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    logs: Annotated[tuple[str, ...], Of(single=True)] = ()
    learnt_on: str = ""
    seeds: Count | None = None

    def recipe(self, epochs: int | None) -> Recipe:
        """Return what is trained.

        Args:
            epochs: in place of the recipe's own.

        Raises:
            BridgeError: unknown policy or setting, or a value that cannot be.
        """
        recipe = from_dict(self.changes, f"row {self.name!r}", recipe_of(self.policy, self.setting))
        return recipe if epochs is None else with_training(recipe, {"epochs": epochs})


@dataclass(frozen=True)
class Comparison:
    """Two rows whose difference is asked for, row − base, on every log that both are judged on.

    Attributes:
        row, base: their names.
    """

    row: str
    base: str


@dataclass(frozen=True)
class Study:
    """What is to be found out.

    Attributes:
        title: of its pages.
        logs: names or paths, see `bridge workload list`.
        rows: who is judged.
        says: a paragraph below the title.
        metric: what rows are compared by: bsld, wait, slowdown, turnaround, utilisation, bsld.max, wait.max.
        more: further metrics that are measured.
        seeds: trainings of every agent, with seeds 1, 2, …
        epochs: of every training, in place of the recipes' own.
        held_out_from: fraction of each log from which on jobs are held out.
        tests: which sequences rows are judged on.
        comparisons: of rows; none = each row against the first one.
    """

    title: str
    logs: Annotated[tuple[str, ...], Of(single=True)]
    rows: tuple[Row, ...]
    says: str = ""
    metric: str = "bsld"
    more: tuple[str, ...] = ("wait", "utilisation")
    seeds: Count = 3
    epochs: Count | None = None
    held_out_from: Share = 0.6
    tests: tuple[Test, ...] = (Test(),)
    comparisons: tuple[Comparison, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """All that is measured, each once."""
        return tuple(dict.fromkeys((self.metric, *self.more)))

    @property
    def compared(self) -> tuple[Comparison, ...]:
        """The comparisons that are asked for."""
        return self.comparisons or tuple(Comparison(row.name, self.rows[0].name) for row in self.rows[1:])

    def check(self, where: str) -> None:
        """Refuse what cannot be carried out.

        Raises:
            BridgeError: two rows or tests of one name, a comparison of no row, a recipe that cannot be, an
                agent that learns from what is held out.
        """
        for kind, names in (("row", [r.name for r in self.rows]), ("test", [t.name for t in self.tests])):
            if not names:
                raise BridgeError(f"has no {kind}s", where=where, remedy=f"Add [[{kind}s]].")
            if twice := {name for name in names if names.count(name) > 1}:
                raise BridgeError(f"two {kind}s are called {min(twice)!r}", where=where, remedy="Rename one.")
        known = {row.name for row in self.rows}
        for one in self.comparisons:
            for name in (one.row, one.base):
                if name not in known:
                    remedy = f"Rows: {', '.join(sorted(known))}."
                    raise BridgeError(f"compares {name!r}, which is no row", where=where, remedy=remedy)
        for row in self.rows:
            if not row.policy:
                row.setup.rules()
                continue
            with placed(where):
                recipe = row.recipe(self.epochs)
            if row.setup != Setup():
                remedy = "An agent's rules stand in its recipe: write them under changes.setup."
                raise BridgeError(f"row {row.name!r} has a policy and a setup", where=where, remedy=remedy)
            if recipe.test_from > self.held_out_from and any(test.held_out for test in self.tests):
                raise BridgeError(
                    f"row {row.name!r} learns from {recipe.test_from:g} of the log",
                    where=where,
                    remedy=f"Let held_out_from ({self.held_out_from:g}) be at least that.",
                )


def read_study(
    path: Path, *, seeds: int | None = None, epochs: int | None = None, sequences: int | None = None
) -> Study:
    """Return the study of a file.

    Args:
        path: TOML.
        seeds, epochs, sequences: in place of the file's, for a trial.

    Raises:
        BridgeError: it cannot be read, or says no study that can be carried out.
    """
    study = build(Study, read_toml(path), str(path))
    if seeds is not None:
        study = replace(study, seeds=seeds, rows=tuple(replace(row, seeds=None) for row in study.rows))
    if epochs is not None:
        study = replace(study, epochs=epochs)
    if sequences is not None:
        study = replace(study, tests=tuple(replace(test, sequences=sequences) for test in study.tests))
    study.check(str(path))
    return study
