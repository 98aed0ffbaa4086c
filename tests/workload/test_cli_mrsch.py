"""`bridge workload generate mrsch`, and how a replay tells what became of each resource."""

import json
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok, run_refused
from workload_strategies import Written, record

from bridge.workload.formats import read, write
from bridge.workload.mrsch import TB, MrschMachine, generate_mrsch
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import select

LOG = "; MaxProcs: 4360\n" + "".join(f"{record(n, 10 * n, 50, 128 * n, 60)}\n" for n in range(1, 9))
MAKE = ("workload", "generate", "mrsch")
#: Job 2 waits for 10 s: nodes and power are free, the burst buffer is not.
THREE = """# capacity: nodes=4 burst_buffer=100 power=50
# IdlePower: 10
job_id,submit,run,procs,req_time,burst_buffer,power
1,0,10,2,10,60,20
2,0,10,2,10,60,10
"""


@pytest.fixture
def log(written: Written) -> str:
    return str(written(LOG, "log.swf"))


def test_as_the_function_makes_it(log: str, tmp_path: Path) -> None:
    out = tmp_path / "s4.parquet"
    told = run_bridge(*MAKE, "--setting", "S4", "--base", log, "--seed", 1, "--out", out)
    assert (told.status, told.err) == (0, "")
    assert "jobs with burst buffer, %" in told.out
    made, direct = read(out), generate_mrsch(read(log), "S4", 1)
    assert made.jobs.equals(direct.jobs)
    assert made.capacity == {"nodes": 4360, "burst_buffer": 1260 * TB}
    assert made.header["Note"].splitlines()[-1] == (
        f"command: bridge workload generate mrsch --setting S4 --base {log} --seed 1"
    )


def test_every_option_counts(log: str, tmp_path: Path) -> None:
    out = tmp_path / "s9.swf.gz"
    words = ["--setting", "s9", "--base", log, "--jobs", 6, "--sizes", "log-uniform", "--scale", 2]
    words += ["--budget", 400_000, "--accounting", "jobs", "--power-step", 5, "--nodes", 5000]
    run_ok(*MAKE, *words, "--out", out)
    made = read(out)
    base = read(log)
    base.capacity["nodes"] = 5000
    machine = MrschMachine(budget=400_000, accounting="jobs", step=5)
    direct = generate_mrsch(base, "S9", 0, sizes="log-uniform", machine=machine, arrivals=2)
    assert len(made.jobs) == 6
    assert made.jobs["submit"].tolist() == [10, 30, 50, 70, 90, 110]
    assert made.capacity == direct.capacity == {"nodes": 5000, "burst_buffer": 1260 * TB, "power": 400_000}
    assert (made.jobs["power"] == made.jobs["req_procs"] * made.jobs["node_power"]).all()
    assert "--jobs 6 --sizes log-uniform --scale 2.0 --budget 400000" in made.header["Note"]
    assert "--accounting jobs --power-step 5" in made.header["Note"]


def test_load_takes_the_place_of_the_settings_scale(log: str, tmp_path: Path) -> None:
    out = tmp_path / "s1.csv"
    # Σ 128·n·50 = 230,400 node-seconds in 70 s are a load of .755 on 4360 nodes; in 280 s, .189.
    told = run_ok(*MAKE, "--setting", "S1", "--base", log, "--load", 230_400 / 4360 / 280, "--out", out)
    assert "offered load 0.189" in told
    assert read(out).jobs["submit"].tolist() == [10, 50, 90, 130, 170, 210, 250, 290]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--setting", "S4"], "mrsch needs --base"),
        (["--base", "LOG"], "mrsch needs --base LOG and --setting"),
        (["--setting", "S0", "--base", "LOG"], "S0"),
        (["--setting", "S4", "--base", "LOG", "--gap", "3"], "--gap has no meaning for mrsch"),
        (["--setting", "S4", "--base", "LOG", "--users", "3"], "--users has no meaning for mrsch"),
        (["--setting", "S4", "--base", "LOG", "--budget", "9"], "--budget has no meaning for S4"),
        (["--setting", "S9", "--base", "LOG", "--budget", "9"], "leave nothing of 9 W for jobs"),
        (["--setting", "S9", "--base", "LOG", "--power-step", "7"], "steps of 7 W"),
        (["--setting", "S4", "--base", "LOG", "--scale", "0"], "is not positive"),
        (["--setting", "S4", "--base", "LOG", "--scale", "1", "--load", "1"], "exclude each other"),
        (["--setting", "S4", "--base", "LOG", "--nodes", "100"], "no job is left"),
    ],
)
def test_mistakes_end_in_one_message_and_no_file(
    log: str, tmp_path: Path, words: list[str], what: str
) -> None:
    out = tmp_path / "b.swf"
    told = run_bridge(*MAKE, *(log if w == "LOG" else w for w in words), "--out", out)
    assert told.status != 0
    assert what in told.err
    assert "Traceback" not in told.err
    assert not out.exists()


