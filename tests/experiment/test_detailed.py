"""Detailed runs: the same schedule as the fast world, every way to fail, and nothing left behind."""

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from experiment_helpers import (
    alive,
    in_both_worlds,
    needs_simgrid,
    on_path,
    write_log,
    write_peer,
    write_program,
)
from simgrid_available import COMMAND

from bridge.base.errors import BridgeError
from bridge.cli.main import main
from bridge.experiment import detailed
from bridge.experiment.detailed import DetailedRun, run_simulation, write_again
from bridge.experiment.prepare import PreparedExperiment, prepare_experiment
from bridge.experiment.program import Child
from bridge.experiment.run import run_detailed, run_fast
from bridge.experiment.spec import Detailed, Experiment
from bridge.judge.compare import compare_runs
from bridge.judge.run import read_run
from bridge.worlds.batsim.result import ExitReason

BATSIM = f'exec {shlex.join(COMMAND)} "$@"\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.swf")


def task(log: Path, on: str = "batsim", **detailed: object) -> PreparedExperiment:
    return prepare_experiment(Experiment(str(log), on=on, detailed=Detailed("teaching-16", **detailed)))  # type: ignore[arg-type]


def put_on_path(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, text: str) -> None:
    """Write a program that is found before any other of this name."""
    (folder / "bin").mkdir()
    write_program(folder / "bin" / name, text)
    on_path(monkeypatch, folder / "bin")


def await_end(pid: int) -> None:
    """Wait for the end of a process that is not our child. AssertionError: it runs on."""
    if alive(pid):
        descriptor = os.pidfd_open(pid)
        assert select.select([descriptor], [], [], 30)[0], "the program runs on"
        os.close(descriptor)


def conducted(log: Path, program: Path | str, **detailed: object) -> DetailedRun:
    folder = log.parent / "simulation"
    folder.mkdir()
    return run_simulation(task(log, program=str(program), **detailed), folder)


@needs_simgrid
@pytest.mark.parametrize("placement", ["first-fit", "contiguous", "best-fit", "topology"])
def test_delay_jobs_start_as_in_the_fast_world(log: Path, tmp_path: Path, placement: str) -> None:
    fast, made = in_both_worlds(task(log, "simgrid", placement=placement), tmp_path)
    assert len(fast.jobs) == made.config["detailed"]["locality"]["starts"] == 10
    columns = ["final_state", "execution_time", "start_kind", "overtook", "user", "queue"]
    a, b = (run.jobs.set_index("job_id").sort_index() for run in (fast, made))
    for column in columns:
        assert a[column].tolist() == b[column].tolist(), column
    assert b["requested_time"].tolist() == a["requested_time"].tolist() == b["request"].tolist()


