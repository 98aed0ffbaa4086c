"""Downloads, against a server on this machine: whole, resumed, broken off, wrong, and not at all."""

import gzip
import hashlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from workload_strategies import record

from bridge.base.errors import BridgeError
from bridge.workload.catalogue import Log
from bridge.workload.fetch import fetch

TEXT = "; MaxProcs: 8\n" + "".join(f"{record(n, n, n * 7919 % 997, n % 8)}\n" for n in range(1, 5000))
PACKED, OTHER = (gzip.compress(text, mtime=0) for text in (TEXT.encode(), b"another log"))


@dataclass
class Archive:
    """A web server with one file, and how it behaves."""

    url: str = ""
    content: bytes = PACKED
    ranges: bool = True
    send: int | None = None
    asked: list[str | None] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        self.asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.ranges else 0
        if handler.path != "/log.swf.gz":
            handler.send_error(404)
        elif start >= len(self.content):
            handler.send_error(416)
        else:
            handler.send_response(206 if start else 200)
            if start:
                handler.send_header(
                    "Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}"
                )
            handler.send_header("Content-Length", str(len(self.content) - start))
            handler.end_headers()
            handler.wfile.write(self.content[start:][: self.send])


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    """Serve one log until the test ends."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    state = Archive()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.answer(self)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/log.swf.gz"
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def entry(archive: Archive) -> Log:
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    return Log("log", "a log", archive.url, "cite", "terms", sha256=digest, size=len(TEXT))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_download(tmp_path: Path, archive: Archive) -> None:
    told: list[tuple[int, int | None]] = []
    got = fetch(entry(archive), folder=tmp_path / "new", progress=lambda *step: told.append(step))
    assert got.path.read_bytes() == PACKED
    assert (got.downloaded, got.resumed, got.sha256) == (len(PACKED), 0, entry(archive).sha256)
    assert names(tmp_path / "new") == ["log.swf.gz"]
    assert (told[0], told[-1]) == ((0, len(PACKED)), (len(PACKED), len(PACKED)))

    assert fetch(entry(archive), folder=tmp_path / "new").downloaded == 0
    assert archive.asked == [None]
    assert fetch(entry(archive), folder=tmp_path / "new", again=True).downloaded == len(PACKED)


def test_a_download_that_breaks_off_is_resumed(tmp_path: Path, archive: Archive) -> None:
    archive.send = 1000
    with pytest.raises(BridgeError, match=rf"1,000 of {len(PACKED):,} bytes arrived") as caught:
        fetch(entry(archive), folder=tmp_path)
    assert f"it goes on from {tmp_path / 'log.swf.gz.part'}" in caught.value.remedy
    assert names(tmp_path) == ["log.swf.gz.part"]
    archive.send = None
    got = fetch(entry(archive), folder=tmp_path)
    assert (got.resumed, got.downloaded) == (1000, len(PACKED) - 1000)
    assert archive.asked == [None, "bytes=1000-"]
    assert got.path.read_bytes() == PACKED
    assert names(tmp_path) == ["log.swf.gz"]


def test_a_server_that_cannot_resume_sends_all(tmp_path: Path, archive: Archive) -> None:
    (tmp_path / "log.swf.gz.part").write_bytes(b"old")
    archive.ranges = False
    got = fetch(entry(archive), folder=tmp_path)
    assert (got.resumed, got.downloaded, got.path.read_bytes()) == (0, len(PACKED), PACKED)


def test_a_part_that_is_whole_already(tmp_path: Path, archive: Archive) -> None:
    (tmp_path / "log.swf.gz.part").write_bytes(PACKED)
    got = fetch(entry(archive), folder=tmp_path)
    assert (got.resumed, got.downloaded, got.path.read_bytes()) == (len(PACKED), 0, PACKED)


def test_a_part_of_another_file_is_fetched_anew(tmp_path: Path, archive: Archive) -> None:
    (tmp_path / "log.swf.gz.part").write_bytes(b"x" * 500)
    got = fetch(entry(archive), folder=tmp_path)
    assert archive.asked == ["bytes=500-", None]
    assert got.path.read_bytes() == PACKED


def test_the_checksum_is_of_the_text_however_it_is_packed(tmp_path: Path, archive: Archive) -> None:
    archive.content = gzip.compress(TEXT.encode(), compresslevel=1, mtime=12345)
    assert archive.content != PACKED
    assert fetch(entry(archive), folder=tmp_path).sha256 == entry(archive).sha256


@pytest.mark.parametrize("content", [OTHER, b"<html>gone</html>", PACKED[:-20]])
def test_a_wrong_content_is_set_aside(tmp_path: Path, archive: Archive, content: bytes) -> None:
    archive.content = content
    with pytest.raises(BridgeError, match="not the log of the catalogue") as caught:
        fetch(entry(archive), folder=tmp_path)
    assert caught.value.where == str(tmp_path / "log.swf.gz.bad")
    assert names(tmp_path) == ["log.swf.gz.bad"]
    assert (tmp_path / "log.swf.gz.bad").read_bytes() == content


def test_a_file_put_there_by_hand_is_verified(tmp_path: Path, archive: Archive) -> None:
    path = tmp_path / "log.swf.gz"
    path.write_bytes(PACKED)
    assert fetch(entry(archive), folder=tmp_path).downloaded == 0
    path.write_bytes(gzip.compress(b"another log"))
    with pytest.raises(BridgeError, match="not the log of the catalogue"):
        fetch(entry(archive), folder=tmp_path)
    assert archive.asked == []
    assert names(tmp_path) == ["log.swf.gz.bad"]


def test_an_unverified_log_must_at_least_be_whole(tmp_path: Path, archive: Archive) -> None:
    log = replace(entry(archive), sha256=None, size=None)
    assert fetch(log, folder=tmp_path).sha256 == entry(archive).sha256
    archive.content = PACKED[:-20]
    with pytest.raises(BridgeError, match="not whole or not gzip"):
        fetch(log, folder=tmp_path, again=True)


def test_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        log = Log("log", "a log", f"http://127.0.0.1:{free.getsockname()[1]}/log.swf.gz", "cite", "terms")
        with pytest.raises(BridgeError, match=r"cannot download log: .*refused") as caught:
            fetch(log, folder=tmp_path)
    assert caught.value.where == log.url
    assert f"put it at {tmp_path / 'log.swf.gz'}" in caught.value.remedy
    assert names(tmp_path) == []


def test_a_log_that_is_not_there(tmp_path: Path, archive: Archive) -> None:
    log = replace(entry(archive), url=archive.url.replace("log.swf", "lost.swf"))
    with pytest.raises(BridgeError, match="the server answered 404"):
        fetch(log, folder=tmp_path)


def test_a_cache_that_cannot_be_written(tmp_path: Path, archive: Archive) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BridgeError, match="cannot be written") as caught:
        fetch(entry(archive), folder=tmp_path / "file")
    assert "BRIDGE_CACHE" in caught.value.remedy
