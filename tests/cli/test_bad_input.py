"""Bad input: one clear error that names the place and the remedy, nothing half-written, nothing executed."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest
from cli_commands import LINES, ODD, TINY, file_names, run_bridge, run_refused

from bridge.workload.catalogue import find


def refuses(folder: Path, *words: object) -> str:
    """Refuse a replay into ``out``; nothing may have been written."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    said = run_refused("replay", *words, "--out", "out", "--rst", "out.rst", "--plot")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return said


LOGS = {
    "empty.swf": (b"", "empty.swf: the file is empty\n  Fetch it again, or check what wrote it.\n"),
    "blank.swf": (b"\n\n", "blank.swf: the file holds no job record\n  Fetch it again"),
    "header.swf": (
        b"; MaxProcs: 4\n",
        "header.swf: the log has a header but no job record\n  Fetch it again",
    ),
    "junk.swf": (bytes(range(256)) * 8, "junk.swf:1: binary data, not an SWF log\n  SWF is text"),
    "words.swf": (b"to be or not to be\n", "words.swf:1: field 1 (job_id) is 'to'"),
    "half.swf": (
        (TINY + "6 1050 -1 1\n").encode(),
        "half.swf:7: 4 fields instead of 18: half a line\n  Pass --malformed drop",
    ),
    "middle.swf": (
        TINY.replace(LINES[2], "3 1020 -1 seventy\n").encode(),
        "middle.swf:4: field 4 (run) is 'seventy', which is no number\n  Pass --malformed drop",
    ),
    "none.swf": (
        ("; MaxProcs: 4\n" + "".join(ODD)).encode(),
        "none.swf: no job is left under the loading rule 'standard' "
        "(1 cancelled before it started; 1 larger than the machine (nodes: 5 asked, 4 there))\n"
        "  Try another --protocol",
    ),
    "size.swf": (
        "".join(LINES).encode(),
        "size.swf: the log does not say how many processors the machine has\n  Give --nodes N",
    ),
    "plain.swf.gz": (TINY.encode(), "plain.swf.gz: the name ends in .gz, but the content is not compressed"),
    "empty.csv": (b"\n", "empty.csv: is no CSV table"),
    "columns.csv": (b"a,b\n1,2\n", "columns.csv: no column job_id, submit, procs (or req_procs)\n  Name the"),
    "cell.csv": (b"job_id,submit,procs\n1,soon,2\n", "cell.csv:2: submit is 'soon', which is no number\n"),
    "junk.csv": (b"\xff\xfe\x00\x01", "junk.csv:1: is not UTF-8 text\n"),
    "junk.parquet": (b"PAR1 no", "junk.parquet: is no Parquet file, or a damaged one\n"),
    "junk.json": (b"{", "junk.json"),
    "list.json": (b'{"jobs": 3}', "list.json: is no Batsim workload: it needs a list `jobs`"),
    "log.txt": (TINY.encode(), "log.txt: the name's ending tells no workload format\n  Known endings: .swf"),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_cannot_be_used(folder: Path, name: str) -> None:
    content, said = LOGS[name]
    (folder / name).write_bytes(content)
    assert refuses(folder, name).startswith(said)
    assert run_refused("evaluate", name).startswith(said)


def test_a_log_that_is_not_there(folder: Path) -> None:
    assert refuses(folder, "nosuch").startswith("nosuch: is neither a file nor the name of a workload\n")
    assert refuses(folder, "no/such.swf") == "no/such.swf: no such file\n  Check the path.\n"
    assert refuses(folder, ".") == ".: is a folder, not a log\n  Name a file in it.\n"
    (folder / "log.swf").mkdir()
    assert refuses(folder, "log.swf") == "log.swf: is a folder, not a log\n  Name a file in it.\n"


def test_a_shipped_agent_is_found_wherever_one_stands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert run_refused("evaluate", "zoo/mrsch-s4").startswith(
        "S4.parquet: no such file"
    )  # the log it learnt on


def test_a_log_that_is_not_fetched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_CACHE", str(folder / "cache"))
    assert refuses(folder, "sdsc-sp2") == (
        "sdsc-sp2: the log is in the catalogue, but not on this machine\n"
        "  Run `bridge workload fetch sdsc-sp2`.\n"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_log_that_may_not_be_read(tiny: str, folder: Path) -> None:
    Path(tiny).chmod(0)
    assert run_refused("replay", tiny, "--out", "out").startswith(
        "tiny.swf: cannot be read (Permission denied)"
    )
    assert file_names(folder) == {tiny}


def test_jobs_larger_than_the_machine_are_counted_and_named(folder: Path) -> None:
    large = "".join(ODD[1].replace("7 ", f"{k} ", 1) for k in range(101, 106))
    (folder / "log.swf").write_text(TINY + large)
    told = run_bridge("replay", "log.swf")
    assert told.status == 0
    assert told.err == (
        "bridge: 5 records dropped: larger than the machine (nodes: up to 5 asked, 4 there) "
        "(job 101, 102, 103, …)\n"
    )


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--order", "nope", "order 'nope': unknown order\n  Choose fcfs, "),
        ("--order", "", "order '': neither a named order nor an expression"),
        ("--order", "w +", "order 'w +': neither a named order nor"),
        ("--order", "w + q", "order 'w + q': unknown variable 'q' at column 5"),
        ("--backfill-order", "nope", "order 'nope': unknown order\n"),
        ("--backfill-order", "w", "candidate order 'w': candidates can only"),
        ("--estimator", "oracle", "estimator 'oracle': unknown estimator\n  Choose"),
        ("--estimator", "noisy(-1)", "estimator 'noisy(-1)': the error of"),
        (
            "--estimator",
            "predicted(guess)",
            "estimator 'predicted(guess)': the workload has no column 'guess'\n"
            "  Its columns: none beyond the log fields.\n",
        ),
    ],
)
def test_rules_that_are_none(tiny: str, folder: Path, option: str, text: str, said: str) -> None:
    assert refuses(folder, tiny, option, text).startswith(said)
    if (option, text) == ("--order", "nope"):
        assert run_refused("evaluate", tiny, "--length", 2, option, text).startswith("order 'nope': unknown")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch pwned')",
        "().__class__.__bases__[0].__subclasses__()",
        'exec(\'open("pwned", "w")\')',
        "(lambda: open('pwned', 'w'))()",
        "[open('pwned', 'w') for _ in 'x']",
        "open('pwned', 'w') or w",
        "w if open('pwned', 'w') else t",
        "f\"{open('pwned', 'w')}\"",
        "9**9**9**9",
        "(" * 300 + "w" + ")" * 300,
        "-" * 1500 + "w",
        "+".join(["w"] * 20_000),
    ],
)
def test_an_expression_is_never_executed(tiny: str, folder: Path, text: str) -> None:
    for option in ("--order", "--backfill-order"):
        said = refuses(folder, tiny, option, text)
        assert "order" in said.splitlines()[0]
    assert run_refused("evaluate", tiny, "--length", 2, "--order", text)
    assert file_names(folder) == {tiny}


