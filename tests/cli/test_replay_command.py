"""`bridge replay`: every file and number it gives for a schedule computed by hand, and every option."""

import csv
import json
import shlex
import tomllib
from pathlib import Path

import pytest
from cli_commands import LINES, STARTS, file_names, run_bridge, run_ok, run_refused
from small_jobs import spread
from subprocess_python import run_python

from bridge.workload.catalogue import resolve

JOBS_CSV = """\
job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,\
starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,\
metadata
3,tiny,3,20.000000,2,80.000000,1,COMPLETED_SUCCESSFULLY,20.000000,70.000000,90.000000,0.000000,70.000000,\
1.000000,2-3,-1.000000,""
1,tiny,1,0.000000,2,100.000000,0,COMPLETED_WALLTIME_REACHED,0.000000,100.000000,100.000000,0.000000,100.000000,\
1.000000,0-1,-1.000000,""
5,tiny,5,40.000000,1,10.000000,0,COMPLETED_WALLTIME_REACHED,90.000000,10.000000,100.000000,50.000000,60.000000,\
6.000000,2,-1.000000,""
2,tiny,2,10.000000,4,60.000000,1,COMPLETED_SUCCESSFULLY,100.000000,50.000000,150.000000,90.000000,140.000000,\
2.800000,0-3,-1.000000,""
4,tiny,4,30.000000,1,20.000000,0,COMPLETED_WALLTIME_REACHED,150.000000,20.000000,170.000000,120.000000,\
140.000000,7.000000,0,-1.000000,""
"""

RST = """\
3;2;2;80.0;70.0;0.0;20.0;20.0;90.0
1;2;2;100.0;100.0;0.0;0.0;0.0;100.0
5;1;1;10.0;10.0;50.0;40.0;90.0;100.0
2;4;4;60.0;50.0;90.0;10.0;100.0;150.0
4;1;1;20.0;20.0;120.0;30.0;150.0;170.0
"""

#: By hand. Waits 0 90 0 120 50; turnarounds 100 140 70 140 60; slowdowns 1 2.8 1 7 6, bounded ones the same.
METRICS = {
    "jobs.total": 5,
    "jobs.started": 5,
    "jobs.rejected": 0,
    "jobs.state.COMPLETED_SUCCESSFULLY": 2,
    "jobs.state.COMPLETED_WALLTIME_REACHED": 3,
    "jobs.state.COMPLETED_FAILED": 0,
    "jobs.state.COMPLETED_KILLED": 0,
    "jobs.state.REJECTED": 0,
    "bsld.threshold": 10.0,
    **spread("wait", 52.0, 50.0, 90 + 0.8 * 30, 90 + 0.96 * 30, 120.0),
    **spread("turnaround", 102.0, 100.0, 140.0, 140.0, 140.0),
    **spread("slowdown", 17.8 / 5, 2.8, 6.8, 6.96, 7.0),
    **spread("bsld", 17.8 / 5, 2.8, 6.8, 6.96, 7.0),
    "makespan": 170.0,
    "queue.jobs.mean": 260 / 170,
    "queue.jobs.max": 3,
    "queue.nodes.mean": (90 * 4 + 120 + 50) / 170,
    "queue.nodes.max": 6,
    # 2 nodes idle from 10 to 20 and 1 from 90 to 100, while jobs wait
    "loss_of_capacity": 30 / (4 * 170),
    "loss_of_capacity.demand": 30 / (4 * 170),
    "utilisation.nodes": (200 + 200 + 140 + 20 + 10) / (4 * 170),
    # between the 5 % and 95 % quantile of the submits, 2 and 38 s: job 1 whole, job 3 from 20 s on
    "utilisation.nodes.trimmed": (2 * 36 + 2 * 18) / (4 * 36),
    "size.1.jobs": 2,
    "size.1.wait.mean": 85.0,
    "size.1.bsld.mean": 6.5,
    "size.2.jobs": 2,
    "size.2.wait.mean": 0.0,
    "size.2.bsld.mean": 1.0,
    "size.3-4.jobs": 1,
    "size.3-4.wait.mean": 90.0,
    "size.3-4.bsld.mean": 2.8,
    "users.count": 3,
    "users.bsld.max": 6.0,
    "fairness.jain": (1.9 + 4 + 6) ** 2 / (3 * (1.9**2 + 4**2 + 6**2)),
}


