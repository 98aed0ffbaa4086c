"""Opens logs whatever their compression, and writes files whole or not at all."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from bridge.errors import BridgeError
from bridge.files import replacing

#: Suffix -> the bytes with which such a file begins.
MAGIC: dict[str, bytes] = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\x00"}
#: What the decompressors raise on damaged or cut-off input.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


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


def open_read(path: Path) -> IO[bytes]:
    """Open a plain or compressed file for reading its decompressed bytes.

    Raises:
        BridgeError: there is no such file, it is empty or unreadable, or its name and its content
            disagree about the compression.
    """
    try:
        with path.open("rb") as file:
            begin = file.read(8)
    except FileNotFoundError:
        raise BridgeError("no such file", where=str(path), remedy="Check the path.") from None
    except IsADirectoryError:
        raise BridgeError("is a folder, not a file", where=str(path), remedy="Name a file in it.") from None
    except OSError as error:
        raise BridgeError(f"cannot be read ({error.strerror})", where=str(path)) from error
    if not begin:
        raise BridgeError(
            "the file is empty", where=str(path), remedy="Fetch it again, or check what wrote it."
        )
    named = compression(path)
    found = next((suffix for suffix, magic in MAGIC.items() if begin.startswith(magic)), "")
    if named and found != named:
        kind = f"{found[1:]} data" if found else "not compressed, or damaged"
        raise BridgeError(
            f"the name ends in {named}, but the content is {kind}",
            where=str(path),
            remedy=f"Rename it to {path.with_suffix(found).name}, or fetch it again.",
        )
    if found and not named:
        raise BridgeError(
            f"the content is compressed ({found[1:]}), but the name does not say so",
            where=str(path),
            remedy=f"Rename it to {path.name}{found}.",
        )
    return open_as(path, named)


def open_as(path: Path, kind: str) -> IO[bytes]:
    """Open a file for reading, decompressing it as the suffix `kind` (may be empty) says."""
    if kind == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if kind == ".bz2":
        return cast(IO[bytes], bz2.open(path, "rb"))
    if kind == ".xz":
        return cast(IO[bytes], lzma.open(path, "rb"))
    return path.open("rb")


@contextmanager
def open_write(path: Path) -> Iterator[IO[bytes]]:
    """Write a file whole or not at all, compressed as its suffix says; same bytes in, same file out.

    The content goes to a temporary name in the same folder, which is renamed at the end.

    Raises:
        BridgeError: the folder does not exist or cannot be written.
    """
    with replacing(path) as raw:
        kind = compression(path)
        if kind == ".gz":
            # No name and no time inside, so that the same content gives the same bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                yield cast(IO[bytes], packed)
        elif kind == ".bz2":
            with bz2.BZ2File(raw, "wb") as squeezed:
                yield cast(IO[bytes], squeezed)
        elif kind == ".xz":
            with lzma.LZMAFile(raw, "wb") as squashed:
                yield cast(IO[bytes], squashed)
        else:
            yield raw
