"""What a user may have meant: names of policies, and files beside a missing one."""

from pathlib import Path

import pytest
from cli_commands import run_refused

from bridge.base.suggestions import did_you_mean_file


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("mine.xml", "slurm.conf", "cluster.toml", "sacct.txt", "study.toml"):
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("platform", "check", "min.xml"), "mine.xml"),
        (("run", "--on", "simgrid", "--platform", "mine.xmll", "--workload", "bundled-128"), "mine.xml"),
        (("platform", "check", "sp2-182"), "sp2-128"),
        (("cluster", "import", "slurm.cnf", "--out", "x.toml"), "slurm.conf"),
        (("cluster", "check", "clustr.toml"), "cluster.toml"),
        (("replay", "bundled-128", "--cluster", "teaching-sight"), "teaching-site"),
        (("workload", "import", "sacct", "sact.txt", "--out", "x.csv"), "sacct.txt"),
        (("study", "show", "studdy.toml"), "study.toml"),
        (("replay", "bundled-128", "--policy", "sjf+esay"), "sjf+easy"),
        (("replay", "bundled-128", "--policy", "sfj"), "sjf"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:3]),
)
def test_a_near_name_is_suggested(words: tuple[str, ...], hint: str) -> None:
    assert f"  Did you mean {hint}? " in run_refused(*words)


def test_no_file_is_suggested_where_none_is_near(folder: Path) -> None:
    assert did_you_mean_file(Path("unlike")) == ""
    assert did_you_mean_file(Path("yours.xml")) == ""
    assert did_you_mean_file(Path("nowhere/mine.xml")) == ""
    assert did_you_mean_file(Path("slurm.conf")) == ""  # it is there
    assert did_you_mean_file(folder / "min.xml") == f"Did you mean {folder / 'mine.xml'}? "