def starts(path: Path) -> dict[int, float]:
    with path.open(newline="") as file:
        return {int(row["job_id"]): float(row["starting_time"]) for row in csv.DictReader(file)}


def replayed(*words: object) -> dict[int, float]:
    """Replay into a folder of its own and return the start times."""
    run_ok("replay", *words, "--out", "run", "--force")
    return starts(Path("run/jobs.csv"))


def config(run: str = "run") -> dict[str, object]:
    return tomllib.loads(Path(run, "run.toml").read_text())["config"]


def test_writes_the_jobs_to_the_digit(tiny: str, folder: Path) -> None:
    said = run_ok("replay", tiny, "--out", "runs/new", "--rst", "tiny.rst")
    assert file_names(folder / "runs") == {"new"}
    assert file_names(folder / "runs/new") == {"jobs.csv", "jobs.parquet", "metrics.json", "run.toml"}
    assert (folder / "runs/new/jobs.csv").read_text() == JOBS_CSV
    assert (folder / "tiny.rst").read_text() == RST
    command = "bridge replay tiny.swf --order fcfs --backfill easy --protocol standard"
    assert said.endswith(f"run written to runs/new; repeat it with: {command}\n")


def test_a_table_made_in_pieces_is_the_whole_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bridge.judge.run import read_run

    run_ok("replay", "bundled-128", "--first", "300", "--out", "whole", "--rst", "300.rst")
    monkeypatch.setattr("bridge.judge.run.PIECE", 70)
    run_ok("replay", "bundled-128", "--first", "300", "--out", "pieces")
    whole, pieces = (read_run(folder / name) for name in ("whole", "pieces"))
    assert pieces.jobs.equals(whole.jobs)
    assert pieces.metrics == whole.metrics
    first, second = (Path(name, "jobs.csv").read_bytes() for name in ("whole", "pieces"))
    assert first == second


def test_parquet_tells_why_each_job_started(tiny: str) -> None:
    import pandas as pd

    run_ok("replay", tiny, "--out", "run")
    table = pd.read_parquet("run/jobs.parquet").set_index("job_id")
    expected = {"1": "head", "2": "head", "3": "backfilled", "4": "head", "5": "backfilled"}
    assert table["start_kind"].to_dict() == expected
    assert table["overtook"].to_dict() == {"1": "", "2": "", "3": "2", "4": "", "5": "2"}
    assert table["user"].to_dict() == {"1": 1, "2": 1, "3": 2, "4": 2, "5": 3}
    promised = table["reserved_time"]
    assert (promised["2"], promised["4"]) == (100.0, 160.0)  # 160: when 2 would have been killed
    assert promised[["1", "3", "5"]].isna().all()


def test_metrics_are_those_computed_by_hand(tiny: str) -> None:
    printed = json.loads(run_ok("replay", tiny, "--out", "run", "--json"))
    written = json.loads(Path("run/metrics.json").read_text())
    assert printed == {"oracle": False, **written}
    assert written.pop("energy.joules") is None
    assert written == pytest.approx(METRICS, rel=1e-12)
    assert list(written) == list(METRICS)


def test_shows_a_table(tiny: str) -> None:
    out = run_ok("replay", tiny)
    assert "tiny fcfs+easy" in out
    row = next(line for line in out.splitlines() if "bounded slowdown" in line)
    assert row.replace("│", " ").split() == ["bounded", "slowdown", "3.56", "2.80", "6.80", "6.96", "7"]


def test_json_is_nothing_but_json_even_with_warnings_files_and_pictures(odd: str) -> None:
    told = run_bridge("replay", odd, "--json", "--out", "run", "--plot", "--rst", "a.rst")
    assert told.status == 0
    assert json.loads(told.out)["jobs.total"] == 5
    assert told.err.splitlines() == [
        "bridge: 1 record dropped: cancelled before it started (job 6)",
        "bridge: 1 record dropped: larger than the machine (nodes: 5 asked, 4 there) (job 7)",
        f"drew {Path('run/odd-timeline.png')}",
        f"drew {Path('run/odd-gantt.png')}",
    ]


def test_the_record_counts_what_was_dropped(odd: str) -> None:
    replayed(odd)
    expected = {"cancelled before it started": 1, "larger than the machine (nodes: 5 asked, 4 there)": 1}
    assert config()["records"] == expected