@needs_simgrid
def test_the_run_folder_holds_everything(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Batsim is looked for on PATH; here it is the embedded model under that name."""
    put_on_path(monkeypatch, tmp_path, "batsim", BATSIM)
    out = tmp_path / "run"
    words = ["run", "--workload", str(log), "--on", "batsim", "--platform", "teaching-16", "--out", str(out)]
    assert main([*words, "--energy", "--profile", "compute"]) == 0
    assert "repeat it with: bridge run --workload" in capsys.readouterr().out
    run = read_run(out)
    told = run.config["detailed"]
    assert told["program"][0] == str(tmp_path / "bin" / "batsim")
    assert told["program_version"].endswith("v4.2.1")
    expected = (0, "ended", "compute", "keep")
    assert (told["status"], told["outcome"], told["profile"], told["walltime"]) == expected
    assert run.metrics["jobs.total"] == 10
    assert run.metrics["energy.joules"] > 0  # type: ignore[operator]
    names = {file.name for file in (out / "detailed").iterdir()}
    assert names >= {"again.sh", "decisions.json", "platform.log", "platform.xml", "workload.json"}
    assert names >= {"out_consumed_energy.csv", "out_jobs.csv", "out_schedule.csv"}
    again = (out / "detailed" / "again.sh").read_text()
    assert 'export GLIBC_TUNABLES="${GLIBC_TUNABLES:-glibc.malloc.top_pad=' in again
    assert "\nbatsim -p platform.xml -w workload.json -s tcp://localhost:28000 -e again/out -q" in again
    assert "run --workload workload.json --on batsim" in again and "--platform platform.xml" in again
    assert main([*words]) == 1  # the folder is there
    assert main([*words, "--force"]) == 0


@pytest.mark.parametrize(
    ("decides", "simulates", "status"),
    [("exec sleep 1000", "exit 3", 3), ("exit 5", "exec sleep 1000", 5), ("sleep 0.5", "sleep 0.1", 0)],
)
def test_the_script_that_repeats_a_run_ends_with_its_sides(
    log: Path, tmp_path: Path, decides: str, simulates: str, status: int
) -> None:
    write_again(task(log), tmp_path)
    both = "until [ -s batsim.pid ] && [ -s python.pid ]; do sleep 0.1; done"
    write_program(tmp_path / "batsim", f"echo $$ > batsim.pid; {both}\n{simulates}\n")
    python = write_program(tmp_path / "python", f"echo $$ > python.pid; {both}\n{decides}\n")
    around = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "BRIDGE_PYTHON": str(python)}
    script = ["sh", str(tmp_path / "again.sh")]
    done = subprocess.run(script, env=os.environ | around, timeout=30, check=False)
    assert done.returncode == status
    for side in ("batsim", "python"):
        assert not alive(int((tmp_path / f"{side}.pid").read_text()))


def test_the_script_names_an_agent_by_its_whole_path(
    log: Path, backfiller: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(backfiller.parent)
    made = prepare_experiment(
        Experiment(str(log), on="simgrid", agent=backfiller.name, detailed=Detailed("teaching-16"))
    )
    words = made.repeat_command("tcp://127.0.0.1:1")
    assert words[words.index("--agent") + 1] == str(backfiller)


def test_a_missing_program_is_named(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for loaded, said in (
        (task(log), "batsim: the program is not on this machine"),
        (task(log, image="oarteam/batsim"), "docker: the program is not on this machine"),
        (task(log, program="nothing -x"), "nothing: the program is not on this machine"),
    ):
        with pytest.raises(BridgeError) as caught:
            run_simulation(loaded, tmp_path)
        assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("body", "outcome", "status", "exit_status", "said"),
    [
        # what Batsim does when nothing can happen any more: it ends without SIMULATION_ENDS, status 0
        (
            'ask(BEGIN); ask(submit("01")); print("bye"); sys.exit(0)',
            *(ExitReason.GONE, 0, 4),
            ["deadlock: Batsim ended with status 0, but SIMULATION_ENDS never came", "1 job is missing"],
        ),
        (
            "ask(BEGIN); os.kill(os.getpid(), signal.SIGABRT)",
            *(ExitReason.GONE, -signal.SIGABRT, 4),
            ["was killed by SIGABRT after 1 message"],
        ),
        (
            'ask(BEGIN); ask(submit("01")); ask(("SIMULATION_ENDS", {}))',
            *(ExitReason.INCOMPLETE, 0, 6),
            ["jobs are missing"],
        ),
        (
            'ask(BEGIN); ask(("SIMULATION_ENDS", {}))',
            *(ExitReason.ENDED, 0, 1),
            ["only 0 of 10 jobs were ever submitted"],
        ),
        ('socket.send(b"{"); socket.recv()', ExitReason.FAILED, None, 1, ["message 1"]),
        (
            'print("bad platform file", file=sys.stderr); sys.exit(7)',
            *(ExitReason.GONE, 7, 4),
            ["ended with status 7 before its first message", "It said: bad platform file"],
        ),
    ],
)
def test_programs_that_fail(
    log: Path, body: str, outcome: ExitReason, status: int | None, exit_status: int, said: list[str]
) -> None:
    done = conducted(log, write_peer(log.parent / "p", body + "\n"))
    assert (done.result.outcome, done.exit_status) == (outcome, exit_status)
    assert status is None or done.status == status
    assert done.fault is not None
    assert all(text in str(done.fault) for text in said)


def test_a_program_that_never_speaks(log: Path, tmp_path: Path) -> None:
    program = write_program(tmp_path / "p", "[ $1 = --version ] && exit 1; echo $$ > pid; exec sleep 1000\n")
    done = conducted(log, program, startup_timeout=0.3)
    assert done.result.outcome is ExitReason.NEVER_CAME and done.exit_status == 3
    assert done.fault is not None and "waited 0.3 s for Batsim's first message" in str(done.fault)
    assert not alive(int((tmp_path / "simulation" / "pid").read_text()))


def test_a_program_that_falls_silent(log: Path, tmp_path: Path) -> None:
    program = write_peer(tmp_path / "p", "ask(BEGIN); time.sleep(1000)\n")
    done = conducted(log, program, idle_timeout=0.3)
    assert done.result.outcome is ExitReason.SILENT and done.exit_status == 5
    assert not alive(int((tmp_path / "simulation" / "pid").read_text()))


def run_words(log: Path, program: Path, out: Path) -> list[str]:
    """Return what is typed to run a log on a program."""
    words = ["run", "--workload", str(log), "--on", "batsim", "--platform", "teaching-16"]
    return [*words, "--program", str(program), "--out", str(out)]


ONE_JOB = """
ask(BEGIN); ask(submit("01"))
done = {"job_id": "w0!01", "job_state": "COMPLETED_SUCCESSFULLY", "return_code": 0, "alloc": "0-9"}
head = "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,"
head += "final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,"
head += "allocated_resources,consumed_energy,metadata"
row = '01,w0,d,0.0,10,120.0,1,COMPLETED_SUCCESSFULLY,0.0,100.0,100.0,0.0,100.0,1.0,0-9,-1.0,""'
open("out_jobs.csv", "w").write(head + "\\n" + row + "\\n02,w0,d,5.0")
ask(("JOB_COMPLETED", done), now=100.0)
"""


def test_partial_results_are_kept(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = write_peer(tmp_path / "p", ONE_JOB + "sys.exit(9)\n")
    out = tmp_path / "run"
    assert main(run_words(log, program, out)) == 4
    assert "ended with status 9 after 3 messages" in capsys.readouterr().err
    run = read_run(out)
    assert run.jobs["job_id"].tolist() == ["1"]
    assert run.metrics["jobs.total"] == 1
    assert run.config["detailed"]["outcome"] == "gone"
    assert "ended with status 9" in run.config["detailed"]["fault"]
    assert json.loads((out / "detailed" / "decisions.json").read_text())["counts"]["submitted"] == 1


def test_no_result_at_all_is_a_run_too(log: Path, tmp_path: Path) -> None:
    program = write_program(tmp_path / "p", "exit 7\n")
    assert main(run_words(log, program, tmp_path / "run")) == 4
    assert read_run(tmp_path / "run").metrics["jobs.total"] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupts_end_the_program_and_keep_results(
    log: Path, tmp_path: Path, number: signal.Signals
) -> None:
    bridge, pid, out = _hanging(log, tmp_path)
    bridge.send_signal(number)
    try:
        _, errors = bridge.communicate(timeout=60)
    finally:
        bridge.kill()
    assert bridge.returncode == 130, errors
    assert "interrupted" in errors
    assert not alive(pid)
    assert read_run(out).metrics["jobs.total"] == 1
    assert not list(tmp_path.glob(".run*"))


def test_even_a_killed_bridge_leaves_no_program_behind(log: Path, tmp_path: Path) -> None:
    bridge, pid, _ = _hanging(log, tmp_path)
    bridge.kill()
    bridge.communicate(timeout=60)
    await_end(pid)


def _hanging(log: Path, tmp_path: Path) -> tuple[subprocess.Popen[str], int, Path]:
    """Start `bridge run` with a program that hangs after one job; return when it hangs."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    body = ONE_JOB + f'open({str(fifo)!r}, "w").write(str(os.getpid()))\ntime.sleep(1000)\n'
    program, out = write_peer(tmp_path / "p", body), tmp_path / "run"
    command = [sys.executable, "-m", "bridge.cli.main", *run_words(log, program, out)]
    bridge = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return bridge, int(fifo.read_text()), out


def test_an_exception_ends_the_program(log: Path, tmp_path: Path) -> None:
    def fail(_finished: int) -> None:
        raise RuntimeError("the progress bar fell over")

    folder = tmp_path / "simulation"
    folder.mkdir()
    program = write_peer(tmp_path / "p", ONE_JOB + "time.sleep(1000)\n")
    with pytest.raises(RuntimeError, match="fell over"):
        run_simulation(task(log, program=str(program)), folder, progress=fail)
    assert not alive(int((folder / "pid").read_text()))


def test_what_a_dying_batsim_calls_critical_is_the_error(log: Path, tmp_path: Path) -> None:
    said = "[2.0] src/server.cpp:9: [root/CRITICAL] Bad kill: job w0!1 has not been started"
    text = (
        f"echo starting; echo '{said}'; echo Backtrace; for k in 1 2 3 4 5 6; do echo main; done; kill -6 $$"
    )
    done = conducted(log, write_program(tmp_path / "p", f'[ "$1" = --version ] && exit 0\n{text}\n'))
    assert done.fault is not None and "SIGABRT" in done.fault.what
    assert done.fault.remedy == f"It said: {said}"


def test_a_child_that_ignores_requests_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.experiment.program._PATIENCE", 0.2)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    text = f"trap '' TERM\nsleep 1000 &\necho $! > {fifo}\nwhile :; do sleep 1000; done\n"
    with Child([str(write_program(tmp_path / "p", text))], tmp_path, tmp_path / "log") as child:
        grandchild = int(fifo.read_text())
    assert child.ended and child.wait(0) == -signal.SIGKILL
    await_end(grandchild)


DOCKER = """echo "$*" >> {calls}
[ "$1" = run ] || exit 0
while [ "$1" != oarteam/batsim ]; do
  [ "$1" = --volume ] && cd "${{2%:*}}"
  shift
done
shift
exec {model} "$@"
"""


@needs_simgrid
def test_a_container_image(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for docker: it runs the embedded model in the mounted folder."""
    calls = tmp_path / "calls"
    put_on_path(monkeypatch, tmp_path, "docker", DOCKER.format(calls=calls, model=shlex.join(COMMAND)))
    folder = tmp_path / "simulation"
    folder.mkdir()
    done = run_simulation(task(log, image="oarteam/batsim"), folder)
    assert done.fault is None
    words = calls.read_text().splitlines()[-1]
    assert (
        f"--network host --user {os.getuid()}:{os.getgid()} --volume {folder}:/data --workdir /data" in words
    )
    assert words.startswith("run --rm --name bridge-")
    assert " --env GLIBC_TUNABLES=glibc.malloc.top_pad=" in words


def test_a_container_is_removed_when_it_hangs(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = tmp_path / "calls"
    text = f'echo "$*" >> {calls}\ncase "$*" in *--version|rm*) exit 0;; esac\nexec sleep 1000\n'
    put_on_path(monkeypatch, tmp_path, "docker", text)
    (tmp_path / "simulation").mkdir()
    done = run_simulation(task(log, image="oarteam/batsim", startup_timeout=0.5), tmp_path / "simulation")
    assert done.exit_status == 3
    started, removed = calls.read_text().splitlines()[-2:]
    assert removed == f"rm --force {started.split()[3]}"


@needs_simgrid
def test_a_program_that_somebody_else_starts(log: Path, tmp_path: Path) -> None:
    """As in containers: files and results go through a folder, the socket is bound here."""
    folder = tmp_path / "exchange"
    folder.mkdir()
    others: list[subprocess.Popen[bytes]] = []

    def start(command: str) -> None:
        words = shlex.split(command)
        assert words[:2] == ["bridge", "simgrid"]
        others.append(subprocess.Popen([*COMMAND, *words[2:]], cwd=folder))

    done = run_simulation(task(log, "simgrid", startup_timeout=60), folder, start=False, waiting=start)
    assert done.fault is None and done.status is None
    assert (folder / "out_schedule.csv").exists()
    assert others[0].wait(30) == 0


def test_when_somebody_elses_program_dies_nobody_knows_its_status() -> None:
    gone: Any = SimpleNamespace(
        outcome=ExitReason.GONE, explain=lambda: "4 jobs are missing", jobs=[], missing=4, messages=21
    )
    given: Any = SimpleNamespace(on="batsim")
    fault = detailed._fault(given, gone, None, None)
    assert fault is not None
    assert fault.what == "Batsim was gone after 21 messages; 4 jobs are missing"
    assert fault.remedy == "Look where it was started; its last words are there."


def test_fewer_nodes_than_hosts_and_more(log: Path) -> None:
    from bridge.experiment.detailed import options
    from bridge.worlds.fast.scheduler_config import SchedulerConfig

    def arguments(on: str, detailed: Detailed, nodes: int = 16) -> list[str]:
        given: Any = SimpleNamespace(on=on, detailed=detailed, hosts=16, nodes=nodes, shares_nodes=False)
        return options(given, "tcp://x")

    assert "--mmax" not in arguments("batsim", Detailed())
    words = arguments("batsim", Detailed(options=("-v", "debug")), 12)
    assert words[words.index("--mmax") + 1] == "12" and words[-2:] == ["-v", "debug"]
    staged = Detailed(fidelity="io_aware", checkpoints=1)
    for on, given, there in (
        ("batsim", staged, True),
        ("simgrid", staged, False),
        ("batsim", Detailed(), False),
    ):
        words = arguments(on, given)
        assert (
            "contexts/guard-size:0" in words
        ) == there  # Batsim 4.2.1 reads behind an array where jobs stage
    experiment = Experiment(str(log), setup=SchedulerConfig(nodes=17), detailed=Detailed("teaching-16"))
    with pytest.raises(BridgeError, match="16 compute hosts only"):
        prepare_experiment(experiment)
    assert prepare_experiment(
        replace(experiment, setup=SchedulerConfig(nodes=12))
    ).prepared.jobs.capacity.tolist() == [12]


def test_main_thread_or_not_signals_are_left_alone() -> None:
    from bridge.base.interrupts import hold_interrupts, interrupts_once

    before = signal.getsignal(signal.SIGTERM)
    with interrupts_once():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        hold_interrupts()
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
    seen = []

    def elsewhere() -> None:
        with interrupts_once():
            seen.append(True)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [True]


def test_batsim_5_is_started_with_its_own_options_and_files(log: Path, tmp_path: Path) -> None:
    """A stand-in with Batsim 5's command line and dialect gets the schedule of the fast world."""
    program = Path(__file__).parents[1] / "worlds" / "batsim" / "batsim5_program.py"
    detailed = Detailed("exact-128", program=f"{sys.executable} {program}")
    loaded = prepare_experiment(Experiment(str(log), on="batsim5", detailed=detailed))
    made, how = run_detailed(loaded, tmp_path)
    assert how.fault is None and how.exit_status == 0 and how.version == "5.0.0-fake"
    assert "forward_profiles_on_simulation_begins" in shlex.join(how.command)
    difference = compare_runs([run_fast(loaded), made]).jobs[0]
    assert (difference.common, difference.differing_starts) == (10, 0)
    assert (tmp_path / "out_jobs.csv").exists() and "./again/out_" in (tmp_path / "again.sh").read_text()
