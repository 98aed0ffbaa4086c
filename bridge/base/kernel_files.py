"""Files of compiled kernels, which are trusted as code is: written by us or by root, whole, under their name.

What is in them is loaded into the process and run. So a file that anybody else could have written, or that is
not what was written under its name, is as if it were not there.
"""

import hashlib
import os
import stat
from pathlib import Path

from bridge.base.files import atomic_write, cannot_write

#: Of whom files are trusted, beside ourselves: who installs software for all.
_ROOT = 0
_DIGEST = hashlib.sha256().digest_size


def _digest(path: Path, contents: bytes) -> bytes:
    """Return what stands before the contents: none but this file, of these sources, has it."""
    return hashlib.sha256(f"{path.parent.name}/{path.name}\0".encode() + contents).digest()


def read(path: Path) -> bytes | None:
    """Return what was written to a file; None if there is none, or it cannot be trusted or is not whole."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            others = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if not stat.S_ISREG(about.st_mode) or others or about.st_uid not in (_ROOT, os.geteuid()):
                return None
            text = file.read()
    except OSError:
        return None
    contents = text[_DIGEST:]
    return contents if text[:_DIGEST] == _digest(path, contents) else None


def write(path: Path, contents: bytes) -> None:
    """Write a file that nobody else can change, and its folder, if need be; BridgeError: it cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
    with atomic_write(path, 0o644) as out:
        out.write(_digest(path, contents) + contents)
