"""What a cell's tests find: rules, fixed rules (what learning must beat) and agents, of either scheduler."""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bridge.judge.action_metrics import ACTION_ONLY, compute_action_metrics
from bridge.judge.sequences import compute_sequence_metric
from bridge.learn.agent import play_sequences, schedules_by
from bridge.learn.checkpoint import LogAgent
from bridge.learn.recipe import Recipe
from bridge.pool import study_rows
from bridge.study.fixed_rules import FixedRule, RejectRule
from bridge.study.windows import starts_of
from bridge.workload.select import Jobs
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule, replay_sequences

if TYPE_CHECKING:
    from bridge.study.cells import Cell


def evaluate_cell(cell: "Cell", agent: Any, log: Any) -> Iterable[dict[str, Any]]:
    """Yield what each test has found: a value of each metric on every sequence.

    `agent`: who decides, None: the cell's rules; `log`: a workload, or jobs of the time-stepped pool.
    """
    if cell.heuristic or not isinstance(cell.recipe, Recipe | None):
        yield from study_rows.judged(cell, agent, log)
        return
    setup = agent.recipe.setup if agent else cell.setup
    jobs = setup.select(log)
    ready, play = _player(cell, agent, jobs)
    for test in cell.tests:
        starts, length = starts_of(test, len(jobs), cell.behind)
        played = list(zip(play(ready, starts, length), starts.tolist(), strict=True))
        yield {
            "test": test.name,
            "length": length,
            "starts": starts.tolist(),
            "jobs": len(jobs),
            "oracle": ready.oracle,
            "values": _values(ready, played, cell.metrics),
        }


def _values(
    ready: Scenario, played: Iterable[tuple[Schedule, int]], metrics: Sequence[str]
) -> dict[str, list[float]]:
    """Return each metric's value of every sequence; those of actions are computed once for all."""
    values: dict[str, list[float]] = {metric: [] for metric in metrics}
    of_actions = [metric for metric in metrics if metric in ACTION_ONLY]
    for schedule, first in played:
        acted = compute_action_metrics(ready, schedule, first) if of_actions else {}
        for metric in metrics:
            is_acted = metric in of_actions
            value = acted[metric] if is_acted else compute_sequence_metric(ready, schedule, first, metric)
            values[metric].append(value)
    return values


def _player(cell: "Cell", agent: LogAgent | None, jobs: Jobs) -> tuple[Scenario, Any]:
    """Return the jobs under the cell's policy, and what plays sequences of them."""
    if agent is not None:
        agent = replace(agent, mode=cell.deploy) if cell.deploy else agent
        return agent.recipe.setup.build_scenario(jobs, agent.recipe.policy()), functools.partial(
            play_sequences, agent
        )
    if not (cell.reject or cell.rule):
        return cell.setup.build_scenario(jobs), replay_sequences
    rule: FixedRule = RejectRule(cell.reject) if cell.reject else cell.maker(len(jobs.resources))
    encoder = rule.encoder()
    policy = cell.setup.policy(encoder.decision, guard=getattr(rule, "guard", True))
    ready = cell.setup.build_scenario(jobs, policy)
    return ready, functools.partial(schedules_by, encoder.compile({}), rule)
