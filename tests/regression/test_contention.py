"""Two small contention cases, links and file system, whose finish times are worked out by hand.

In the fast world every job takes its logged 100 s. On the platforms, transfers that share 100 MB/s get half
of it each while there are two of them.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_commands import run_bridge, run_ok, run_refused

sys.path.append(str(Path(__file__).parent.parent / "experiment"))
from experiment_helpers import needs_simgrid, simulated, write_log  # type: ignore[import-not-found]

from bridge.experiment.prepare import PreparedExperiment, prepare_experiment
from bridge.experiment.run import run_fast
from bridge.experiment.spec import Detailed, Experiment
from bridge.judge.world_agreement import compare_worlds
from bridge.worlds.fast.scheduler_config import SchedulerConfig

HERE = Path(__file__).parent

#: Two jobs on 2 of 4 nodes, 20 s apart, and one that needs all nodes. network:0.5: computes for half of its
#: run time, then exchanges. The first exchanges from 50 s on, alone until 70 s; has 30 s of exchange left, at
#: half speed until 130 s. The second has by then 20 s left and exchanges alone until 150 s. The third has the
#: link to itself.
LINKS = [(0, 2, 100, 200), (20, 2, 100, 200), (30, 4, 100, 200)]
#: Two jobs on one node, 10 s apart, and one that needs all nodes. io:0.4: reads for 20 s, computes for 60 s,
#: writes for 20 s. The first reads alone until 10 s, shares until 30 s; computes until 90 s; writes alone
#: until 100 s, shares until 120 s. The second shares its reading from 10 s to 30 s, has 10 s left and reads
#: alone until 40 s; computes until 100 s; shares its writing until 120 s, and writes alone until 130 s.
PFS = [(0, 1, 100, 200), (10, 1, 100, 200), (30, 4, 100, 200)]


def task(
    folder: Path, jobs: list[tuple[int, int, int, int]], platform: str, profile: str, **more: Any
) -> PreparedExperiment:
    log = write_log(folder / "log.swf", jobs, nodes=4)
    detailed = Detailed(str(HERE / platform), profile, **more)
    return prepare_experiment(
        Experiment(str(log), on="simgrid", setup=SchedulerConfig("fcfs", "easy"), detailed=detailed)
    )


@needs_simgrid
@pytest.mark.parametrize("kernel", ["simgrid", "queue"])
@pytest.mark.parametrize(
    ("jobs", "platform", "profile", "starts", "finishes"),
    [
        (LINKS, "links.xml", "network:0.5", [0, 20, 150], [130, 150, 250]),
        (PFS, "pfs.xml", "io:0.4", [0, 10, 130], [120, 130, 230]),
        (LINKS, "links.xml", "compute", [0, 20, 120], [100, 120, 220]),
    ],
)
def test_finish_times(
    tmp_path: Path,
    kernel: str,
    jobs: list[tuple[int, int, int, int]],
    platform: str,
    profile: str,
    starts: list[float],
    finishes: list[float],
) -> None:
    run = simulated(task(tmp_path, jobs, platform, profile, options=("--kernel", kernel)), tmp_path)
    table = run.jobs.set_index("job_id").sort_index()
    assert table["starting_time"].tolist() == pytest.approx(starts, rel=1e-6)
    assert table["finish_time"].tolist() == pytest.approx(finishes, rel=1e-6)


@needs_simgrid
def test_walltimes_kill_where_they_are_kept(tmp_path: Path) -> None:
    """Requests of 120 s: enough alone, not under contention, where the first job would need 130 s."""
    jobs = [(submit, nodes, run, 120) for submit, nodes, run, _ in LINKS]
    made = task(tmp_path, jobs, "links.xml", "network:0.5", walltime="keep")
    run = simulated(made, tmp_path)
    table = run.jobs.set_index("job_id").sort_index()
    # The first is killed at 120 s; the second has 25 of its 50 s left then, and could end at 145 s only.
    walltime, success = "COMPLETED_WALLTIME_REACHED", "COMPLETED_SUCCESSFULLY"
    assert table["final_state"].tolist() == [walltime, walltime, success]
    assert table["finish_time"].tolist() == pytest.approx([120, 140, 240], rel=1e-6)
    found = compare_worlds("fcfs+easy", run_fast(made), run)
    assert found.killed == (0, 2)


@needs_simgrid
def test_the_reason_of_the_first_difference(tmp_path: Path) -> None:
    made = task(tmp_path, LINKS, "links.xml", "network:0.5")
    found = compare_worlds("fcfs+easy", run_fast(made), simulated(made, tmp_path))
    assert found.jobs.differing_starts == 1 and found.longer == 2
    assert found.jobs.first is not None and found.jobs.first.job == "3"
    assert found.reason.startswith(
        "job 2 held its 2 nodes until 150.000000 s, in the fast world until 120.000000 s: "
        "it ran 130.000000 s in place of 100.000000 s"
    )
    assert found.stretch == pytest.approx((1.2, 1.3))
    assert found.differences["makespan"] == pytest.approx(30, rel=1e-6)


@needs_simgrid
def test_validate_as_a_regression_test(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.swf", LINKS, nodes=4)
    baseline, out = tmp_path / "baseline.json", tmp_path / "out"
    words = ["validate", "fcfs+easy", "sjf+none", "--workload", str(log), "--platform"]
    words += [str(HERE / "links.xml"), "--profile", "network:0.5"]
    saved = run_bridge(*words, "--save-baseline", baseline, "--out", out)
    said = saved.out
    assert saved.status == 0
    assert f"bridge: baseline written to {baseline}\n" in saved.err
    assert "1 of 3 jobs start at another time on the platform" in said
    assert "rank agreement of 2 policies" in said
    assert {p.name for p in out.iterdir()} == {"fcfs+easy", "sjf+none", "validation.json"}
    assert (out / "fcfs+easy" / "simgrid" / "detailed" / "out_jobs.csv").exists()
    assert (out / "fcfs+easy" / "fast" / "metrics.json").exists()
    assert json.loads(baseline.read_text()) == json.loads((out / "validation.json").read_text())

    same = run_bridge(*words, "--against", baseline, "--json")
    assert same.status == 0
    assert f"bridge: agrees with the baseline {baseline}\n" in same.err
    assert json.loads(same.out)["differing_starts"] == 2
    assert [one["differing_starts"] for one in json.loads(same.out)["policies"]] == [1, 1]
    document = json.loads(baseline.read_text())
    document["policies"][0]["detailed"]["makespan"] *= 1.01
    baseline.write_text(json.dumps(document))
    told = run_bridge(*words, "--against", baseline, "--json")
    found = json.loads(told.out)["problems"]
    assert (told.status, len(found)) == (1, 1)
    assert found[0].startswith("fcfs+easy, detailed: makespan is 250.0")
    assert "agrees with the baseline" not in told.err
    run_ok(*words, "--against", baseline, "--tolerance", 0.02)
    other = [word if word != "network:0.5" else "compute" for word in words]
    told = run_bridge(*other, "--against", baseline, "--tolerance", 0.02)
    assert told.status == 1
    assert "profile is 'compute', the baseline's is 'network:0.5'" in told.err
    # without a baseline, the fast world is the measure
    run_ok(*other, "--tolerance", "1e-6")
    assert run_bridge(*words, "--tolerance", "1e-6").status == 1


def test_bad_policies_and_baselines(tmp_path: Path) -> None:
    words = ["validate", "--workload", "bundled-128", "--platform", "sp2-128"]
    (tmp_path / "b.json").write_text('{"format": 0}')
    for more, said in (
        (["gone"], "is no policy"),
        (["fcfs+fast"], "is no policy"),
        (["fcfs+easy", "fcfs+easy"], "is named twice"),
        (["fcfs+easy", "--against", tmp_path / "none.json"], "none.json: no such file"),
        (["fcfs+easy", "--against", tmp_path / "b.json"], "is no baseline of format 1"),
    ):
        assert said in run_refused(*words, *more)
