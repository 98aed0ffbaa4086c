"""What is refused before a study is carried out: on reading its file, and with its logs at hand."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bridge.base import plugins
from bridge.base.errors import BridgeError, add_location
from bridge.base.suggestions import did_you_mean
from bridge.config.fields import fields_of, keys_of
from bridge.experiment.spec import METRICS
from bridge.judge.action_metrics import ACTION_ONLY
from bridge.learn.recipe import AGENT_TEACHER, AnyRecipe, Recipe
from bridge.pool import study_rows
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.names import PREFIX
from bridge.study.windows import PoolDraw, starts_of
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    from bridge.study.cells import Cell, Logs
    from bridge.study.spec import Study, StudyRow
    from bridge.workload.select import Jobs
    from bridge.workload.table import Tally

#: What `bridge.judge.sequences.compute_sequence_metric` knows, and metrics of actions;
#: ``utilisation.NAME`` is a resource's.
EVENT = (*METRICS, "idle.fitting", *ACTION_ONLY)
#: What decides in place of or beside a row's `setup`, one of these; and what only rows that learn have.
DECIDES, LEARNS = (
    ("policy", "pool", "rule", "reject"),
    ("setting", "changes", "deploy", "learnt_on", "teacher"),
)
#: Trainings of a row, and sequences of a test, at most: nobody means more, or would see their end.
MOST_SEEDS, MOST_SEQUENCES = 10_000, 1_000_000


def check(study: "Study", where: str) -> None:
    """Refuse (BridgeError) what cannot be carried out, whatever the logs hold; `where` is the study's file.

    Such as names that stand for two things or none, teachers in a circle, learning from what is held out.
    """
    with add_location(where):
        _names(study)
        _numbers(study)
        if list(study.longest) != sorted(set(study.longest)):
            raise BridgeError(f"longest = {[*study.longest]} does not ascend", remedy="Write [250, 500].")
        for row in study.rows:
            logs = row.logs or study.logs
            if not logs:
                raise BridgeError(f"row {row.name!r} has no logs", remedy='Add logs = ["NAME or path"].')
            if (log := find_duplicate(logs)) is not None:  # its trainings would count twice
                what = f"row {row.name!r} has the log {log!r} twice"
                raise BridgeError(what, remedy="Leave one out.")
            _row(study, row)
            for log in (log for log in logs if log in study.changes_on):
                _row(study, study.for_log(row, log))


def find_duplicate(names: Sequence[str]) -> str | None:
    """Return a name that is there more than once, the first by the alphabet; None if none is."""
    return min((name for name in names if names.count(name) > 1), default=None)


def _numbers(study: "Study") -> None:
    """Refuse numbers of trainings or sequences that nobody can mean."""
    seeds = {"seeds": study.seeds} | {f"seeds of row {row.name!r}": row.seeds or 0 for row in study.rows}
    sequences = {f"sequences of test {test.name!r}": test.sequences for test in study.tests}
    for numbers, most in ((seeds, MOST_SEEDS), (sequences, MOST_SEQUENCES)):
        for name, many in numbers.items():
            if many > most:
                raise BridgeError(f"{name} cannot be {many}", remedy=f"At most {most:,}.")


def _names(study: "Study") -> None:
    """Refuse names that stand for two things, or for none."""
    rows, tests = [row.name for row in study.rows], [test.name for test in study.tests]
    for kind, names in (("row", rows), ("test", tests)):
        if not names:
            raise BridgeError(f"has no {kind}s", remedy=f"Add [[{kind}s]].")
        if (name := find_duplicate(names)) is not None:
            raise BridgeError(f"two {kind}s are called {name!r}", remedy="Rename one.")
    for one in study.compared:
        for name in (one.row, one.base):
            if name not in rows:
                raise BridgeError(f"compares {name!r}, which is no row", remedy=f"Rows: {', '.join(rows)}.")
    itself = [one.row for one in study.comparisons if one.row == one.base]
    itself += [row.name for row in study.rows if row.name in row.base]
    if itself:
        raise BridgeError(f"row {itself[0]!r} is compared with itself", remedy="Name another base.")
    for row in study.rows:
        for name in row.tests:
            if name not in tests:
                raise BridgeError(
                    f"row {row.name!r} has no test {name!r}", remedy=f"Tests: {', '.join(tests)}."
                )
    logs = {log for row in study.rows for log in row.logs or study.logs}
    parts = sorted({*fields_of(Recipe), *study_rows.PARTS})
    for log, changes in study.changes_on.items():
        if log not in logs:
            what = f"changes_on names {log!r}, which is no log"
            raise BridgeError(what, remedy=f"Logs: {', '.join(sorted(logs))}.")
        for part in changes:
            if part not in parts:
                what = f"changes_on.{log} has {part!r}, which no recipe has"
                raise BridgeError(what, remedy=f"{did_you_mean(part, parts)}Parts: {', '.join(parts)}.")
    _teachers({row.name: row for row in study.rows})


def _teachers(rows: "Mapping[str, StudyRow]") -> None:
    """Refuse who cannot teach: nobody, a row that learns nothing, one that is taught by its own pupil."""
    agents = [row.name for row in rows.values() if row.policy]
    for row in rows.values():
        taught, teacher = [row.name], row.teacher
        while teacher:
            if teacher not in agents:
                what = f"no row {teacher!r} can teach" + " (it learns nothing)" * (teacher in rows)
                raise BridgeError(what, remedy=f"Rows that learn: {', '.join(agents) or 'none'}.")
            if teacher in taught:
                raise BridgeError(f"row {teacher!r} would teach itself", remedy="Leave a teacher out.")
            taught.append(teacher)
            teacher = rows[teacher].teacher


def _row(study: "Study", row: "StudyRow") -> None:
    """Refuse a row that fails in each of its cells, or says what none of them heeds."""
    values = {key: getattr(row, name) for name, key in keys_of(type(row)).items()}
    decides, learns = ([name for name in names if values[name]] for names in (DECIDES, LEARNS))
    if len(decides) > 1:
        raise BridgeError(f"row {row.name!r} has {' and '.join(decides)}", remedy="Leave all but one out.")
    if learns and not row.policy:
        what = f"row {row.name!r} learns nothing, but has {', '.join(learns)}"
        raise BridgeError(what, remedy="Name its policy, or leave that out.")
    recipe = row.recipe(study.epochs) if row.policy else None
    if row.setup != SchedulerConfig() and (recipe is not None or row.pool):
        remedy = "An agent's rules stand in its recipe: write them under changes.setup."
        remedy = "A heuristic of the pool has settings of its own, under pool." if row.pool else remedy
        raise BridgeError(f"row {row.name!r} has a {decides[0]} and a setup", remedy=remedy)
    _logs(study, row, recipe)
    if row.teacher and getattr(recipe and recipe.training, "teacher", None) != AGENT_TEACHER:
        what = f"row {row.name!r} has a teacher, from which its recipe does not learn"
        raise BridgeError(what, remedy=f"Leave it out; those with training.teacher = {AGENT_TEACHER!r} do.")
    if row.pool or not isinstance(recipe, Recipe | None):
        _metrics(study.metrics, study_rows.METRICS, row)
        return
    _metrics([one for one in study.metrics if not _is_of_resource(one)], EVENT, row)
    with add_location(f"row {row.name!r}"):
        setup, policy = (recipe.setup, recipe.policy()) if recipe else (row.setup, row.setup.policy())
        compile_policy(policy, setup.rules()[0])
        if row.reject:
            from bridge.study.fixed_rules import RejectRule

            RejectRule(row.reject).encoder().compile({})
    for test in study.tests_of(row, ""):
        if test.pool_draw != PoolDraw():
            what = f"test {test.name!r} says how sequences of the time-stepped pool are drawn"
            remedy = f"Row {row.name!r} is not of the pool: leave `drawn` out, or name the row's own tests."
            raise BridgeError(what, remedy=remedy)
        behind = study.held_out_from if test.behind is None else test.behind
        if recipe is not None and test.held_out and recipe.test_from > behind:
            what = f"row {row.name!r} learns from {recipe.test_from:g} of the log"
            raise BridgeError(what, remedy=f"Let held_out_from ({behind:g}) be at least that.")


def _logs(study: "Study", row: "StudyRow", recipe: AnyRecipe | None) -> None:
    """Refuse logs that are jobs of the time-stepped pool for others, and the other way round."""
    of_pool = row.pool is not None or not isinstance(recipe, Recipe | None)
    further = getattr(recipe and recipe.training, "logs", ())
    for log in (*(row.logs or study.logs), *([row.training_log] if row.training_log else []), *further):
        if study.files.get(log, log).startswith(PREFIX) != of_pool:
            whose = "is of the time-stepped pool" if of_pool else "is not of the time-stepped pool"
            remedy = f"Its logs begin with {PREFIX}." if of_pool else f"Choose a log without {PREFIX}."
            raise BridgeError(f"row {row.name!r} {whose}, {log!r} is" + " not" * of_pool, remedy=remedy)


def _is_of_resource(metric: str) -> bool:
    return metric.startswith("utilisation.") and metric not in ACTION_ONLY


def _metrics(metrics: Iterable[str], valid_names: Sequence[str], row: "StudyRow") -> None:
    for metric in metrics:
        if metric not in valid_names:
            what = f"row {row.name!r} cannot be measured by {metric!r}"
            remedy = (
                f"Choose {', '.join(valid_names)} for `metric` and `more` (which has two if it is not said)."
            )
            raise BridgeError(what, remedy=f"{did_you_mean(metric, valid_names)}{remedy}")


def check_on_logs(cells: "Iterable[Cell]", log_of: "Logs") -> "dict[str, list[Tally]]":
    """Return what was dropped from and repaired in each log, a tally for each way to read it that differs.

    BridgeError: too few held-out jobs, metrics of no resource, fixed rules that nobody brings. Logs that are
    absent are left: a record knows their cells. So it does those of rules that are.
    """
    selected: dict[tuple[str, SchedulerConfig], Jobs] = {}
    tallies: dict[str, list[Tally]] = {}
    for cell in cells:
        if cell.rule and not callable(cell.maker):
            with add_location(f"row {cell.row!r}"):
                raise plugins.unknown("rule", cell.rule, ())
        if cell.heuristic or not isinstance(cell.recipe, Recipe | None):
            continue
        setup = (cell.recipe.setup if cell.recipe else cell.setup).with_policy_of(SchedulerConfig())
        try:
            log = log_of(cell.file)
        except BridgeError:
            continue
        with add_location(f"{cell.row} on {cell.log}"):
            if (cell.file, setup) not in selected:
                selected[cell.file, setup] = setup.select(log)
                tally, tallies_of_log = selected[cell.file, setup].tally, tallies.setdefault(cell.log, [])
                if tally and tally not in tallies_of_log:
                    tallies_of_log.append(tally)
            jobs = selected[cell.file, setup]
            for test in cell.tests:
                with add_location(f"test {test.name!r}"):
                    starts_of(test, len(jobs), cell.behind)
            names = [f"utilisation.{name}" for name in jobs.resources]
            for metric in cell.metrics:
                if _is_of_resource(metric) and metric not in names:
                    raise BridgeError(f"there is no {metric!r}", remedy=f"Choose {', '.join(names)}.")
    return tallies
