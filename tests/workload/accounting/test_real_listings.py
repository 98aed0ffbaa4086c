"""Listings and configurations as clusters really write them, and what no cluster writes."""

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bridge.base.errors import BridgeError
from bridge.workload.accounting import source
from bridge.workload.accounting.choices import ImportConfig
from bridge.workload.accounting.machine import read_machine
from bridge.workload.accounting.source import import_accounting
from bridge.workload.table import Workload

INPUTS = Path(__file__).parent / "inputs"
HOSTILE = sorted(path.name for path in (INPUTS / "hostile").iterdir())
NO_HEADER = [
    *("jobid", "jobidraw", "cluster", "partition", "account", "group", "gid", "user", "uid"),
    *("submit", "eligible", "start", "end", "elapsed", "exitcode", "state", "nnodes", "ncpus"),
    *("reqcpus", "reqmem", "reqgres", "reqtres", "timelimit", "nodelist", "jobname"),
]


def sacct(name: str, machine: str = "", columns: list[str] | None = None) -> Workload:
    there = read_machine(INPUTS / machine) if machine else None
    return import_accounting(str(INPUTS / name), "sacct", UTC, there, None, columns or ())


def reasons(workload: Workload) -> dict[str, int]:
    """Return how many records were counted, by kind and reason."""
    return {f"{reason.kind}: {why}": reason.count for why, reason in workload.tally.items()}


@pytest.mark.parametrize(
    ("name", "capacity"),
    [
        ("conf-indent.conf", {"nodes": 8, "cores": 48, "main_memory": 12000 << 20}),
        ("conf-indent-comment.conf", {"nodes": 8, "cores": 48, "main_memory": 12000 << 20}),
        (
            "conf-indent-template.conf",
            {"nodes": 2, "cores": 256, "main_memory": 2_000_000 << 20, "gpus": 16},
        ),
        ("conf-procs.conf", {"nodes": 6, "cores": 36, "main_memory": 0}),
        ("conf-include-only/slurm.conf", {"nodes": 4, "cores": 16, "main_memory": 0}),
        (
            "conf-gres-suffix.conf",
            {"nodes": 4, "cores": 32, "main_memory": 0, "gres_bandwidth_lustre": 16 << 30},
        ),
    ],
)
def test_machines(name: str, capacity: dict[str, int]) -> None:
    assert read_machine(INPUTS / name).capacity() == capacity


def test_indented_partitions_keep_their_nodes() -> None:
    partitions = read_machine(INPUTS / "conf-indent.conf").partitions
    assert {name: (len(p.nodes), p.limit) for name, p in partitions.items()} == {
        "main": (4, 86400),
        "big": (4, float("inf")),
    }


@pytest.mark.parametrize("name", ["sacct-alloctres.txt", "sacct-reqtres.txt", "sacct-reqmem.txt"])
def test_memory_that_was_only_asked_for_is_demanded(name: str) -> None:
    workload = sacct(name, "conf-one-node.conf")
    assert workload.capacity == {"nodes": 1, "cores": 16, "main_memory": 64000 << 20}
    assert workload.jobs["main_memory"].tolist() == [60 << 30, 60 << 30]
    assert workload.jobs["wait"].mean() == 1800


def test_generic_resources_of_old_listings() -> None:
    assert sacct("sacct-allocgres.txt").jobs[["gpus", "cores"]].to_numpy().tolist() == [[4, 8]]


def test_a_pipe_in_the_middle_is_placed_by_the_columns_around_it() -> None:
    workload = sacct("sacct-pipe-in-submitline.txt")
    assert workload.jobs[["job_id", "run", "procs", "cores"]].to_numpy().tolist() == [
        [1, 3600, 1, 4],
        [2, 3600, 1, 4],
    ]
    assert workload.jobs["job_name"].tolist() == ["a", "b"]
    assert reasons(workload) == {}


def test_a_user_is_called_by_name() -> None:
    assert sacct("sacct-user-uid.txt").jobs["user_name"].tolist() == ["ann", "ann"]


