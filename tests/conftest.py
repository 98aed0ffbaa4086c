"""Fixtures of all tests: real logs (`$BRIDGE_TRACES`) and goldens (`$BRIDGE_GOLDEN`), skipped where unset.

Modules beside this file (`reference`, `small_jobs`, `trained_agents`, …) can be imported by name everywhere.
What takes long to import is imported where it is needed: a small test file has to start at once.
"""

import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

if TYPE_CHECKING:
    from bridge.workload.table import Workload

# Under nohup and in background jobs of a shell children would inherit that these are ignored.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

#: No deadlines: a test must not depend on the machine. Without the compiler every example costs far more.
hypothesis.settings.register_profile("compiled", deadline=None)
hypothesis.settings.register_profile("plain", deadline=None, max_examples=10)
hypothesis.settings.load_profile("plain" if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" else "compiled")


#: Files whose tests one worker runs one after the other: two would start two clusters, or build two wheels.
ONE_WORKER = (
    "tests/worlds/slurm/test_live_slurm.py",
    "tests/worlds/slurm/test_live_preemption.py",
    "tests/test_wheel.py",
)
#: Files with tests of 20 s to 80 s: at the end of all tests, the other workers would wait for the last one.
LONG = (
    "tests/worlds/fast/test_actions_without_compiler.py",
    "tests/test_tutorials.py",
    "tests/worlds/fast/test_cluster_in_time.py",
    "tests/study/test_study_ray.py",
    "tests/test_notebook.py",
    "tests/learn/test_learning_under_slurm.py",
)
_FIRST = (*ONE_WORKER, *LONG)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what takes long come first, and most of all what one worker runs one after the other."""
    places = {file: place for place, file in enumerate(_FIRST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_collection_finish() -> None:
    """Leave all that is loaded out of the search for garbage: 6 % of the processor time of all tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 25, 25)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the tests of such a file to one worker. (xdist's own groups are not seen by pytest 9.2.)"""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file in ONE_WORKER else nodeid

    return Scheduling(config, log)


def _folder(variable: str, holds: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set (a folder of {holds})")
    path = Path(value)
    if not path.is_dir():
        pytest.skip(f"{variable}={value} is no folder")
    return path


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of real logs."""
    return _folder("BRIDGE_TRACES", "SWF logs of the Parallel Workloads Archive")


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of schedules made by other simulators."""
    return _folder("BRIDGE_GOLDEN", "schedules that CQSim and Batsim made")


@pytest.fixture(scope="session")
def vasp_path() -> Path:
    """The logged VASP jobs: in ``$BRIDGE_DATA``, or ``../data`` beside ``$BRIDGE_TRACES``."""
    data, traces = os.environ.get("BRIDGE_DATA"), os.environ.get("BRIDGE_TRACES")
    if not data and not traces:
        pytest.skip("neither BRIDGE_DATA nor BRIDGE_TRACES is set (folder of vasp_jobs.csv.gz)")
    path = (Path(data) if data else Path(str(traces)).parent / "data") / "vasp_jobs.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture(scope="session")
def log(traces: Path) -> "Callable[[str], Workload]":
    """Load a real log by name, once."""
    from bridge.workload.swf import read_swf

    @cache
    def load(name: str) -> "Workload":
        path = traces / f"{name}.swf.gz"
        if not path.exists():
            pytest.skip(f"{path} is not there")
        return read_swf(path)

    return load


def _train(factory: pytest.TempPathFactory, name: str, *words: str) -> Path:
    from trained_agents import train

    return train(factory.mktemp("agents") / name, *words)


@pytest.fixture(scope="session")
def backfiller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent that chooses what is backfilled behind FCFS, of the standard protocol."""
    return _train(tmp_path_factory, "backfiller", "rlbackfilling")


@pytest.fixture(scope="session")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent that rejects picks of SJF and draws its answers, of the standard protocol."""
    return _train(tmp_path_factory, "inspector", "schedinspector")


@pytest.fixture(scope="session")
def schedgym_agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent that has learnt under the protocol schedgym."""
    return _train(tmp_path_factory, "schedgym", "rlbackfilling", "--setting", "paper")


@pytest.fixture(name="look")
def browser(tmp_path: Path) -> Callable[[str], str]:
    """Return what a browser makes of a page: its document after scripts have run."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium (Debian's package chromium) is not installed")

    def look(address: str) -> str:
        words = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        words += [f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=2000", "--dump-dom", address]
        done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=True)
        return done.stdout

    return look