FCFS_ALONE = {1: 0, 2: 100, 3: 150, 4: 150, 5: 150}
#: 4 and 5 slip through while 2 still waits for the machine; 3 needs more nodes than it may take.
SHORT_ONES_EARLY = {1: 0, 2: 100, 3: 150, 4: 30, 5: 40}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", STARTS),
        ("--backfill none", FCFS_ALONE),
        # 3 takes the hole until 100; 5 the one from 90 to 100; 4 fits behind 2 only
        ("--backfill conservative", STARTS),
        # shortest request first: 5 (10), 4 (20), 2 (60), 3 (80)
        ("--order sjf --backfill none", SHORT_ONES_EARLY),
        # at 20, 3 is behind 2 and fits; at 90 both short jobs stand before 2, and 4 delays it to 110
        ("--order sjf", {1: 0, 2: 110, 3: 20, 4: 90, 5: 90}),
        ("--order SJF", {1: 0, 2: 110, 3: 20, 4: 90, 5: 90}),
        # the same by expression: the largest score comes first
        ("--order=-t", {1: 0, 2: 110, 3: 20, 4: 90, 5: 90}),
        # the last submitted first
        ("--order lcfs --backfill none", {1: 0, 2: 110, 3: 20, 4: 90, 5: 90}),
        ("--first 3", {1: 0, 2: 100, 3: 20}),
        # 8 nodes: only the last two wait, for 2's end
        ("--nodes 8", {1: 0, 2: 10, 3: 20, 4: 60, 5: 60}),
        ("--no-rebase", {1: 1000, 2: 1100, 3: 1020, 4: 1150, 5: 1090}),
        ("--rebase", STARTS),
        ("--protocol cqsim", STARTS),
        # strictly before the shadow time: 3 would end at 100 sharp, and must wait for 2; 4 and 5 fit
        ("--protocol schedgym", {1: 1000, 2: 1100, 3: 1150, 4: 1030, 5: 1040}),
        ("--protocol schedgym --preset rlscheduler --rebase", {1: 0, 2: 100, 3: 150, 4: 30, 5: 40}),
        # SchedInspector's loader believes the run times: 3 takes 70 s; 5 would end at 100 sharp
        ("--protocol schedgym --preset schedinspector --rebase", {**STARTS, 5: 150}),
    ],
)
def test_options_give_these_start_times(tiny: str, options: str, expected: dict[int, float]) -> None:
    assert replayed(tiny, *options.split()) == expected


@pytest.mark.parametrize(
    ("estimator", "expected", "oracle"),
    [
        # 3 would end at 105: too late to pass 2, so that 4 and 5 do
        ("requested", SHORT_ONES_EARLY, False),
        ("actual", STARTS, True),
        ("cqsim", STARTS, True),
        ("noisy(0)", STARTS, True),
        ("noisy(0, 3)", STARTS, True),
        # no user has two ended jobs
        ("predicted", SHORT_ONES_EARLY, False),
        ("predicted(guess)", STARTS, False),
    ],
)
def test_estimators(folder: Path, estimator: str, expected: dict[int, float], oracle: bool) -> None:
    (folder / "log.csv").write_text(
        "# capacity: nodes=4\njob_id,submit,run,procs,req_time,guess\n"
        "1,0,100,2,100,100\n2,10,50,4,60,50\n3,20,70,2,85,75\n4,30,20,1,20,20\n5,40,10,1,10,10\n"
    )
    assert replayed("log.csv", "--estimator", estimator) == expected
    assert config()["estimator"] == estimator
    assert tomllib.loads(Path("run/run.toml").read_text())["oracle"] is oracle
    out = run_ok("replay", "log.csv", "--estimator", estimator)
    assert ("oracle" in out) is oracle


def test_cancelled_jobs_may_be_kept_for_ten_seconds(odd: str) -> None:
    # 6 asks for 1 node and 10 s: it still fits before 2, beside 5
    told = run_bridge("replay", odd, "--cancelled", "keep", "--out", "run")
    assert told.status == 0
    assert starts(Path("run/jobs.csv")) == {**STARTS, 6: 90}
    assert "never ran: run time set to 10 s" in told.err


