"""Starting `bridge`: help, version and wrong words cost nothing and import nothing heavy."""

from unittest.mock import Mock

import pytest
from cli_commands import run_bridge, run_ok
from subprocess_python import run_python

import bridge
from bridge.cli.main import COMMANDS, main

#: Commands with a help of their own; `simgrid` asks another interpreter for it.
OURS = [name for name in COMMANDS if name != "simgrid"]
HEAVY = ("numba", "pandas", "pyarrow", "matplotlib", "scipy", "networkx", "zmq", "torch", "rich")

#: Runs main() on each line of words, then names the heavy modules that this imported.
PROBE = f"""\
import sys
from bridge.cli.main import main
statuses = {{main(line.split()) for line in sys.argv[1:]}}
print("loaded:", *sorted(set(sys.modules) & set({HEAVY!r})))
sys.exit(statuses != {{0}})
"""


def probed(*lines: str) -> str:
    """Run `bridge LINE` for every line in one new process; return what was printed and then loaded."""
    done = run_python(PROBE, *lines)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_help_and_version_import_nothing_heavy() -> None:
    out = probed("--help", "--version", "-h", *(f"{name} --help" for name in OURS))
    for name in OURS:
        assert f"Usage: bridge {name} " in out
    assert out.splitlines()[-1] == "loaded:"


def test_the_probe_sees_heavy_modules() -> None:
    assert probed("doctor --json").splitlines()[-1].startswith("loaded: numba")


def test_a_replay_with_kept_kernels_loads_neither_scipy_nor_the_detailed_world(tiny: str) -> None:
    code = (
        "import sys; from bridge.cli.main import main; status = main(sys.argv[1:]);"
        "print({name for name in sys.modules"
        " if name.startswith(('scipy.linalg', 'bridge.worlds.batsim', 'bridge.platform'))});"
        "sys.exit(status)"
    )
    for _ in range(2):  # the first one may compile
        done = run_python(code, "replay", tiny)
        assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "set()"


def test_help_lists_every_command_with_its_line() -> None:
    out = run_ok("--help")
    for name, line in COMMANDS.items():
        assert f"  {name} " in out
        assert line in " ".join(out.split())


@pytest.mark.parametrize("name", OURS)
def test_help_of_each_command(name: str) -> None:
    out = run_ok(name, "--help")
    assert out.startswith(f"Usage: bridge {name} ")
    assert out == run_ok(name, "-h")


def test_version() -> None:
    assert run_ok("--version") == f"bridge, version {bridge.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["replay"], "Give LOG or --from-audit FILE."),
        (["replay", "--from-audit", "a", "--order", "sjf"], "--from-audit has no --order"),
        (["decide", "sjf", "--slurm", "--partition", "p", "--strict"], "--slurm has no --strict"),
        (["run", "--workload", "bundled-128", "--exchange", "x"], "--exchange needs --no-start"),
        (["run", "--workload", "bundled-128", "--socket", "tcp://*:9"], "the fast world has no --socket"),
        (["compare", ".", ".", "--nodes", "3"], "--nodes is for a bare jobs file"),
        (["replay", "a.swf", "b.swf"], "Got unexpected extra argument (b.swf)"),
        (["replay", "a.swf", "--backfill", "hard"], "'hard' is not one of 'none', 'easy', 'conservative'"),
        (["replay", "a.swf", "--protocol", "x"], "'x' is not one of 'standard', 'cqsim', 'schedgym'"),
        (["replay", "a.swf", "--first", "0"], "0 is not in the range x>=1"),
        (["replay", "a.swf", "--nodes", "many"], "'many' is not a valid integer"),
        (["replay", "a.swf", "--threshold", "0"], "0.0 is not in the range x>0"),
        (["replay", "a.swf", "--nosuch"], "No such option"),
        (["evaluate", "a.swf", "--length", "0"], "0 is not in the range x>=1"),
        (["evaluate", "a.swf", "--sequences", "-1"], "-1 is not in the range x>=1"),
        (["evaluate", "a.swf", "--metric", "nope"], "'nope' is not one of 'bsld'"),
        (["evaluate", "a.swf", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["why", "run"], "Missing argument 'JOB'"),
        (["compare"], "Missing argument 'RUN RUN"),
    ],
)
def test_wrong_words_end_with_status_2_and_the_usage(words: list[str], said: str) -> None:
    told = run_bridge(*words)
    assert (told.status, told.out) == (2, "")
    assert said in told.err
    assert "Usage: bridge" in told.err


def test_no_words_show_the_help() -> None:
    told = run_bridge()
    assert told.status == 2
    assert "Usage: bridge [OPTIONS] COMMAND" in told.out + told.err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device", "/somewhere"), "/somewhere: No space left on device"),
        (MemoryError(), "out of memory"),
    ],
    ids=["full", "large"],
)
def test_an_error_of_the_machine_is_one_line(
    tiny: str, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    monkeypatch.setattr("bridge.experiment.run.run_fast", Mock(side_effect=error))
    told = run_bridge("replay", tiny)
    assert (told.status, told.err) == (1, f"bridge: error: {said}\n")


def test_ctrl_c_that_the_compiler_hides_is_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    def compiling(**_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("no compiled object yet")

    assert main([], compiling) == 130
    assert capsys.readouterr() == ("", "bridge: interrupted\n")


def test_an_error_of_ours_is_not_hidden() -> None:
    def wrong(**_: object) -> None:
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        main([], wrong)
