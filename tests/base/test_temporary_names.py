"""What is written takes its place at once; what a killed process has left is removed by the next one."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.base import files
from bridge.base.files import atomic_write, put_in_place, temporary_folder


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for what was left as a process does that has just started."""
    monkeypatch.setattr(files, "_looked_at", set())


KILLED = """
import os, signal, sys
from pathlib import Path
from bridge.base.files import atomic_write, temporary_folder
place = Path(sys.argv[1])
with temporary_folder(place / "run") as folder, atomic_write(place / "cell.json") as out:
    (folder / "jobs.csv").write_text("half")
    out.write(b"half")
    out.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_has_left_is_removed_by_the_next(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert [name.rpartition(".")[2] for name in left] == ["bridge-tmp"] * 2
    with atomic_write(tmp_path / "another.json") as out:
        out.write(b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["another.json"]


def test_what_is_in_use_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_folder(tmp_path / "run") as folder, atomic_write(tmp_path / "one") as one:
        monkeypatch.setattr(files, "_looked_at", set())
        with atomic_write(tmp_path / "two") as two:
            assert len(list(tmp_path.glob(".*.bridge-tmp"))) == 3
            two.write(b"2")
        assert folder.is_dir()
        one.write(b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_is_another_users_stays(tmp_path: Path) -> None:
    theirs = tmp_path / ".one.x.bridge-tmp"
    theirs.write_text("")
    os.chown(theirs, 12345, -1)
    with atomic_write(tmp_path / "one"):
        assert theirs.exists()


def test_a_link_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / ".one.x.bridge-tmp").symlink_to(tmp_path / "mine")
    with atomic_write(tmp_path / "one"):
        pass
    assert (tmp_path / "mine").is_dir()


def test_who_was_taken_for_a_left_one_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may remove a file between the moments when it is made and when it is locked."""
    lock, removed = fcntl.flock, []

    def first_remove(descriptor: int, how: int) -> None:
        if not removed:
            removed.extend(tmp_path.glob(".one.*"))
            removed[0].unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", first_remove)
    with atomic_write(tmp_path / "one") as out:
        out.write(b"whole")
    assert (tmp_path / "one").read_bytes() == b"whole"
    assert len(removed) == 1


def test_where_nothing_can_be_locked_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(_descriptor: int, _how: int) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / ".other.x.bridge-tmp").write_text("")
    with atomic_write(tmp_path / "one") as out:
        out.write(b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.x.bridge-tmp", "one"]


def folders(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "run", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    return old, new


def test_a_folder_takes_the_place_of_another_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = folders(tmp_path)
    monkeypatch.delattr(Path, "rename")
    monkeypatch.delattr(Path, "replace")
    put_in_place(new, old)
    assert ((old / "name").read_text(), (new / "name").read_text()) == ("new", "run")


def test_where_names_cannot_be_exchanged_the_old_one_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = folders(tmp_path)
    monkeypatch.setattr(files, "_exchanged", lambda _one, _other: False)
    put_in_place(new, old)
    assert ((old / "name").read_text(), (new / "name").read_text()) == ("new", "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "run"]