def test_columns_without_a_line_of_names() -> None:
    workload = sacct("sacct-no-header.txt", columns=NO_HEADER)
    row = workload.jobs.iloc[0]
    assert row[["job_id", "wait", "run", "req_time", "procs", "cores"]].tolist() == [1, 60, 3600, 7200, 1, 4]
    assert row[["user_name", "partition_name", "job_name"]].tolist() == ["ann", "main", "run.sh"]
    assert row["main_memory"] == 4 * 4000 << 20
    assert reasons(workload)["ignored: columns that are not read: group, gid"] == 1
    with pytest.raises(BridgeError, match="no column jobid, state, submit, start"):
        sacct("sacct-no-header.txt")
    with pytest.raises(BridgeError, match=r"--columns names no jobid.*: 'xdmd'\n  Did you mean xdmod\?"):
        sacct("sacct-no-header.txt", columns=["xdmd"])
    with pytest.raises(BridgeError, match=r"--columns names no start: .*\n  Did you mean start\?"):
        sacct("sacct-no-header.txt", columns=["strat" if name == "start" else name for name in NO_HEADER])
    with pytest.raises(BridgeError, match="the first line names the columns"):
        sacct("sacct-reqmem.txt", columns=["JobID", "State", "Submit", "Start"])


def test_tasks_of_arrays_without_their_own_numbers_are_kept() -> None:
    workload = sacct("sacct-array-without-raw.txt")
    assert workload.jobs["slurm_id"].tolist() == ["10", "11_1", "11_2"]
    assert workload.jobs["job_id"].tolist() == [10, 12, 13]
    assert workload.jobs["life"].tolist() == [0, 0, 0]
    assert reasons(workload) == {
        "noted: task without a number of its own (JobIDRaw): it gets a new one": 2,
    }


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("sacct-fixed-width.txt", "columns of fixed width.*\n.*sacct -P"),
        ("jobs.jsonl", r"JSON lines\)\n.*jq -s"),
        ("toplist.json", "is a JSON list.*\n.*jq '{jobs: .}'"),
        ("squeue.json", "what squeue or `scontrol show job` answers.*\n.*sacct --json"),
    ],
)
def test_other_forms_are_named_with_the_remedy(name: str, what: str) -> None:
    with pytest.raises(BridgeError, match=what):
        sacct(name)


@pytest.mark.parametrize("unit", ["nodes", "cores"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_inputs_are_read_and_counted_or_one_clear_error(name: str, unit: str) -> None:
    path = INPUTS / "hostile" / name
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.showwarning", pytest.fail)  # of a cast that loses a number
        try:
            if name.startswith(("sc_", "slurm")):
                assert read_machine(path).capacity()["nodes"] > 0
                return
            form = "jobcomp" if name.startswith("j") else "sacct"
            zone = ZoneInfo("Europe/Paris")
            workload = import_accounting(str(path), form, zone, None, ImportConfig(unit=unit))  # type: ignore[arg-type]
        except BridgeError as error:
            assert str(path) in str(error)
        else:
            numbers = workload.jobs.select_dtypes("number")
            assert (numbers >= -1).all().all()


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("sacct-huge-mem.txt", "an amount of memory does not fit 64 bits"),
        ("sacct-huge-cpu.txt", "no amount of cpu"),
        ("sacct-year.txt", "milli- or microseconds"),
        ("sacct-year.json", "milli- or microseconds"),
    ],
)
def test_a_listing_of_nothing_but_impossible_numbers(name: str, what: str) -> None:
    with pytest.raises(BridgeError, match=what):
        sacct(f"hostile/{name}")


def test_a_record_with_an_impossible_amount_is_counted() -> None:
    path = INPUTS / "hostile" / "jobcomp-huge-tres.txt"
    workload = import_accounting(str(path), "jobcomp", UTC)
    assert len(workload.jobs) == 6
    assert reasons(workload)["dropped: no record (examples are lines)"] == 1


@pytest.mark.parametrize("name", ["slurm-badrange.conf", "slurm-nodeset.conf"])
def test_a_broken_range_names_its_line(name: str) -> None:
    line = {"slurm-badrange.conf": 8, "slurm-nodeset.conf": 2}[name]
    with pytest.raises(BridgeError, match=rf"{name}:{line}: .*\n  Mend the line"):
        read_machine(INPUTS / "hostile" / name)


class _Endless:
    """A file that never ends a line."""

    def __init__(self) -> None:
        self.read_so_far = 0

    def read(self, size: int) -> bytes:
        self.read_so_far += size
        return b"x" * size


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    endless = _Endless()
    blocks: Iterator[bytes] = source._blocks(endless, "list")  # type: ignore[arg-type]
    with pytest.raises(BridgeError, match="list:1: the line is longer than 16,777,216 bytes"):
        for _ in blocks:
            pass
    assert endless.read_so_far <= 17 << 20
