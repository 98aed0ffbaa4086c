"""A study on a Ray cluster of three nodes loses a worker and a node, and no cell."""

import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from bridge.base.errors import BridgeError
from bridge.study.cells import Cell
from bridge.study.executor import Ray
from bridge.study.runner import StudyRun
from bridge.study.store import Store
from bridge.study.work import run_cell

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ray = pytest.importorskip("ray", reason="Ray is not installed")


def test_a_worker_and_a_node_are_lost_and_no_cell(broken: list[Cell], tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    store = Store(tmp_path / "store")
    memory = 80 * 2**20
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": memory, "include_dashboard": False},
    )
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=memory) for _ in range(2)]
    killed: list[int] = []
    removed: list[Any] = []
    lines: list[str] = []

    def tick(run: StudyRun) -> None:
        """Kill a worker in its first training, then a node on which another cell runs."""
        claims = [claim for key in run.state.running if (claim := store.claimed(key)) and claim.epochs]
        if not killed and claims:
            killed.append(claims[0].pid)
            os.kill(claims[0].pid, signal.SIGKILL)
        elif killed and not removed and claims and claims[0].pid not in killed:
            node = next((n for n in nodes if _is_below(claims[0].pid, n)), nodes[0])
            removed.append(node)
            cluster.remove_node(node, allow_graceful=False)

    try:
        run = StudyRun(broken, store, lines.append, tick)
        run.look = 0.5
        state = run.carry_out(Ray(store, run.token, broken, cluster.address))
    finally:
        cluster.shutdown()
    assert (len(killed), len(removed)) == (1, 1)
    assert [cell.row for cell in broken if cell.key in state.failed] == ["broken"]
    assert state.done == store.done() == {cell.key for cell in broken if cell.row != "broken"}
    ended = [line for line in lines if "again" not in line]
    assert len(ended) == len(broken), "each cell counts once"
    alone = Store(tmp_path / "alone")
    for cell in broken:
        if cell.key in state.done:
            here, there = run_cell(cell, alone, "here"), store.cell(cell.key)
            assert there is not None
            assert here["tests"] == there["tests"]


def _is_below(pid: int, node: Any) -> bool:
    """Tell whether a process is a worker of a node: a child of its raylet."""
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
    except OSError:
        return False
    return parent in [info.process.pid for infos in node.all_processes.values() for info in infos]


@pytest.mark.parametrize("address", ["{}", "ray://{}"])
def test_a_port_that_nobody_listens_at_is_refused_before_ray_tries_it_again_and_again(
    cells: list[Cell], tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray was asked"))
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        there = f"127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(BridgeError, match="no cluster answers"):
            Ray(Store(tmp_path), "x", cells, address.format(there))


def test_no_cluster_is_one_error(cells: list[Cell], tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="no cluster answers"):
        Ray(Store(tmp_path), "x", cells, "no such:place")
