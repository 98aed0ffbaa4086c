"""Outside commands it is a record of the logger `bridge`, or a line on stderr where nobody logs."""

import logging

import pytest

from bridge.base import compile_notice
from bridge.base.compile_notice import announce, announce_by, log_line


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
