"""The one way into files and out: read within limits or refused with the place, written whole or not at all.

Whatever a file holds, a reader here raises nothing but `BridgeError`, which names the file and, where there
is one, the line. Compression is seen from the suffix. Nothing that is read is ever executed.
"""

import bz2
import errno
import fcntl
import gzip
import io
import json
import lzma
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from bridge.base import jsontext
from bridge.base.errors import BridgeError
from bridge.base.suggestions import did_you_mean_file

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.parquet as pq

#: Suffix -> the bytes with which such a file begins.
MAGIC: dict[str, bytes] = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00"}
#: A file that is read as one text, in bytes, at most.
MOST_TEXT = 1 << 30
#: A line of a log, in bytes, at most.
MOST_LINE = 1 << 20
#: A compressed file unpacks to at most so many bytes, or so many times its size: beyond both it is a bomb.
MOST_UNPACKED, MOST_RATIO = 1 << 26, 250
#: Cells of a Parquet table, at most: a few kilobytes can claim any number of rows.
MOST_CELLS = 1 << 31
#: Rows of a Parquet table that are read at a time.
_BATCH = 1 << 17
#: The end of temporary names, and the folders in which those of killed processes were looked for.
_LEFT = ".bridge-tmp"
_looked_at: set[Path] = set()
#: Of Linux's renameat2: names are from the working folder on; exchange them.
_HERE, _EXCHANGE = -100, 2
#: What the decompressors raise on damaged or cut-off input.
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


_WRITTEN = "Check what wrote it."


def _error(path: Path, what: str, remedy: str = _WRITTEN) -> BridgeError:
    return BridgeError(what, where=str(path), remedy=remedy)


def compression(path: Path) -> str:
    """Return the compression suffix of a path (``.gz``, ``.bz2``, ``.xz``), or an empty string."""
    suffix = path.suffix.lower()
    return suffix if suffix in MAGIC else ""


def stem(path: Path) -> str:
    """Return the file's name without its format and compression suffixes: ``a/b.swf.gz`` -> ``b``.

    Dots inside the name, as in ``SDSC-SP2-1998-4.2-cln.swf.gz``, are kept.
    """
    name = path.name
    for suffix in (*MAGIC, ".swf", ".csv", ".parquet", ".json"):
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            name = name[: -len(suffix)]
    return name


class _Guarded(io.RawIOBase):
    """The bytes of a file, counted: where they break off, or a line of them is too long, is an error.

    `most`, `longest`: bytes that the file may have, and a line of it; 0 = any number.
    """

    def __init__(self, path: Path, source: IO[bytes], most: int = 0, longest: int = 0) -> None:
        self._path, self._source, self._most, self._longest = path, source, most, longest
        self._bytes, self._line, self._open = 0, 1, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._source.read(len(buffer))
        except _DAMAGED as error:
            what = "the compressed data ends early or is damaged"
            remedy = "The download or copy is not whole: fetch the file again."
            raise BridgeError(what, where=f"{self._path}:{self._line}", remedy=remedy) from error
        except OSError as error:
            raise BridgeError(f"cannot be read ({error.strerror or error})", where=str(self._path)) from error
        self._bytes += len(data)
        if self._most:
            self._line += data.count(b"\n")
            if self._bytes > self._most:
                what = f"unpacks to more than {self._most:,} bytes, over {MOST_RATIO} times its size"
                remedy = "No log does: check what made it. If it is right, unpack it first."
                raise _error(self._path, what, remedy)
        if self._longest:
            self._refuse_long_line(data)
        buffer[: len(data)] = data
        return len(data)

    def _refuse_long_line(self, data: bytes) -> None:
        end = data.rfind(b"\n")
        self._open = len(data) - end - 1 if end >= 0 else self._open + len(data)
        if self._open > self._longest:
            what = f"the line of byte {self._bytes - self._open:,} on is longer than {self._longest:,} bytes"
            remedy = "A record is one short line: check that this is the file you mean."
            raise _error(self._path, what, remedy)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


def open_read(path: Path, longest: int = 0) -> IO[bytes]:
    """Open a plain or compressed file for reading its decompressed bytes.

    `longest`: bytes that a line may have; 0 = any number. Raises BridgeError: there is no such file, it is
    empty or unreadable, or its name and its content disagree about the compression; while reading: it is
    damaged, unpacks without end, or has a line that is too long.
    """
    try:
        with path.open("rb") as file:
            begin = file.read(8)
    except FileNotFoundError:
        raise _error(path, "no such file", f"{did_you_mean_file(path)}Check the path.") from None
    except IsADirectoryError:
        raise _error(path, "is a folder, not a file", "Name a file in it.") from None
    except (OSError, ValueError) as error:
        raise _error(path, f"cannot be read ({error})", "Check the path.") from error
    if not begin:
        raise _error(path, "the file is empty", "Fetch it again, or check what wrote it.")
    named = compression(path)
    true_suffix = next((suffix for suffix, magic in MAGIC.items() if begin.startswith(magic)), "")
    if named and true_suffix != named:
        kind = f"{true_suffix[1:]} data" if true_suffix else "not compressed, or damaged"
        remedy = f"Rename it to {path.with_suffix(true_suffix).name}, or fetch it again."
        raise _error(path, f"the name ends in {named}, but the content is {kind}", remedy)
    if true_suffix and not named:
        what = f"the content is compressed ({true_suffix[1:]}), but the name does not say so"
        raise _error(path, what, f"Rename it to {path.name}{true_suffix}.")
    return open_as(path, named, longest)