@pytest.mark.parametrize("text", ["log(w)", "1/(n - 2)", "sqrt(-t)", "exp(t*t)", "0/w*0"])
def test_a_score_that_is_not_finite(tiny: str, folder: Path, text: str) -> None:
    said = refuses(folder, tiny, "--order", text)
    assert said.startswith(f"order {text!r}: the score of job ")
    assert said.endswith("  Guard divisions and logarithms, for example log2(max(n, 2)).\n")
    assert "is not a finite number at time " in said
    assert run_refused("evaluate", tiny, "--length", 5, "--sequences", 1, "--order", text).startswith(
        f"order {text!r}: the score of job "
    )


def parquet(folder: Path, **columns: list[object]) -> str:
    """Write two jobs with further columns as ``log.parquet``, on a machine of 4 nodes and 10 of ``gpus``."""
    import pandas as pd

    from bridge.workload.columns import write_parquet
    from bridge.workload.table import SWF_COLUMNS, Workload

    jobs = pd.DataFrame({name: [-1, -1] for name in SWF_COLUMNS})
    jobs = jobs.assign(job_id=[1, 2], submit=[0, 10], run=[100, 50], req_procs=[2, 4], req_time=[100, 60])
    capacity = {"nodes": 4, "gpus": 10} if "gpus" in columns else {"nodes": 4}
    log = Workload("log", jobs, capacity)
    for name, values in columns.items():  # behind the back of the workload, which refuses some
        log.jobs[name] = values
    write_parquet(log, folder / "log.parquet")
    return "log.parquet"