def test_other_models_know_nothing_of_it(tmp_path: Path) -> None:
    told = run_bridge("workload", "generate", "lublin-1", "--setting", "S4", "--out", tmp_path / "b.swf")
    assert (told.status, "--setting has no meaning for lublin-1" in told.err) == (2, True)


@pytest.mark.parametrize("ending", ["csv", "parquet", "swf", "json"])
def test_a_replay_reports_every_resource_by_name(tmp_path: Path, ending: str) -> None:
    (tmp_path / "three.csv").write_text(THREE)
    path = tmp_path / f"again.{ending}"
    run_ok("workload", "convert", tmp_path / "three.csv", path)
    assert select(read(path), LOAD_RULES["standard"]).demand.tolist() == [[2, 60, 20], [2, 60, 10]]
    found = json.loads(run_ok("replay", path, "--json"))
    # In 20 s: 2·10·2 of 4·20, 60·10·2 of 100·20, 20·10 + 10·10 of 50·20.
    assert (found["makespan"], found["wait.max"]) == (20, 10)
    assert [found[f"utilisation.{name}"] for name in ("nodes", "burst_buffer", "power")] == pytest.approx(
        [0.5, 0.6, 0.3]
    )
    # Four idle nodes draw 40 W; 20 W more for 10 s, then 10 W more.
    power = {key: found[f"power.{key}"] for key in ("idle", "budget", "mean", "max")}
    assert power == {"idle": 40, "budget": 90, "mean": 55, "max": 60}
    # A job's two nodes draw 20 W for 10 s whatever it does.
    assert (found["energy.machine.joules"], found["energy.joules"]) == (1100, 400 + 300)


@pytest.mark.parametrize("target", ["csv", "parquet", "swf", "json"])
@pytest.mark.parametrize("source", ["csv", "parquet", "swf", "json"])
def test_converting_keeps_further_resources(log: str, tmp_path: Path, source: str, target: str) -> None:
    first, second = tmp_path / f"first.{source}", tmp_path / f"second.{target}"
    write(generate_mrsch(read(log), "S9", 1), first)
    rule = ["--rule", "standard"] if target != "json" else []  # Batsim's default
    run_ok("workload", "convert", first, second, *rule)
    one, two = read(first), read(second)
    assert two.capacity == one.capacity == {"nodes": 4360, "burst_buffer": 1260 * TB, "power": 238_400}
    assert two.header["IdlePower"] == "60"
    kept = ["job_id", "run", "req_procs", "burst_buffer", "power", "node_power"]
    assert two.jobs[kept].equals(one.jobs[kept])
    jobs = [select(each, LOAD_RULES["standard"]) for each in (one, two)]
    assert jobs[0].demand.tolist() == jobs[1].demand.tolist()
    assert jobs[0].submit.tolist() == jobs[1].submit.tolist()


def test_info_tells_load_and_power_budget(tmp_path: Path) -> None:
    path = tmp_path / "three.csv"
    path.write_text(THREE.replace("2,0,", "2,40,"))
    found = json.loads(run_ok("workload", "info", path, "--json"))
    # In 40 s: 2·60·10 of 100·40, 30·10 of 50·40.
    assert found["loads"] == {"burst_buffer": 0.3, "power": 0.15}
    assert "90 W, 10 W of it for each node" in run_ok("workload", "info", path)
    path.write_text(THREE.replace(": 10", ": ten"))
    assert f"{path}: IdlePower is 'ten' in the header" in run_refused("replay", path, "--json")
