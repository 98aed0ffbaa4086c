"""Downloads a catalogue log: resumed if it was broken off, verified, and put in place only then."""

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.base.version import __version__
from bridge.workload.catalogue import Log, cache_folder

CHUNK = 1 << 16
#: Seconds without a byte after which the server counts as gone.
TIMEOUT = 30.0

#: Called with the bytes that are there and the total, None if the server does not say.
DownloadProgress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class FetchResult:
    """A log that is in place, the digest of its decompressed text, bytes downloaded now, and resumed."""

    path: Path
    sha256: str
    downloaded: int
    resumed: int


def fetch(
    log: Log, *, folder: Path | None = None, again: bool = False, progress: DownloadProgress | None = None
) -> FetchResult:
    """Download a log into the cache or a folder, or verify the one that is there (not `again`).

    A download that breaks off leaves ``FILE.part``, from which the next one goes on. A file whose content is
    not the catalogue's is set aside as ``FILE.bad``. BridgeError: either of the two, or nothing answers.
    """
    folder = folder or cache_folder()
    path, part = folder / log.file, folder / f"{log.file}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists() and not again:
            return FetchResult(path, _verify(log, path, path), 0, 0)
        progress = progress or (lambda _done, _total: None)
        resumed, size = _download(log, part, path, progress)
        try:
            digest = _verify(log, part, path)
        except BridgeError:
            if not resumed:
                raise
            # The old part may have been of an older file: once more, from the start.
            resumed, size = _download(log, part, path, progress)
            digest = _verify(log, part, path)
        part.replace(path)
    except OSError as error:
        what, where = f"cannot be written ({error.strerror})", str(error.filename or folder)
        remedy = "Set BRIDGE_CACHE to a folder in which you may write."
        raise BridgeError(what, where=where, remedy=remedy) from error
    return FetchResult(path, digest, size - resumed, resumed)


def _download(log: Log, part: Path, path: Path, progress: DownloadProgress) -> tuple[int, int]:
    """Complete the partial file; return the bytes that were there before, and all bytes."""
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(log.url, headers={"User-Agent": f"hpc-bridge/{__version__}"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            begins = (answer.headers.get("Content-Range") or "").startswith(f"bytes {start}-")
            if answer.status != http.client.PARTIAL_CONTENT or not begins:
                start = 0  # the server sends the whole, not the rest
            length = answer.headers.get("Content-Length")
            total = start + int(length) if length and length.isdigit() else None
            done = start
            progress(done, total)
            with part.open("ab" if start else "wb") as file:
                while block := answer.read(CHUNK):
                    file.write(block)
                    done += len(block)
                    progress(done, total)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            # All of it was there, or it is of another file: the checksum will tell.
            return start, start
        raise _unreachable(log, path, f"the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _unreachable(log, path, str(error.reason)) from error
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise _broken(log, part, str(error) or type(error).__name__) from error
    if total is not None and done < total:
        raise _broken(log, part, f"{done:,} of {total:,} bytes arrived")
    return start, done


def _unreachable(log: Log, path: Path, why: str) -> BridgeError:
    remedy = "Check the network (a proxy is taken from https_proxy), or get the file another way and put"
    remedy += f" it at {path}; then run `bridge workload fetch {log.name}` again to verify it."
    return BridgeError(f"cannot download {log.name}: {why}", where=log.url, remedy=remedy)


def _broken(log: Log, part: Path, why: str) -> BridgeError:
    remedy = f"Run `bridge workload fetch {log.name}` again: it goes on from {part}."
    return BridgeError(f"the connection broke off: {why}", where=log.url, remedy=remedy)


def _verify(log: Log, file: Path, path: Path) -> str:
    """Return the SHA-256 of the file's decompressed text; set the file aside if it is not the log's."""
    digest, size, why = hashlib.sha256(), 0, ""
    try:
        with files.open_as(file, files.compression(path)) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
                size += len(block)
    except (BridgeError, OSError) as error:
        why = f"it is not whole or not gzip ({getattr(error, 'what', error)})"
    actual_digest = digest.hexdigest()
    if not why and log.sha256 is not None and actual_digest != log.sha256:
        why = (
            f"SHA-256 of its text is {actual_digest} ({size:,} bytes), not {log.sha256} ({log.size:,} bytes)"
        )
    if not why:
        return actual_digest
    bad = path.with_name(f"{path.name}.bad")
    file.replace(bad)
    remedy = f"It was set aside under this name. Run `bridge workload fetch {log.name}` again; if that"
    remedy += " does not help, the archive has changed the log."
    raise BridgeError(f"this is not the log of the catalogue: {why}", where=str(bad), remedy=remedy)
