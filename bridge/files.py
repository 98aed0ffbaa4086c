"""Writing a file whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bridge.errors import BridgeError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` for writing; it replaces ``path`` only if all went well.

    Raises:
        BridgeError: the folder cannot be written, the disk is full, or ``path`` is a device or the like.
    """
    if path.exists() and not path.is_file():
        raise BridgeError("exists and is not a regular file", where=str(path), remedy="Name another file.")
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent or ".", prefix=f".{path.name}.")
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as out:
            yield out
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise


def cannot_write(path: Path, error: OSError) -> BridgeError:
    """Return the error for a file or folder that could not be written."""
    return BridgeError(
        f"cannot write: {error.strerror or error}",
        where=str(path),
        remedy="Choose a writable folder with enough free space; nothing was left behind.",
    )