def open_as(path: Path, kind: str, longest: int = 0) -> IO[bytes]:
    """Open a file for reading, decompressing it as the suffix `kind` (may be empty) says; see `open_read`."""
    if not kind:
        plain = path.open("rb")
        return (
            cast(IO[bytes], io.BufferedReader(_Guarded(path, plain, longest=longest))) if longest else plain
        )
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    source = openers[kind](path, "rb")
    most = max(MOST_UNPACKED, MOST_RATIO * path.stat().st_size)
    return cast(IO[bytes], io.BufferedReader(_Guarded(path, source, most, longest), 1 << 16))


def read_text(path: Path, most: int = MOST_TEXT) -> str:
    """Return the UTF-8 text of a plain or compressed file, `most` bytes at most. Errors as `open_read`."""
    with open_read(path) as file:
        long = not compression(path) and path.is_file() and path.stat().st_size > most
        raw = b"" if long else file.read(most + 1)
    remedy = "Check that this is the file you mean"
    if long or len(raw) > most:
        raise _error(path, f"is longer than {most:,} bytes", f"{remedy}.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        remedy += ", and save it as UTF-8."
        raise BridgeError("is not UTF-8 text", where=f"{path}:{line}", remedy=remedy) from error


def read_json(path: Path, *, most: int = MOST_TEXT, unique: bool = False) -> Any:
    """Return the value of a JSON file, within the limits of `bridge.base.jsontext`.

    `unique` refuses an object that has a key twice; otherwise the last one counts. Raises BridgeError: as
    `read_text`, or it is no JSON, nested too deeply, or holds a number out of range or half a surrogate pair.
    """
    return json_in(read_text(path, most), str(path), unique=unique)


def json_in(text: str, where: str, remedy: str = _WRITTEN, *, unique: bool = False) -> Any:
    """Return the value of a JSON text that stands at `where`, as `read_json` does."""
    try:
        return jsontext.loads(text, unique=unique)
    except ValueError as error:
        bad = error if isinstance(error, json.JSONDecodeError) else None
        where, why = (f"{where}:{bad.lineno}", bad.msg) if bad else (where, error)
        raise BridgeError(f"is no JSON ({why})", where=where, remedy=remedy) from error


def read_parquet(path: Path) -> tuple["pd.DataFrame", dict[bytes, bytes]]:
    """Return the table of a Parquet file, and its metadata.

    Columns are as Arrow has them; what pandas has noted about them is not read, and its index is left out.
    Raises BridgeError: there is no such file, it is none or a damaged one, or it claims more than
    `MOST_CELLS` cells.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    open_read(path).close()
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:  # a whole row group would lie in memory
            if (cells := file.metadata.num_rows * file.metadata.num_columns) > MOST_CELLS:
                raise _error(path, f"claims {cells:,} cells, more than {MOST_CELLS:,}")
            schema = file.schema_arrow
            unnamed = [name for name in schema.names if name.startswith("__index_level_")]
            if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in schema.types):
                frame = _in_batches(file)
            else:
                frame = file.read().replace_schema_metadata(None).to_pandas(split_blocks=True)
            frame = frame.drop(columns=unnamed)
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        raise _error(path, "is no Parquet file, or a damaged one") from error
    return frame, dict(schema.metadata or {})


def _in_batches(file: "pq.ParquetFile") -> "pd.DataFrame":
    """Read columns of numbers in little memory, empty cells as NaN; ValueError: it is not what it claims."""
    import numpy as np
    import pandas as pd

    schema, n, at = file.schema_arrow, file.metadata.num_rows, 0
    columns = [np.empty(n, kind.to_pandas_dtype()) for kind in schema.types]
    for batch in file.iter_batches(_BATCH):
        for k, values in enumerate(batch.columns):
            if values.null_count and columns[k].dtype.kind != "f":
                columns[k] = columns[k].astype(np.float64)
            columns[k][at : at + len(batch)] = values.to_numpy(zero_copy_only=False)
        at += len(batch)
    if at != n:
        raise ValueError(f"{at} rows in place of {n}")
    frame = pd.DataFrame(dict(enumerate(columns)), copy=False)
    return frame.set_axis(schema.names, axis=1)


@contextmanager
def open_write(path: Path) -> Iterator[IO[bytes]]:
    """Write a file whole or not at all, compressed as its suffix says; same bytes in, same file out.

    The content goes to a temporary name in the same folder, which is renamed at the end. Raises BridgeError:
    the folder does not exist or cannot be written.
    """
    packers: dict[str, Callable[[BinaryIO], Any]] = {
        # No name and no time inside, so that the same content gives the same bytes.
        ".gz": lambda raw: gzip.GzipFile("", "wb", fileobj=raw, mtime=0),
        ".bz2": partial(bz2.BZ2File, mode="wb"),
        ".xz": partial(lzma.LZMAFile, mode="wb"),
        "": nullcontext,
    }
    with atomic_write(path) as raw, packers[compression(path)](raw) as packed:
        yield packed


def is_there(path: str | Path, kind: Callable[[Path], bool] = Path.exists) -> bool:
    """Tell whether there is such a path, of that kind (`Path.is_file`, …); too long a name is none."""
    try:
        return kind(Path(path))
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise


@contextmanager
def atomic_write(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` if all went well (else BridgeError), of rights `mode`."""
    if path.exists() and not path.is_file():
        raise _error(path, "exists and is not a regular file", "Name another file.")
    try:
        with temporary(path) as (name, descriptor):
            with os.fdopen(descriptor, "wb", closefd=False) as out:
                yield out
            name.chmod(mode & ~_umask())
            name.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document, whole or not at all; raises BridgeError: a value is infinite or no number."""
    try:
        text = json.dumps(document, indent=1, allow_nan=False)
    except ValueError as error:
        raise BridgeError("a value is infinite or no number: nothing is kept", where=str(path)) from error
    with atomic_write(path) as out:
        out.write(text.encode())


@contextmanager
def temporary_folder(path: Path, mode: int = 0o777) -> Iterator[Path]:
    """Make a temporary folder, of rights `mode`, to take the place of ``path``; at the end it is removed."""
    with temporary(path, folder=True) as (name, _):
        name.chmod(mode & ~_umask())
        yield name


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


@contextmanager
def temporary(path: Path, *, folder: bool = False) -> Iterator[tuple[Path, int]]:
    """Make a temporary file or folder beside ``path``; yield it and its descriptor (OSError: it cannot be).

    It is locked as long as it is in use, and removed at the end if it is still there. So what is not locked
    was left by a process that was killed: it is removed by the next one that writes in this place.
    """
    parent = path.parent
    _forget_left_ones(parent)
    while True:
        if folder:
            name = Path(tempfile.mkdtemp(_LEFT, f".{path.name}.", parent))
            descriptor = os.open(name, os.O_RDONLY)
        else:
            descriptor, text = tempfile.mkstemp(_LEFT, f".{path.name}.", parent)
            name = Path(text)
        if _locked(descriptor, name, wait=True):
            break
        os.close(descriptor)  # another process took it for a left one before it was locked
    try:
        yield name, descriptor
    finally:
        _remove(name)
        os.close(descriptor)


def _forget_left_ones(parent: Path) -> None:
    """Remove what killed processes have left in a folder; each folder is looked at once by a process."""
    if (place := parent.absolute()) in _looked_at:
        return
    _looked_at.add(place)
    for name in parent.glob(f".*{_LEFT}"):
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        if os.fstat(descriptor).st_uid == os.geteuid() and _locked(descriptor, name):
            _remove(name)
        os.close(descriptor)


def _locked(descriptor: int, name: Path, *, wait: bool = False) -> bool:
    """Lock a file or folder, and tell whether it is ours and still there.

    On a file system without locks one may be used, but none is ever taken for a left one.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return wait
    try:
        return os.path.samestat(os.fstat(descriptor), name.lstat())
    except OSError:
        return False


def _remove(name: Path) -> None:
    with suppress(OSError):
        if name.is_dir():
            shutil.rmtree(name, ignore_errors=True)
        else:
            name.unlink(missing_ok=True)


def put_in_place(fresh: Path, path: Path) -> None:
    """Give a folder the name ``path``; one that has it then has the name ``fresh`` (OSError: it cannot be).

    There is no moment at which nothing has that name, where the file system can exchange names; where it
    cannot, the other one lies beside it until it is replaced.
    """
    if not path.exists():
        fresh.rename(path)
        return
    if not _exchanged(fresh, path):
        aside = path.rename(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.old."))
        fresh.rename(path)
        aside.rename(fresh)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange the names of two files or folders in one step; tell whether that can be done here."""
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def cannot_write(path: Path, error: OSError) -> BridgeError:
    remedy = "Choose a writable folder with enough free space; nothing was left behind."
    return _error(path, f"cannot write: {error.strerror or error}", remedy)
