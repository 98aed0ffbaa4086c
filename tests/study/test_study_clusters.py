"""Cells of studies on a cluster: keyed by its contents, and as before without one."""

from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.study.cells import Cell, cells_of
from bridge.study.reading import read_studies

#: Keys of the tiny study's cells, as they were when there were no clusters.
BEFORE = [
    ("fed211f0c8a4374b", ""),
    ("801c758e7dafec2a", ""),
    ("a8c7557c57024960", "ffafd98029acdce5"),
    ("bc86c70f87fcce13", "c70ba012fa82209e"),
]
SITE = "[[nodes]]\ncount = {}\n"


def keys(cells: list[Cell]) -> list[tuple[str, str]]:
    return [(cell.key, cell.agent_key) for cell in cells]


def on(file: Path, cluster: Path | str | None) -> list[tuple[str, str]]:
    name = None if cluster is None else str(cluster)
    return keys(cells_of(read_studies(file, cluster=name)[0]))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "site.toml").write_text(SITE.format(128))
    return tmp_path / "site.toml"


def test_keys_hold_the_contents_of_a_cluster_not_its_name(file: Path, site: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    other = tmp_path / "other" / "the-same.toml"
    other.parent.mkdir()
    other.write_text("# the same nodes\n" + SITE.format(128) + "cores = 1\n")
    before = on(file, site)
    assert on(file, other) == before
    other.write_text(SITE.format(129))
    changed = on(file, other)
    assert all(old != new for (old, _), (new, _) in zip(before, changed, strict=True))
    agents = [(old, new) for (_, old), (_, new) in zip(before, changed, strict=True) if old]
    assert len(agents) == 2
    assert all(old != new for old, new in agents)


def test_without_a_cluster_keys_are_as_they_were(file: Path) -> None:
    pytest.importorskip("torch")
    without = on(file, None)
    assert without == keys(cells_of(read_studies(file)[0]))
    assert without == BEFORE


def test_a_row_may_name_its_cluster(file: Path, site: Path) -> None:
    pytest.importorskip("torch")
    text = file.read_text()
    file.write_text(
        text.replace('setup = { order = "sjf" }', f'setup = {{ order = "sjf", cluster = "{site}" }}')
    )
    cells = {cell.row: cell for cell in cells_of(read_studies(file)[0])}
    assert cells["SJF"].setup.cluster == str(site)
    assert (
        cells["SJF"].key
        == dict(zip(["FCFS", "SJF"], [key for key, _ in on(file, site)][:2], strict=True))["SJF"]
    )


def test_the_pool_has_no_cluster(tmp_path: Path, site: Path) -> None:
    (tmp_path / "pool.toml").write_text(
        'title = "Pool"\nlogs = ["pool:synthetic"]\nmetric = "slowdown"\nmore = []\n'
        '[[rows]]\nname = "SAF"\npool = { rule = "saf" }\n'
    )
    with pytest.raises(BridgeError, match="row 'SAF' is of the time-stepped pool, which has no cluster"):
        read_studies(tmp_path / "pool.toml", cluster=str(site))
