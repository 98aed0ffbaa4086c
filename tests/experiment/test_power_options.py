"""Power in both worlds: what is booked, what the platform then draws to the watt, budgets that are kept."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok
from experiment_helpers import in_both_worlds, needs_simgrid, simulated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.cli.main import cli
from bridge.cli.options import experiment_options_given as given_options
from bridge.cli.run import run
from bridge.experiment.power_options import build_power_plan
from bridge.experiment.prepare import PreparedExperiment, prepare_experiment
from bridge.experiment.spec import Detailed, Experiment, parse
from bridge.judge.run import Run, read_run
from bridge.platform import read_platform
from bridge.platform.author import write_platform
from bridge.worlds.batsim.power_states import Dvfs
from bridge.worlds.fast.scheduler_config import SchedulerConfig

SPEC = """
name = "small"
{budget}
[nodes]
count = {count}
speed = "1Gf"
[nodes.power]
job = {{ start = 60, stop = 215, step = 5 }}
{sleep}
[network]
topology = "ideal"
"""
#: (submit, run, nodes, request, power): 95 W per node; 210 W per node; an idle node's power.
Jobs = list[tuple[int, int, int, int, int]]
JOBS: Jobs = [(0, 100, 2, 1000, 70), (10, 50, 2, 1000, 300), (20, 30, 1, 40, 0)]
FCFS = SchedulerConfig()
HEADER = "job_id,submit,run,procs,req_procs,req_time,power"


def platform(folder: Path, *, count: int = 4, budget: int = 640, sleep: str = "") -> str:
    """Author a platform with power per job; return its path."""
    text = SPEC.format(count=count, budget=f"power_budget = {budget}" if budget else "", sleep=sleep)
    (folder / "p.toml").write_text(text)
    write_platform(folder / "p.toml", folder / "p.xml", force=True)
    return str(folder / "p.xml")


def log(folder: Path, jobs: Jobs, *, idle: int = 60, power: int = 0) -> str:
    """Write a log whose power is counted above `idle` W per node."""
    lines = [f"# IdlePower: {idle}"] if idle else []
    lines += [f"# capacity: power={power}"] if power else []
    lines.append(HEADER)
    lines += [f"{k},{s},{r},{n},{n},{t},{p}" for k, (s, r, n, t, p) in enumerate(jobs, 1)]
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    return str(folder / "log.csv")


def loaded(
    folder: Path, jobs: Jobs, detailed: Detailed, *, setup: SchedulerConfig = FCFS, **log_of: int
) -> PreparedExperiment:
    """Load an experiment on the embedded model with a log of these jobs."""
    return prepare_experiment(
        Experiment(log(folder, jobs, **log_of), on="simgrid", setup=setup, detailed=detailed)
    )


def starts(run: Run) -> dict[str, float]:
    return dict(zip(run.jobs["job_id"], run.jobs["starting_time"], strict=True))


def rows(folder: Path) -> dict[float, float]:
    """Return the power since the row before by time, from the table of consumed energy."""
    lines = (folder / "out_consumed_energy.csv").read_text().splitlines()[1:]
    cells = [line.split(",") for line in lines]
    return {float(c[0]): float(c[4]) for c in cells if c[4] != "NA" and float(c[0]) > 0}


@needs_simgrid
@pytest.mark.parametrize("profile", ["delay", "compute"])
def test_jobs_draw_exactly_their_watts(tmp_path: Path, profile: str) -> None:
    """Two nodes at 95 W, then two at 210 W beside them; the third job has to wait for a node."""
    detailed = Detailed(platform(tmp_path), profile=profile, power="per-job")
    task = loaded(tmp_path, JOBS, detailed)
    wanted = {"nodes": 4, "power": 640 - 4 * 60}
    assert (
        dict(zip(task.prepared.jobs.resources, task.prepared.jobs.capacity.tolist(), strict=True)) == wanted
    )
    fast, made = in_both_worlds(task, tmp_path / "run")
    assert starts(made) == {"1": 0, "2": 10, "3": 60}
    assert rows(tmp_path / "run") == pytest.approx(
        {10: 190 + 120, 60: 190 + 420, 90: 190 + 120, 100: 190 + 120}
    )
    energy = dict(zip(made.jobs["job_id"], made.jobs["consumed_energy"], strict=True))
    assert energy == pytest.approx({"1": 190 * 100, "2": 420 * 50, "3": 60 * 30})
    expected = {
        "power.idle": 240,
        "power.budget": 640,
        "power.max": 610,
        "power.mean": 460,
        "energy.machine.joules": 46_000,
        "energy.joules": 41_800,
    }
    for one in (fast, made):
        assert {key: one.metrics[key] for key in expected} == pytest.approx(expected)
    assert made.metrics["over_budget.seconds"] == 0
    told = made.config["detailed"]["power"]
    assert (told["peak"], told["peak_time"], told["over"]) == (pytest.approx(610), 10, 0)


@needs_simgrid
def test_a_budget_that_counts_the_nodes_of_jobs_only(tmp_path: Path) -> None:
    """190, 210 and 215 W are more than 600 W: the third waits for the second, although a node is free."""
    jobs = [(0, 100, 2, 1000, 190), (10, 50, 1, 1000, 210), (20, 30, 1, 40, 215)]
    detailed = Detailed(platform(tmp_path, budget=600), power="per-job")
    task = loaded(tmp_path, jobs, detailed, idle=0)
    assert task.prepared.jobs.demand[:, 1].tolist() == [190, 210, 215]
    fast, made = in_both_worlds(task, tmp_path / "run")
    assert starts(made) == {"1": 0, "2": 10, "3": 60}
    # the machine draws 190 + 210 + 60 and 190 + 215 + 60 W; the idle node's 60 W do not count
    assert rows(tmp_path / "run") == pytest.approx({10: 310, 60: 460, 90: 465, 100: 310})
    for one in (fast, made):
        assert (one.metrics["power.budget"], one.metrics["power.max"]) == (600, pytest.approx(405))
    assert made.metrics["energy.machine.joules"] == pytest.approx(310 * 10 + 460 * 50 + 465 * 30 + 310 * 10)


@needs_simgrid
def test_a_smaller_budget_makes_jobs_wait(tmp_path: Path) -> None:
    """600 W less idle nodes is 360 W: 70 and 300 do not fit; the third job asks for nothing and overtakes."""
    detailed = Detailed(platform(tmp_path), power="per-job", power_budget=600.0)
    task = loaded(tmp_path, JOBS, detailed, power=400)
    _, made = in_both_worlds(task, tmp_path / "run")
    assert starts(made) == {"1": 0, "2": 100, "3": 20}
    assert (made.metrics["power.budget"], made.metrics["power.max"]) == (600, pytest.approx(540))


@needs_simgrid
def test_part_of_a_machine(tmp_path: Path) -> None:
    detailed = Detailed(platform(tmp_path, count=6), power="per-job")
    task = loaded(tmp_path, JOBS, detailed, setup=SchedulerConfig(nodes=4))
    fast, made = in_both_worlds(task, tmp_path / "run")
    assert fast.capacity == {"nodes": 4, "power": 400}
    assert made.metrics["power.max"] == pytest.approx(610)


SIZES = st.lists(
    st.tuples(
        st.integers(0, 300), st.integers(1, 120), st.integers(1, 6), st.integers(1, 200), st.integers(0, 155)
    ),
    min_size=1,
    max_size=12,
)


@needs_simgrid
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(SIZES, st.integers(6 * 60 + 155, 6 * 215), st.sampled_from(["fcfs", "sjf"]))
def test_no_workload_ever_exceeds_its_budget(tmp_path: Path, jobs: Jobs, budget: int, order: str) -> None:
    """And both worlds agree start for start, and to the watt on what is drawn."""
    limit = budget - 6 * 60
    # what a node asks for is rounded up to steps of 5 W: all of a job's together must fit
    made_up = [(s, r, n, t, n * min(w, limit // n // 5 * 5)) for s, r, n, t, w in jobs]
    detailed = Detailed(platform(tmp_path, count=6, budget=budget), power="per-job")
    task = loaded(tmp_path, made_up, detailed, setup=SchedulerConfig(order=order))
    fast, made = in_both_worlds(task, tmp_path / "run")
    assert made.metrics["power.max"] <= budget + 1e-6  # type: ignore[operator]
    assert made.metrics["over_budget.seconds"] == 0
    for key in ("power.max", "power.mean", "energy.joules", "energy.machine.joules"):
        assert made.metrics[key] == pytest.approx(fast.metrics[key], rel=1e-9), key


SHUT = [(0, 100, 16, 1000, 0), (300, 50, 4, 1000, 0)]


@needs_simgrid
def test_idle_hosts_are_switched_off(tmp_path: Path) -> None:
    """Off after 60 s of idleness, in 10 s at 80 W; asleep at 8 W; up again in 100 s at 110 W."""
    detailed = Detailed("teaching-16", shutdown_after=60.0)
    task = loaded(tmp_path, SHUT, detailed, idle=0)
    made = simulated(task, tmp_path / "run")
    assert starts(made) == {"1": 0, "2": 400}  # waits for its four hosts
    kept = 16 * 60 * 160 + 16 * 80 * 10 + 16 * 8 * 130 + (4 * 110 + 12 * 8) * 100 + (4 * 60 + 12 * 8) * 50
    assert made.metrics["energy.machine.joules"] == pytest.approx(kept)  # not file system and burst buffer
    assert made.metrics["power.max"] == pytest.approx(16 * 80)


@needs_simgrid
def test_a_quiet_machine_computes_slowly(tmp_path: Path) -> None:
    """A hundred seconds of work at half the speed, four hosts at 80 W, twelve at 55 W, and no walltime."""
    jobs = [(0, 100, 4, 100, 0), (1000, 100, 12, 100, 0)]
    detailed = Detailed("teaching-16", profile="compute", dvfs=0.5)
    task = loaded(tmp_path, jobs, detailed, idle=0)
    made = simulated(task, tmp_path / "run")
    assert made.jobs["execution_time"].tolist() == pytest.approx([200, 100])  # the second takes 12 of 16
    assert made.jobs["final_state"].tolist() == ["COMPLETED_SUCCESSFULLY"] * 2
    assert made.jobs["consumed_energy"].tolist() == pytest.approx([4 * 80 * 200, 12 * 120 * 100])


SLEEP = "sleep = {{ watts = 8, off_seconds = 10, off_watts = {off}, on_seconds = 20, on_watts = 60 }}"


@needs_simgrid
def test_shutdown_under_a_budget(tmp_path: Path) -> None:
    detailed = Detailed(platform(tmp_path, sleep=SLEEP.format(off=60)), power="per-job", shutdown_after=50.0)
    jobs = [(0, 10, 2, 100, 310), (200, 10, 4, 100, 400)]
    task = loaded(tmp_path, jobs, detailed)
    made = simulated(task, tmp_path / "run")
    assert starts(made) == {"1": 0, "2": 220}
    assert made.metrics["power.max"] == pytest.approx(640)
    assert made.metrics["over_budget.seconds"] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"platform": "teaching-16"}, "cannot be given power per job"),
        ({"platform": "sp2-128"}, "cannot be given power per job"),
        ({"power_budget": 239.0}, "below the 240 W of 4 idle nodes"),
    ],
)
def test_platforms_that_cannot_are_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    detailed = Detailed(platform(tmp_path), power="per-job")
    with pytest.raises(BridgeError, match=said):
        prepare_experiment(Experiment(log(tmp_path, JOBS), detailed=replace(detailed, **change)))  # type: ignore[arg-type]


def test_logs_that_contradict_the_platform_are_refused(tmp_path: Path) -> None:
    detailed = Detailed(platform(tmp_path), power="per-job")
    with pytest.raises(BridgeError, match="counts power above 50 W per idle node, but idle hosts draw 60 W"):
        prepare_experiment(Experiment(log(tmp_path, JOBS, idle=50), detailed=detailed))
    with pytest.raises(BridgeError, match="the log has 399 W for its jobs, the platform 400 W") as caught:
        prepare_experiment(Experiment(log(tmp_path, JOBS, power=399), detailed=detailed))
    assert caught.value.remedy == "Say which with --power-budget: 639 or 640 W."
    chosen = replace(detailed, power_budget=639.0)
    assert (
        prepare_experiment(Experiment(log(tmp_path, JOBS, power=399), detailed=chosen)).records.capacity[
            "power"
        ]
        == 399
    )


def test_without_a_budget_the_machine_may_run_at_full_power(tmp_path: Path) -> None:
    detailed = Detailed(platform(tmp_path, budget=0), power="per-job")
    assert (
        prepare_experiment(Experiment(log(tmp_path, JOBS), detailed=detailed)).records.capacity["power"]
        == 4 * 155
    )


def test_plans(tmp_path: Path) -> None:
    machine = read_platform(platform(tmp_path, sleep=SLEEP.format(off=60)))
    assert build_power_plan(machine, Detailed(energy=True), 0) is None
    made = build_power_plan(machine, Detailed(power="per-job", shutdown_after=1.5), 60)
    assert made is not None and made.levels is not None
    assert (made.rest, made.states, made.sleeping, made.idle_limit) == (0, tuple(range(32)), 32, 1_500_000)
    assert (made.levels.watts[:2], made.levels.uncharged) == ((60, 65), 60)
    teaching = read_platform(Path(__file__).parents[2] / "platforms" / "teaching-16.xml")
    made = build_power_plan(teaching, Detailed(dvfs=0.5), 0)
    assert made is not None and (made.rest, made.dvfs) == (1, Dvfs(slow=1, fast=0, busy_share=0.5))


@pytest.mark.parametrize(
    ("detailed", "said"),
    [
        (Detailed(dvfs=0.5), "no pstate that is slower"),
        (Detailed(shutdown_after=1.0), "no pstate to sleep in"),
    ],
)
def test_plans_that_need_other_pstates(tmp_path: Path, detailed: Detailed, said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        build_power_plan(read_platform(platform(tmp_path)), detailed, 60)


def test_transitions_that_would_break_the_budget(tmp_path: Path) -> None:
    machine = read_platform(platform(tmp_path, sleep=SLEEP.format(off=61)))
    with pytest.raises(BridgeError, match="up to 61 W while it is switched"):
        build_power_plan(machine, Detailed(power="per-job", shutdown_after=1.0), 60)
    assert build_power_plan(machine, Detailed(shutdown_after=1.0), 60) is not None


def test_hosts_that_differ(tmp_path: Path) -> None:
    path = Path(platform(tmp_path))
    text = path.read_text().replace('radical="10-13"', 'radical="10-12"')
    at = text.index("  <cluster")
    end = text.index("\n", at)
    other = text[at:end].replace('id="compute"', 'id="other"').replace("10-12", "13-13")
    other = other.replace("65:65:65", "66:66:66").replace("compute_switch", "other_switch")
    joined = text[:end] + "\n" + other + text[end:]
    routes = [line for line in joined.splitlines() if 'src="compute"' in line]
    for line in routes:
        changed = line.replace('"compute"', '"other"').replace("compute_switch", "other_switch")
        joined = joined.replace(line, f"{line}\n{changed}")
    path.write_text(joined)
    with pytest.raises(BridgeError, match="hosts n10 and n13 have different power states"):
        build_power_plan(read_platform(path), Detailed(shutdown_after=1.0), 60)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"power": "all"}, "power cannot be"),
        ({"power": "per-job", "platform": ""}, "needs the platform"),
        ({"power": "per-job", "dvfs": 0.5}, "not for both"),
        ({"dvfs": 1.5}, "at least 0 and at most 1"),
        ({"shutdown_after": -1.0}, "at least 0"),
        ({"power_budget": float("nan")}, "at least 0"),
    ],
)
def test_options_that_make_no_sense(change: dict[str, object], said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        Experiment("x", detailed=replace(Detailed("p"), **change)).check()  # type: ignore[arg-type]


def test_only_the_standard_protocol_has_power_per_job() -> None:
    with pytest.raises(BridgeError, match="only the standard protocol"):
        Experiment(
            "x", setup=SchedulerConfig(protocol="cqsim"), detailed=Detailed("p", power="per-job")
        ).check()


def test_what_the_options_mean() -> None:
    assert not Detailed().powered and Detailed(energy=True).powered and not Detailed(energy=True).switches
    for option in ({"power": "per-job"}, {"shutdown_after": 1.0}, {"dvfs": 0.1}):
        made = Detailed(**option)  # type: ignore[arg-type]
        assert made.powered and made.switches
    assert Detailed(dvfs=0.1).limit.name == "none" and Detailed(shutdown_after=1.0).limit.name == "keep"


def test_the_command_line_says_the_same() -> None:
    detailed = Detailed("p", power="per-job", power_budget=450.0, shutdown_after=60.0)
    for made in (detailed, Detailed("p", dvfs=0.5)):
        experiment = Experiment("log", on="simgrid", detailed=made)
        words = shlex.split(experiment.command())[2:]
        with cli.make_context("bridge", ["run"], resilient_parsing=True) as parent:
            context = run.make_context("run", words, parent=parent)
        assert parse({}, "the options", given_options(context)) == experiment


@needs_simgrid
def test_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["--workload", log(tmp_path, JOBS), "--on", "simgrid", "--platform", platform(tmp_path)]
    run_ok("run", *words, "--power", "per-job", "--out", out)
    said = run_ok("check", out)
    assert "peak 370 of 400 power" in said
    assert "power drawn: peak 610 W, mean 460 W, budget 640 W; energy 0.0127778 kWh" in said
    assert "--power per-job" in (out / "detailed" / "again.sh").read_text()
    # without power per job the hosts stay at 60 W each, which this budget does not allow
    told = run_bridge("run", *words, "--energy", "--power-budget", 100, "--out", out, "--force")
    assert (told.status, "drew more than its power budget for 100 s" in told.err) == (0, True)
    assert read_run(out).metrics["over_budget.seconds"] == 100
    told = run_bridge("check", out)
    assert told.status == 1
    assert "first violation, at t = 0.000000 s [power-budget]" in told.out
    assert "the machine drew up to 240 W" in told.out
