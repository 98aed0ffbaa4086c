"""`bridge train rlschert`: what it leaves and says, whom it learns from, and going on after any end."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cli_commands import file_names, run_bridge, run_ok, run_refused
from trained_agents import POOL_CONFIG
from training_commands import FILES, agent, epochs_of, interrupted, write_config
from training_commands import TINY as EVENT

CONFIG = POOL_CONFIG + "lessons = 1\n"
TINY = ("--config", "pool.toml", "--threads", "1")
LINES = (
    "job_id,real,para,cores,running\n",
    "1,4.0,3.0,25,3 3 4 4\n",
    "2,2.0,2.0,100,2 2\n",
    "3,6.5,9.0,40,9 8 7 7 7 7\n",
)


@pytest.fixture(autouse=True)
def config(folder: Path) -> None:
    (folder / "pool.toml").write_text(CONFIG)


def test_it_learns_on_synthetic_jobs_unless_told_otherwise() -> None:
    told = run_bridge("train", "--fast", "rlschert", *TINY)
    assert told.status == 0, told.err
    folder = Path("agents/rlschert-synthetic-s1")
    assert file_names(folder) == FILES
    kept = agent(folder)
    assert (kept["name"], kept["setting"], kept["scheduler"]) == ("rlschert", "recommended", "pool")
    assert (kept["workload"], kept["jobs"], kept["sha256"], kept["seed"]) == ("synthetic", 4870, "", 1)
    assert kept["command"] == "bridge train --fast rlschert --config pool.toml"
    assert re.search(r"bridge: epoch 2/2: slowdown .* valid .*, 0:00:00 left", told.err)
    assert "training, epoch 2" in told.out
    assert f"bridge evaluate {folder}" in told.out
    assert "saf" in run_ok("evaluate", folder, "--sequences", "2")


def test_jobs_objective_and_clamp_are_said_and_kept() -> None:
    Path("some_jobs.csv").write_text("".join(LINES))
    words = ("--data", "some_jobs.csv", "--oracle-clamp", "--objective", "completion", "--seed", "4")
    out = run_ok("train", "rlschert", "--setting", "deeprm", *TINY, *words, "--epochs", "1")
    assert "completion, 1 epoch," in out
    kept = agent("agents/rlschert-deeprm-some_jobs-completion-clamp-s4")
    assert (kept["workload_name"], kept["jobs"], kept["seed"]) == ("some_jobs", 3, 4)
    assert len(str(kept["sha256"])) == 64
    assert kept["command"] == (
        "bridge train --fast rlschert --setting deeprm --config pool.toml --seed 4 --epochs 1 "
        "--data some_jobs.csv --oracle-clamp --objective completion"
    )
    recipe = kept["recipe"]
    assert (recipe["pool"]["objective"], recipe["pool"]["oracle_clamp"]) == ("completion", True)  # type: ignore[index]
    assert (recipe["estimator"], recipe["training"]["epochs"]) == ("submit", 1)  # type: ignore[index]


def test_going_on_ends_in_the_same_weights() -> None:
    run_ok("train", "rlschert", *TINY, "--epochs", "3", "--out", "whole")
    run_ok("train", "rlschert", *TINY, "--epochs", "3", "--out", "a")
    assert Path("a/weights.safetensors").read_bytes() == Path("whole/weights.safetensors").read_bytes()
    run_ok("train", "rlschert", *TINY, "--epochs", "2", "--oracle-clamp", "--out", "b")
    told = run_bridge("train", "--resume", "--out", "b", "--epochs", "3")
    assert told.status == 0, told.err
    assert "epoch 3/3" in told.err
    assert "epoch 2/3" not in told.err
    assert "bit for bit" not in told.err
    pool = agent("b")["recipe"]["pool"]  # type: ignore[index]
    assert pool["oracle_clamp"] is True
    assert pq.read_table("b/progress.parquet")["epoch"].to_pylist() == [1, 2, 3]
    assert "has learnt for 3 epochs already" in run_refused(
        "train", "--resume", "--out", "b", "--epochs", "2"
    )


def test_who_kills_learns_from_an_agent_that_does_not() -> None:
    assert "learns from a trained agent" in run_refused(
        "train", "rlschert", "--setting", "kill", "--out", "b"
    )
    run_ok("train", "rlschert", *TINY, "--out", "a")
    error = run_refused("train", "rlschert", *TINY, "--teacher", "a", "--out", "b")
    assert error.startswith("rlschert/recommended: does not learn from an agent")
    kill = ("rlschert", "--setting", "kill", *TINY)
    Path("narrow.toml").write_text(CONFIG.replace("[8]", "[6]"))
    wrong = ("rlschert", "--setting", "kill", "--config", "narrow.toml", "--teacher", "a", "--out", "b")
    assert "its network is of another shape" in run_refused("train", *wrong)
    assert not Path("b").exists()
    run_ok("train", *kill, "--teacher", "a", "--out", "b")
    assert file_names(Path("b")) == FILES | {"teacher"}
    told = run_bridge("train", "--resume", "--out", "b", "--teacher", "a")
    assert told.status == 2
    assert "has its teacher in its folder" in told.err
    Path("a").rename("elsewhere")
    run_ok("train", "--resume", "--out", "b", "--epochs", "3")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rlschert", "--order", "sjf"], "the time-stepped pool has no --order"),
        (["rlschert", "--workload", "x.swf", "--nodes", "4"], "has no --nodes, --workload"),
        (["--objective", "completion"], "the event-driven scheduler has no --objective"),
        (["sem", "--data", "x.csv", "--teacher", "a"], "has no --data, --teacher"),
    ],
)
def test_options_of_the_other_scheduler_are_refused(words: list[str], said: str) -> None:
    told = run_bridge("train", *words)
    assert (told.status, told.out) == (2, "")
    assert said in told.err
    assert file_names(Path()) == {"pool.toml"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--data", "nosuch.csv"], "nosuch.csv: no such file"),
        (["--setting", "best"], "rlschert has no such setting"),
        (["--out", "pool.toml/a"], "cannot write"),
    ],
)
def test_wrong_words_are_one_error_and_leave_nothing(words: list[str], said: str) -> None:
    assert said in run_refused("train", "rlschert", *TINY, *words)
    assert file_names(Path()) == {"pool.toml"}


def test_another_training_is_not_gone_on_with(folder: Path) -> None:
    run_ok("train", "rlschert", *TINY, "--epochs", "1", "--out", "a")
    Path("some_jobs.csv").write_text("".join(LINES))
    for words, said in (
        (["--seed", "2"], "was trained with the seed 1, not 2"),
        (["--oracle-clamp"], "was trained with pool.oracle_clamp False, not True"),
        (["--data", "some_jobs.csv"], "was trained with the log of digest none"),
        (["sem"], "was trained for another scheduler than sem's"),
    ):
        assert said in run_refused("train", "--resume", "--out", "a", *words)
    write_config(folder)
    run_ok("train", *EVENT, "--epochs", "1", "--out", "event")
    assert "another scheduler" in run_refused("train", "rlschert", "--resume", "--out", "event")


def test_ctrl_c_keeps_the_finished_epochs_and_says_how_to_go_on() -> None:
    run_ok("train", "rlschert", *TINY, "--epochs", "1", "--out", "warm")  # compiled kernels are only read now
    done, _ = interrupted("a", 500, "rlschert", *TINY)
    run_ok("train", "--resume", "--out", "a", "--epochs", done + 1)
    assert epochs_of("a") == list(range(1, done + 2))
