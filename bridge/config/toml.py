"""TOML files as plain tables; one that cannot be read is one error that names the file, and the line."""

import re
import tomllib
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        BridgeError: the file cannot be read, or is no TOML.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BridgeError(
            f"cannot be read ({error.strerror})", where=str(path), remedy="Check the path."
        ) from error
    return parse_toml(raw, str(path))


def parse_toml(raw: bytes, where: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Args:
        raw: the text, UTF-8.
        where: the file, for errors.

    Raises:
        BridgeError: it is no TOML, or one nested or as large as no settings are.
    """
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BridgeError(
            "not valid TOML: no text in UTF-8", where=f"{where}:{line}", remedy="Save the file as UTF-8."
        ) from error
    except RecursionError as error:
        raise BridgeError("not valid TOML: nested too deep", where=where, remedy="Mend the file.") from error
    except ValueError as error:  # tomllib's own, and numbers of thousands of digits
        found = re.search(r"line (\d+)", str(error))
        at = f"{where}:{found[1]}" if found else where
        said = str(error).partition("; ")[0]
        raise BridgeError(f"not valid TOML: {said}", where=at, remedy="Mend the file.") from error