NAN = float("nan")


@pytest.mark.parametrize("guess", [[90.0, NAN], [90.0, 0.0], [-1.0, 5.0], [90.0, float("inf")], ["soon", 2]])
def test_predictions_that_are_missing_or_impossible(folder: Path, guess: list[object]) -> None:
    words = "column 'guess': predicted lengths must be positive seconds\n"
    words = "the workload has no column 'guess'\n" if "soon" in guess else words
    log = parquet(folder, guess=list(map(str, guess)) if "soon" in guess else guess)
    assert words in refuses(folder, log, "--estimator", "predicted(guess)")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"submit": [0.0, NAN]}, "log.parquet, row 2: submit is empty\n"),
        ({"run": [100.0, float("inf")]}, "log.parquet, row 2: run is inf"),
        (
            {"gpus": [1.0, NAN]},
            "log.parquet: job 2: its 'gpus' is 'nan', which is no whole number\n"
            "  Mend the column 'gpus': 0 if the job needs none.\n",
        ),
        ({"gpus": [1.0, 1.5]}, "log.parquet: job 2: its 'gpus' is '1.5', which is no whole number"),
        ({"gpus": ["two", "one"]}, "log.parquet: job 1: its 'gpus' is 'two'"),
        ({"gpus": [NAN, 1]}, "log.parquet: job 1: its 'gpus' is 'nan'"),
    ],
)
def test_cells_that_are_not_numbers(folder: Path, columns: dict[str, list[object]], said: str) -> None:
    log = parquet(folder, **columns)
    assert refuses(folder, log).startswith(said)
    assert run_refused("evaluate", log, "--length", 1).startswith(said)


def test_a_request_that_is_empty_is_none(folder: Path) -> None:
    told = run_bridge("replay", parquet(folder, req_time=[NAN, 60]))
    assert told.status == 0
    assert "1 empty cells set to -1; 1 no requested time: run time taken" in told.err


def test_options_that_do_not_go_together(tiny: str, folder: Path) -> None:
    assert refuses(folder, tiny, "--protocol", "schedgym", "--backfill", "conservative") == (
        "the protocol schedgym has no conservative backfilling\n  Choose none, easy, or another protocol.\n"
    )
    words = ["--protocol", "schedgym", "--backfill", "easy", "--backfill", "conservative", "--length", 1]
    assert "has no conservative backfilling" in run_refused("evaluate", tiny, *words)
    two = ["--policy", "sjf+easy", "--policy", "fcfs+easy"]
    words = ["replay", "run", "forecast", "state", "serve"]
    for line in (*([word] for word in words), ["batsim", "replay"], ["slurm", "demo"]):
        told = run_bridge(*line, *two)
        assert (told.status, told.out) == (2, "") and "one policy is asked for, not 2" in told.err
    for seconds in ("inf", "nan"):
        assert refuses(folder, tiny, "--threshold", seconds) == (
            f"the options: threshold cannot be {seconds}\n  Write a number above 0.\n"
        )


def test_sequences_that_do_not_fit(tiny: str) -> None:
    for words in (["--length", 6], [], ["--length", 2, "--protocol", "schedgym"]):
        assert run_refused("evaluate", tiny, *words).startswith("5 jobs are too few for sequences of ")
    assert "Let the length be 1 or less, or use a longer log." in run_refused("evaluate", tiny)


