"""SchedInspector as its paper has it: numbers of parameters, features, cap and pause, all its variants."""

from dataclasses import replace

import numpy as np
import pytest
from features_by_hand import first_rows
from small_jobs import make_jobs, play, prepared

from bridge.learn.network import actor_of, parameters
from bridge.policies.schedinspector import PAPER, SETTINGS
from bridge.scheduler.core import DECLINE
from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import State


def test_the_papers_networks() -> None:
    assert parameters(actor_of(SETTINGS["code"])) == 938  # 7-32-16-8-2
    assert parameters(actor_of(PAPER)) == 970  # 8-32-16-8-2
    assert PAPER.encoder.actions == 2


def test_the_papers_features_by_hand() -> None:
    # job 1 at 0 on the idle machine: request 100 of 400, three nodes of four, runnable, never rejected; it
    # alone waits, 600/100 of slowdown in 600 s; nobody to backfill
    expected = [0, 100 / 400, 0.75, 0.99999, 0.99999, 0, 6 / (60 * 128), 0]
    assert first_rows(PAPER) == pytest.approx(np.array([expected]))
    assert first_rows(SETTINGS["code"]) == pytest.approx(np.array([expected[:7]]))
    assert first_rows(SETTINGS["native"]) == pytest.approx(np.array([expected[:4]]))
    assert first_rows(SETTINGS["compacted"]) == pytest.approx(np.array([expected[:5]]))


def test_the_cap_and_the_pause() -> None:
    assert {(recipe.max_rejects, recipe.retry_after) for recipe in SETTINGS.values()} == {(72, 600.0)}


def test_the_priced_one_is_the_recommended_one_with_a_price() -> None:
    priced, ours = SETTINGS["priced"], SETTINGS["recommended"]
    assert (ours.reward.idle, priced.reward.idle) == (0.0, 100.0)
    assert (ours.training.initial_reject_rate, priced.training.initial_reject_rate) == (0.7, 0.1)
    same = {name: getattr(ours, name) for name in ("setting", "summary", "reward")}
    training = replace(priced.training, initial_reject_rate=ours.training.initial_reject_rate)
    assert replace(priced, **same, training=training) == ours


def test_the_papers_variants() -> None:
    rewards = {name: SETTINGS[name].reward for name in SETTINGS}
    assert (rewards["paper"].form, rewards["code"].form) == ("percentage", "relative")
    assert (rewards["winloss"].form, rewards["nativereward"].form) == ("winloss", "native")
    assert (rewards["wait"].metric, rewards["maxbsld"].metric) == ("wait", "bsld.max")
    assert SETTINGS["backfilling"].setup.backfill == "easy"
    assert (SETTINGS["slurm"].setup.order, SETTINGS["slurm"].setup.backfill) == ("slurm", "easy")
    ours, code = ("recommended", "priced"), ("code", "code-wait", "code-state")
    papers = [r.setup for name, r in SETTINGS.items() if name not in (*ours, *code)]
    assert {(setup.protocol, setup.preset) for setup in papers} == {("schedgym", "schedinspector")}
    of_code = [SETTINGS[name].setup for name in code]
    assert {(setup.protocol, setup.preset) for setup in of_code} == {("schedgym-code", "schedinspector")}


def test_the_codes_training() -> None:
    code, wait = SETTINGS["code"], SETTINGS["code-wait"]
    training = code.training
    assert (training.learning_rate, training.critic_rate, training.epochs) == (3e-4, 1e-3, 4000)
    assert (training.part, training.first_jobs, training.max_decisions) == ((0.0, 1.0), 10_000, 1280)
    assert not training.validates  # the last weights decide
    assert code.deploy == "sample"
    assert (wait.reward.metric, wait.training) == ("wait", training)
    # the queue delay follows the metric: for bsld 600/100 of slowdown, for the wait 600 s, of 128 jobs
    assert first_rows(code)[0][6] == pytest.approx(6 / (60 * 128))
    assert first_rows(wait)[0][6] == pytest.approx(1 / 128)


def test_the_papers_training() -> None:
    training = PAPER.training
    assert (training.trajectories, training.length, training.learning_rate) == (100, 128, 1e-3)
    assert training.part[1] <= 0.2 <= PAPER.test_from


# The worked examples of Figure 1 and Table 1, times in minutes on 5 nodes. J_p runs when they begin. The
# paper rounds each slowdown before it adds them; it prints 1 for the wait of J_2 in (a), which its picture
# has at 0. In (a) a blocked job is chosen anew as shorter ones arrive (protocol standard); in (b) an accepted
# one waits for its nodes, as in the code: no one protocol draws both pictures.
MINUTE = 60


@pytest.mark.parametrize(
    ("jobs", "reject", "waits", "slowdowns", "mean"),
    [
        ("a", False, [0, 5, 4], [1, 2, 2.3], 1.77),
        ("a", True, [4, 4, 0], [1.8, 1.8, 1], 1.53),
        ("b", False, [3, 7], [1.6, 3.3], 2.45),
        ("b", True, [4, 0], [1.8, 1], 1.4),
    ],
)
def test_the_worked_examples_of_figure_1(
    jobs: str, reject: bool, waits: list[float], slowdowns: list[float], mean: float
) -> None:
    rows = {  # J_p, J_0, J_1, …: submit, run, request, nodes
        "a": [(0, 2, 2, 2), (0, 5, 5, 3), (0, 5, 5, 2), (1, 3, 3, 3)],
        "b": [(0, 3, 3, 2), (0, 5, 5, 4), (1, 3, 3, 3)],
    }[jobs]
    seconds = [(s * MINUTE, r * MINUTE, t * MINUTE, n) for s, r, t, n in rows]
    policy = Policy("sjf", "none", agent=frozenset({"inspect"}))

    def inspector(state: State, _: int) -> int:
        """Reject J_0 until another job arrives."""
        return DECLINE if reject and state.scalars.head[0] == 1 and state.scalars.now[0] == 0 else 0

    starts, _, _ = play(
        prepared(make_jobs(seconds, [5]), policy, "standard" if jobs == "a" else "schedgym-code"), inspector
    )
    assert starts[0] == 0
    wait = np.array(starts[1:]) / MINUTE - [row[0] for row in rows[1:]]
    run = np.array([row[1] for row in rows[1:]])
    assert wait.tolist() == waits
    bsld = np.round((wait + run) / run, 1)
    assert bsld.tolist() == slowdowns
    assert round(float(bsld.mean()), 2) == mean
