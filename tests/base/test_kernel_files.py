"""Files of compiled kernels: ours or root's, whole, under their own name, or not there at all."""

import os
from pathlib import Path

import pytest

from bridge.base import kernel_files
from bridge.base.errors import BridgeError

KERNEL = b"machine code"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels-0123" / "play.kernel"
    kernel_files.write(path, KERNEL)
    return path


def test_what_was_written_is_read(file: Path) -> None:
    assert kernel_files.read(file) == KERNEL
    kernel_files.write(file, b"")
    assert kernel_files.read(file) == b""


def test_nobody_else_may_write_it_whatever_the_umask(tmp_path: Path) -> None:
    for umask, mode in ((0o000, 0o644), (0o002, 0o644), (0o077, 0o600)):
        before = os.umask(umask)
        kernel_files.write(tmp_path / "play.kernel", KERNEL)
        os.umask(before)
        assert (tmp_path / "play.kernel").stat().st_mode & 0o777 == mode
        assert kernel_files.read(tmp_path / "play.kernel") == KERNEL


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o620, 0o602])
def test_what_others_can_write_is_not_trusted(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert kernel_files.read(file) is None
    kernel_files.write(file, KERNEL)  # compiled again, it is
    assert kernel_files.read(file) == KERNEL


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_is_another_users_is_not_trusted(file: Path) -> None:
    os.chown(file, 12345, -1)
    assert kernel_files.read(file) is None


def test_what_is_roots_is_trusted_by_all(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert (kernel_files.read(file) == KERNEL) is (file.stat().st_uid == 0)


@pytest.mark.parametrize("length", [0, 1, 31, 32, 40])
def test_what_is_not_whole_is_not_trusted(file: Path, length: int) -> None:
    file.write_bytes(file.read_bytes()[:length])
    assert kernel_files.read(file) is None


def test_what_lies_under_another_name_is_not_trusted(file: Path) -> None:
    other = file.with_name("step.kernel")
    other.write_bytes(file.read_bytes())
    assert kernel_files.read(other) is None
    newer = file.parent.parent / "kernels-4567" / file.name  # compiled from other sources
    newer.parent.mkdir()
    newer.write_bytes(file.read_bytes())
    assert kernel_files.read(newer) is None


def test_what_is_no_plain_file_is_not_trusted(file: Path) -> None:
    real = file.rename(file.parent.parent / "elsewhere")
    file.symlink_to(real)
    assert kernel_files.read(file) is None
    file.unlink()
    os.mkfifo(file)
    assert kernel_files.read(file) is None  # and nobody waits for who writes into it
    file.unlink()
    file.mkdir()
    assert kernel_files.read(file) is None
    with pytest.raises(BridgeError):
        kernel_files.write(file, KERNEL)