def test_candidates_in_an_order_of_their_own(folder: Path) -> None:
    # 2 blocks until 100. At 20 there is 1 node for 3 (60 s) or 4 (30 s); who comes second is too late to fit.
    (folder / "log.csv").write_text(
        "# capacity: nodes=4\njob_id,submit,run,procs,req_time\n"
        "1,0,100,3,100\n2,10,50,4,50\n3,20,60,1,60\n4,20,30,1,30\n"
    )
    assert replayed("log.csv") == {1: 0, 2: 100, 3: 20, 4: 150}
    assert replayed("log.csv", "--backfill-order", "sjf") == {1: 0, 2: 100, 3: 150, 4: 20}
    assert replayed("log.csv", "--backfill-order", "-t") == {1: 0, 2: 100, 3: 150, 4: 20}


def test_threshold_of_the_bounded_slowdown(tiny: str) -> None:
    told = json.loads(run_ok("replay", tiny, "--threshold", 50, "--json"))
    # turnarounds 100 140 70 140 60 over run times 100 50 70 50 50 (the last two lifted to the threshold)
    assert told["bsld.mean"] == pytest.approx((1 + 2.8 + 1 + 2.8 + 1.2) / 5, rel=1e-12)
    assert told["bsld.threshold"] == 50
    assert told["slowdown.mean"] == pytest.approx(17.8 / 5, rel=1e-12)


def test_malformed_lines_may_be_dropped(tiny: str, folder: Path) -> None:
    (folder / "half.swf").write_text(Path(tiny).read_text() + "6 1050 -1 1\n")
    assert "half.swf:7: 4 fields instead of 18" in run_refused("replay", "half.swf")
    told = run_bridge("replay", "half.swf", "--malformed", "drop", "--out", "run")
    assert told.status == 0
    assert starts(Path("run/jobs.csv")) == STARTS
    assert "1 record dropped: malformed line" in told.err


@pytest.mark.parametrize(
    "options",
    [
        "",
        "--order '(w/t)**3*n' --backfill easy --backfill-order 't*n'",
        "--order wfp3 --backfill conservative --estimator 'noisy(0.5, 7)'",
        "--protocol cqsim --order unicep --first 700 --threshold 12.3456789",
        "--protocol schedgym --preset rlscheduler --order f1 --rebase",
        "--order slurm --nodes 130 --cancelled keep --malformed drop --no-rebase",
        "--order '-w' --estimator predicted",
    ],
)
def test_the_run_holds_the_one_command_that_repeats_it_bit_for_bit(folder: Path, options: str) -> None:
    run_ok("replay", "bundled-128", *shlex.split(options), "--out", "a")
    words = shlex.split(str(config("a")["command"]))
    assert words[:3] == ["bridge", "replay", "bundled-128"]
    run_ok(*words[1:], "--out", "b")
    for name in ("jobs.csv", "jobs.parquet", "metrics.json", "run.toml"):
        assert (folder / "a" / name).read_bytes() == (folder / "b" / name).read_bytes(), name


def test_a_log_whose_name_needs_quotes_repeats_too(tiny: str, folder: Path) -> None:
    Path(tiny).rename("it's; a log.swf")
    replayed("it's; a log.swf")
    assert starts(folder / "run/jobs.csv") == STARTS
    run_ok(*shlex.split(str(config()["command"]))[1:])


def test_the_bundled_workload_is_scheduled_without_a_violation() -> None:
    for k, options in enumerate(
        (["--order", "sjf"], ["--backfill", "conservative"], ["--protocol", "cqsim"])
    ):
        run_ok("replay", "bundled-128", *options, "--out", f"r{k}")
        said = run_ok("check", f"r{k}", "--workload", resolve("bundled-128"))
        assert said == "valid: 3,000 jobs started; peak 128 of 128 nodes\n"


def test_every_format_gives_the_same_schedule(tiny: str) -> None:
    for name in ("a.csv", "a.csv.gz", "a.parquet", "a.json", "a.swf.gz", "a.swf.xz"):
        run_ok("workload", "convert", tiny, name)
        assert replayed(name) == STARTS, name


