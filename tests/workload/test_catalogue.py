"""The catalogue and the places where a workload is found by name."""

import gzip
import hashlib
from pathlib import Path

import pytest
from workload_strategies import record

from bridge.base.cache import cache_root
from bridge.base.errors import BridgeError
from bridge.workload.catalogue import bundled, cache_folder, catalogue, find, resolve
from bridge.workload.lublin import generate, lublin_1
from bridge.workload.statistics import offered_load
from bridge.workload.swf import read_swf


def test_every_entry_is_complete() -> None:
    for name, log in catalogue().items():
        assert log.name == name == name.lower()
        assert log.url.startswith("https://www.cs.huji.ac.il/labs/parallel/workload/l_")
        assert log.file.endswith(".swf.gz")
        assert log.title
        assert "Parallel Workloads Archive" in log.citation
        assert log.terms
        known = (log.sha256, log.size, log.jobs, log.nodes)
        assert all(value is None for value in known) or (
            log.verified and len(log.sha256 or "") == 64 and log.provided_by and min(known[1:]) > 0
        )
    assert len({log.file for log in catalogue().values()}) == len(catalogue())


@pytest.mark.parametrize("name", ["sdsc-sp2", "ctc-sp2", "hpc2n", "sdsc-ds", "llnl-atlas", "cea-curie"])
def test_checksums_sizes_and_counts_are_those_of_the_logs(traces: Path, name: str) -> None:
    log = find(name)
    path = traces / log.file
    text = gzip.decompress(path.read_bytes())
    assert (hashlib.sha256(text).hexdigest(), len(text)) == (log.sha256, log.size)
    read = read_swf(path)
    assert (len(read.jobs), read.capacity["nodes"]) == (log.jobs, log.nodes)


def test_names_of_logs_and_files() -> None:
    assert find("SDSC-SP2").name == "sdsc-sp2"
    assert find("SDSC-SP2-1998-4.2-cln").name == "sdsc-sp2"
    assert find("sdsc-sp2-1998-4.2-cln.swf.gz").name == "sdsc-sp2"
    with pytest.raises(BridgeError, match=r"Did you mean .*sdsc-sp2"):
        find("sdsc_sp2")


def test_the_cache_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.workload.catalogue.cache_root", cache_root)
    monkeypatch.setenv("BRIDGE_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine" / "workloads"
    monkeypatch.delenv("BRIDGE_CACHE")
    assert cache_folder().parts[-2:] == ("bridge", "workloads")


def test_a_path_a_bundled_name_and_a_fetched_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hpc2n").write_text("x")
    assert resolve("hpc2n") == Path("hpc2n")
    (tmp_path / "hpc2n").unlink()
    with pytest.raises(BridgeError, match="Run `bridge workload fetch hpc2n`"):
        resolve("hpc2n")
    fetched = cache_folder() / find("hpc2n").file
    fetched.parent.mkdir(parents=True)
    fetched.write_text(record(1, 0, 1, 1))
    assert resolve("hpc2n") == fetched
    assert resolve("bundled-128") == bundled()["bundled-128"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("nowhere/hpc2n", "no such file"),
        ("a.csv", "no such file"),
        ("hpc3n", r"Did you mean hpc2n\?.*Bundled: "),
    ],
)
def test_what_is_nowhere(name: str, what: str) -> None:
    with pytest.raises(BridgeError, match=what):
        resolve(name)


def test_the_bundled_workload_is_what_its_readme_says() -> None:
    path = bundled()["bundled-128"]
    assert path.stat().st_size < 200_000
    assert path.read_bytes()[4:8] == b"\0\0\0\0"
    log = read_swf(path)
    assert log.capacity == {"nodes": 128}
    assert dict(log.tally) == {}
    jobs = log.jobs
    assert len(jobs) == 3000
    assert (jobs["run"] > 0).all()
    assert (jobs["req_time"] >= jobs["run"]).all()
    assert offered_load(log) == pytest.approx(0.9, abs=1e-4)
    assert jobs["user"].nunique() == 40
    made = generate(lublin_1(128), 3000, seed=1).jobs
    assert jobs[["run", "procs"]].equals(made[["run", "procs"]])