def test_output_that_is_in_the_way(tiny: str, folder: Path) -> None:
    (folder / "there").mkdir()
    (folder / "there/x").write_text("mine")
    (folder / "a.rst").write_text("mine")
    os.mkfifo(folder / "pipe")
    before = file_names(folder)
    assert run_refused("replay", tiny, "--out", "there") == (
        "there: the folder already exists\n  Name a new folder, or add --force to replace the run in it.\n"
    )
    assert "there: the folder does not look like a run (it holds x)" in run_refused(
        "replay", tiny, "--out", "there", "--force"
    )
    for more in ([], ["--force"]):
        for name in ("a.rst", "pipe"):
            said = run_refused("replay", tiny, "--out", name, *more)
            assert said == f"{name}: exists and is not a folder\n  Name another folder.\n"
        for name in ("there", "pipe"):
            said = run_refused("replay", tiny, "--rst", name, *more)
            assert said == f"{name}: exists and is not a file\n  Name a new file.\n"
    assert run_refused("replay", tiny, "--rst", "a.rst") == (
        "a.rst: the file already exists\n  Name a new file, or add --force.\n"
    )
    assert file_names(folder) == before
    assert (folder / "there/x").read_text() == (folder / "a.rst").read_text() == "mine"


def test_output_that_has_no_place(tiny: str, folder: Path) -> None:
    assert run_refused("replay", tiny, "--rst", "no/a.rst") == (
        "no/a.rst: its folder does not exist\n  Make the folder first.\n"
    )
    for words in (["--rst", "tiny.swf/a"], ["--out", "tiny.swf/a"], ["--out", "tiny.swf/a/b"]):
        assert f"{words[1]}: {folder}/tiny.swf is not a folder\n" in run_refused("replay", tiny, *words)
    assert file_names(folder) == {tiny}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_where_nobody_may_write(tiny: str, folder: Path) -> None:
    (folder / "locked").mkdir(mode=0o555)
    for words in (["--out", "locked/run"], ["--out", "locked/a/b"], ["--rst", "locked/a.rst"]):
        said = run_refused("replay", tiny, *words)
        assert said.startswith(f"{words[1]}: cannot write: no right to write to {folder}/locked\n")
    assert not file_names(folder / "locked")


def test_no_right_to_write_is_seen_before_the_work(
    tiny: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("replayed")

    monkeypatch.setattr("bridge.experiment.run.run_fast", never)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # noqa: ARG005
    for words in (["--out", "a/b/c"], ["--rst", "a.rst"], ["--plot"]):
        said = run_refused("replay", tiny, *words)
        assert f"cannot write: no right to write to {folder}\n  Choose a writable folder.\n" in said


def test_a_fetched_log_with_a_wrong_checksum(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # put where a download would lie, so that no server is needed
    monkeypatch.setenv("BRIDGE_CACHE", str(folder / "cache"))
    path = folder / "cache/workloads" / find("sdsc-sp2").file
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(TINY.encode()))
    said = run_refused("workload", "fetch", "sdsc-sp2")
    assert said.startswith(f"{path}.bad: this is not the log of the catalogue: SHA-256 of its text is ")
    assert hashlib.sha256(TINY.encode()).hexdigest() in said
    assert "Run `bridge workload fetch sdsc-sp2` again" in said
    assert file_names(path.parent) == {f"{path.name}.bad"}
    assert "not on this machine" in run_refused("replay", "sdsc-sp2")


def test_a_word_that_is_no_text_is_refused_before_the_work(tiny: str) -> None:
    for words in (["--out", "\udcff"], ["--rst", "a\udc80.rst"]):
        told = run_bridge("replay", tiny, *words)
        assert (told.status, told.out) == (2, "")
        assert "is no text in UTF-8; rename the file" in told.err


def test_a_log_that_is_not_there_is_answered_with_those_that_are(tiny: str) -> None:
    assert Path(tiny).exists()
    for command in (
        ["replay", "tin"],
        ["evaluate", "tin"],
        ["run", "--workload", "tin"],
        ["workload", "info", "tin"],
    ):
        said = run_refused(*command)
        assert said.startswith("tin: is neither a file nor the name of a workload")
        assert "Bundled: bundled-128" in said
    assert "Did you mean tiny.swf?" in run_refused("replay", "tiny.sfw")
    (Path("logs")).mkdir()
    Path("logs/mine.swf").touch()
    assert "mine.swf" in run_refused("replay", "logs/mine.sfw")