def test_plot_draws_into_the_run(tiny: str, folder: Path) -> None:
    run_ok("replay", tiny, "--out", "run", "--plot")
    pictures = {"tiny-timeline.png", "tiny-gantt.png"}
    assert file_names(folder / "run") == {"jobs.csv", "jobs.parquet", "metrics.json", "run.toml"} | pictures
    for name in pictures:
        assert (folder / "run" / name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    run_ok("replay", tiny, "--out", "run", "--force")
    assert file_names(folder / "run") == {"jobs.csv", "jobs.parquet", "metrics.json", "run.toml"}


def test_plot_alone_draws_here_but_over_nothing(tiny: str, folder: Path) -> None:
    run_ok("replay", tiny, "--plot")
    assert file_names(folder) == {tiny, "tiny-timeline.png", "tiny-gantt.png"}
    (folder / "tiny-gantt.png").unlink()
    assert run_refused("replay", tiny, "--plot").startswith("tiny-timeline.png: the file already exists\n")
    assert file_names(folder) == {tiny, "tiny-timeline.png"}
    run_ok("replay", tiny, "--plot", "--force")
    assert file_names(folder) == {tiny, "tiny-timeline.png", "tiny-gantt.png"}


def test_no_gantt_chart_of_a_large_run(folder: Path) -> None:
    run_ok("replay", "bundled-128", "--plot")
    assert file_names(folder) == {"bundled-128-timeline.png"}


def test_force_replaces_a_run_and_nothing_else(tiny: str, folder: Path) -> None:
    run_ok("replay", tiny, "--out", "run", "--rst", "a.rst")
    before = (folder / "run/run.toml").read_bytes()
    (folder / "mine").mkdir()
    (folder / "mine/thesis.tex").write_text("years of work")
    assert "add --force" in run_refused("replay", tiny, "--order", "sjf", "--out", "run")
    assert (folder / "run/run.toml").read_bytes() == before
    assert "add --force" in run_refused("replay", tiny, "--order", "sjf", "--rst", "a.rst")
    assert "thesis.tex" in run_refused("replay", tiny, "--out", "mine", "--force")
    run_ok("replay", tiny, "--order", "sjf", "--out", "run", "--rst", "a.rst", "--force")
    assert config()["order"] == "sjf"
    assert "4;1;1;20.0;20.0;60.0;30.0;90.0;110.0\n" in (folder / "a.rst").read_text()
    assert file_names(folder) == {tiny, "run", "a.rst", "mine"}
    assert file_names(folder / "mine") == {"thesis.tex"}


def test_the_result_file_may_lie_in_the_new_run(tiny: str, folder: Path) -> None:
    run_ok("replay", tiny, "--out", "run", "--rst", "run/a.rst")
    assert (folder / "run/a.rst").read_text() == RST


def test_a_single_job(folder: Path) -> None:
    (folder / "one.swf").write_text("; MaxProcs: 4\n" + LINES[0])
    told = json.loads(run_ok("replay", "one.swf", "--json"))
    assert (told["jobs.total"], told["wait.max"], told["makespan"]) == (1, 0, 100)


@pytest.mark.parametrize("nodes", [10**9, 2**63 - 1])
def test_memory_follows_the_jobs_not_the_machine(folder: Path, nodes: int) -> None:
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)); "
        "from bridge.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["--first", 200, "--nodes", nodes, "--out", folder / "run"]
    done = run_python(program, "replay", "bundled-128", *words)
    assert done.returncode == 0, done.stderr
    assert f"valid: 200 jobs started; peak 454 of {nodes:,} nodes" in run_ok("check", str(folder / "run"))


def test_more_nodes_than_64_bits_hold_are_refused(tiny: str) -> None:
    assert "capacity of 'nodes' is 9223372036854775808" in run_refused("replay", tiny, "--nodes", str(2**63))


def test_times_of_thousands_of_years_are_replayed_and_checked(folder: Path) -> None:
    log, run = folder / "late.swf", folder / "late"
    jobs = [(1, 0, 100_000_000_000), (2, 10, 50), (3, "92000000000.123456", "50.5")]
    rows = [f"{n} {submit} -1 {length} 8 -1 -1 8 {length}{' -1' * 9}\n" for n, submit, length in jobs]
    log.write_text("; MaxProcs: 10\n" + "".join(rows))
    run_ok("replay", str(log), "--out", str(run))
    for path in (run, run / "jobs.csv"):
        assert run_ok("check", str(path), "--nodes", "10").startswith("valid: 3 jobs started")
