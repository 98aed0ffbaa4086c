"""Outside commands it is a record of the logger `bridge`, or a line on stderr where nobody logs."""

import logging
import sys
from collections.abc import Iterator

import pytest

from bridge.base import compile_notice
from bridge.base.compile_notice import CompileCounter, announce, announce_by, log_line


@pytest.fixture
def logger(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    ours = logging.getLogger("bridge")
    monkeypatch.setattr(ours, "level", logging.NOTSET)
    return ours


@pytest.mark.parametrize(
    ("level", "err"), [("NOTSET", "bridge: compiling…\n"), ("INFO", "bridge: compiling…\n"), ("WARNING", "")]
)
def test_without_logging_it_is_a_line_on_stderr(
    level: str,
    err: str,
    logger: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(logging.Logger, "hasHandlers", lambda _: False)  # pytest has some
    logger.setLevel(level)
    log_line("compiling…")
    assert capsys.readouterr() == ("", err)


@pytest.mark.parametrize(
    ("level", "records"), [("INFO", [("bridge", "INFO", "compiling…")]), ("WARNING", [])]
)
def test_a_program_that_logs_gets_a_record_and_no_line(
    level: str,
    records: list[tuple[str, str, str]],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with caplog.at_level(level, "bridge"):
        log_line("compiling…")
    assert [(one.name, one.levelname, one.getMessage()) for one in caplog.records] == records
    assert capsys.readouterr() == ("", "")


def test_it_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_say", "_is_announced"):
        monkeypatch.setattr(compile_notice, name, getattr(compile_notice, name))
    texts: list[str] = []
    announce_by(texts.append)
    announce("the scheduler")
    announce("another part")
    assert texts == ["the scheduler"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by six seconds at each look."""
    seconds: Iterator[int] = iter(range(0, 1000, 6))
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))


def count() -> None:
    """Three functions, each within the one before; then one more for another kernel."""
    counter = CompileCounter()
    for done, over in ((0, False), (0, False), (1, False), (2, False), (3, True), (3, False), (4, True)):
        counter(done, over)


@pytest.mark.usefixtures("clock")
def test_a_program_is_told_now_and_then_how_far_it_is(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "bridge"):
        count()
    lines = ["1 function compiled, 18 s", "3 functions compiled, 36 s"]
    assert [one.getMessage() for one in caplog.records] == lines


@pytest.mark.usefixtures("clock")
def test_on_a_terminal_it_counts_in_place_and_leaves_nothing(
    logger: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(logging.Logger, "hasHandlers", lambda _: False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    count()
    texts = [text for text in capsys.readouterr().err.split("\r") if text]
    assert texts[:3] == [
        "0 functions compiled, 6 s",
        "0 functions compiled, 12 s",
        "1 function compiled, 18 s",
    ]
    assert (texts[-2], texts[-1].strip()) == ("3 functions compiled, 36 s", "")
    logger.setLevel("WARNING")
    count()
    assert capsys.readouterr().err == ""
