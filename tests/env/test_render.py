"""Environments shown to people: as text, and as a picture by node."""

from typing import Any

import numpy as np
import pytest
from small_pools import job_set

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")

import small_jobs  # noqa: E402

import bridge  # noqa: E402
from bridge.base.errors import BridgeError  # noqa: E402
from bridge.env.environment import SchedulingEnv, SchedulingVectorEnv  # noqa: E402
from bridge.env.snapshot import (  # noqa: E402
    HEIGHT,
    WIDTH,
    EpisodeSnapshot,
    StartedJobs,
    WaitingJob,
    render_pixels,
    render_text,
)
from bridge.pool.environment import PickOrKillEnv  # noqa: E402
from bridge.pool.settings import PoolConfig  # noqa: E402

#: Job 1 takes half of the machine, job 2 waits for all of it, job 3 may be backfilled, and so may job 4.
ROWS = [(0, 100, 120, 4), (10, 50, 60, 8), (20, 30, 90, 2), (20, 200, 300, 2)]


def make(decision: Any, mode: str | None, **options: Any) -> SchedulingEnv:
    jobs = small_jobs.make_jobs(ROWS, [8])
    return SchedulingEnv(decision, render_mode=mode, workload=jobs, length=4, starts=[0], **options)


def test_text_of_a_backfilling_decision() -> None:
    env = make("backfill", "ansi")
    env.reset(seed=1)
    assert env.render().splitlines() == [
        "which job is backfilled?, time 20 s",
        f"machine  [{'#' * 20}{'.' * 20}]  4 of 8 nodes in use",
        "running: 1",
        "  action  job  nodes  start s  end s",
        "       -    1      4        0    120",
        "waiting: 3",
        "  action  job  nodes  estimate s  wait s",
        "       -    2      8          60      10  head, cannot start yet",
        "       0    3      2          90       0",
        "       1    4      2         300       0",
        "reservation of the head: 120 s, extra nodes 0",
        "action 64: no more backfilling now",
    ]


def test_the_end_of_an_episode_has_true_ends() -> None:
    env = make("backfill", "ansi")
    env.reset(seed=1)
    while not env.step(64)[2]:
        pass
    lines = env.render().splitlines()
    assert lines[0] == "the episode is over, time 350 s"
    assert lines[2:] == ["running: 0", "waiting: 0"]


@pytest.mark.parametrize(
    ("decision", "note"), [("pick", "which job is next?"), ("inspect", "may this job start?")]
)
def test_other_decisions_say_what_is_decided(decision: str, note: str) -> None:
    env = make(decision, "ansi")
    env.reset(seed=1)
    text = env.render()
    assert text.startswith(note)
    assert ("action 0 accepts" in text) == (decision == "inspect")


def test_a_picture_has_jobs_where_they_run() -> None:
    view = EpisodeSnapshot(
        title="now",
        now=50.0,
        capacity=4,
        unit="nodes",
        schedule=StartedJobs(
            np.array([1, 2]), np.array([2, 1]), np.array([0.0, 0.0]), np.array([100.0, 25.0])
        ),
        actions={},
        queue=(WaitingJob(3, 4, 10.0, 5.0, action=0), WaitingJob(4, 2, 10.0, 5.0)),
    )
    picture = render_pixels(view)
    assert (picture.shape, picture.dtype) == ((HEIGHT, WIDTH, 3), np.uint8)
    machine = picture[10:280, 10:630]
    middle = machine[:, 100]  # a quarter of the time: both jobs run
    assert len(np.unique(middle[200], axis=None)) > 1  # job 1 has a colour
    assert (middle[20] == 236).all()  # the upper node is free
    late = machine[:, 500]
    assert (late[200] > machine[200, 100]).all()  # the estimated part is lighter
    assert (machine[:, 310] == 30).all()  # the present
    queue = picture[300:390, 10:630]
    assert (queue[1, 1] != 255).any()
    assert (queue[1, 11] == 255).all()
    assert (queue[60, 11] == 170).all()  # it cannot be selected: grey, half as high


def test_a_booking_far_ahead_is_at_the_right_side() -> None:
    schedule = StartedJobs(np.array([1]), np.array([4]), np.array([1e9]), np.array([2e9]))
    picture = render_pixels(EpisodeSnapshot("now", 5.0, 4, "units", schedule, {}, ()))
    assert picture[100, 600].tolist() == [236, 236, 236]
    assert picture[100, 629].tolist() != [236, 236, 236]


def test_long_lists_are_cut_and_say_so() -> None:
    n = 15
    zeros = np.zeros(n)
    schedule = StartedJobs(np.arange(n), np.ones(n, np.int64), zeros, zeros + 9)
    queue = tuple(WaitingJob(k, 1, 1.0, 1.0) for k in range(30))
    text = render_text(EpisodeSnapshot("now", 1.0, 20, "nodes", schedule, {}, queue))
    assert "  … and 5 more\n" in text
    assert "  … and 10 more\n" in text
    assert "15 of 20 nodes in use" in text


def test_by_name_and_for_many() -> None:
    env = bridge.make_env("bridge/Inspect-v0", length=32, render_mode="rgb_array")
    env.reset(seed=1)
    assert env.render().shape == (HEIGHT, WIDTH, 3)
    many = SchedulingVectorEnv(2, "pick", length=32, render_mode="ansi")
    many.reset(seed=1)
    assert [text[:9] for text in many.render()] == ["which job"] * 2
    assert make("pick", None).render() is None


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(BridgeError, match="unknown render mode 'human'"):
        make("pick", "human")


def test_the_pool_is_shown_with_its_bookings_and_actions() -> None:
    settings = PoolConfig(units=4, slots=2, backlog=30, kill_slots=2, horizon=16, last_step=200)
    data = job_set([(3, 4, 2, [2, 3, 6, 6])])
    env = PickOrKillEnv(data=data, settings=settings, steps=20, seed=3, render_mode="ansi")
    _, info = env.reset()
    assert info["action_mask"].tolist() == [0, 0, 1, 0, 0]  # no job has arrived
    assert env.render().startswith("no job has arrived, time 0 s\n")
    for action in (2, 2, 2, 0, 2):
        env.step(action)
    assert env.render().splitlines() == [
        "which job is booked or killed?, time 1,200 s",
        f"machine  [{'#' * 30}{'.' * 10}]  3 of 4 units in use",
        "running: 1",
        "  action  job  units  start s  end s",
        "       3    1      3      900  1,800",
        "waiting: 2",
        "  action  job  units  estimate s  wait s",
        "       0    2      3         600     600",
        "       1    3      3         600       0",
        "action 2: time passes",
    ]
