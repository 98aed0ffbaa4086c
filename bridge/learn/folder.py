"""The files of a checkpoint's folder, and what its agent.json says; read without loading what learns."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError
from bridge.pool.settings import ALIASES
from bridge.wire import jsontext

AGENT, WEIGHTS, RESUME, PROGRESS = (
    "agent.json",
    "weights.safetensors",
    "resume.safetensors",
    "progress.parquet",
)
#: What agents decide for, by the name in their recipes.
SCHEDULERS = {"event": "the event-driven scheduler", "pool": "the time-stepped pool"}
#: Of agent.json's fields.
FORMAT = 1
#: Largest seed of a training: what 64 bits with a sign hold.
MAX_SEED = 2**63 - 1


def is_checkpoint(path: str | Path) -> bool:
    """Tell whether this is a checkpoint's folder."""
    return (Path(path) / AGENT).is_file()


def write_document(folder: Path, document: Mapping[str, Any]) -> None:
    """Write agent.json, whole or not at all."""
    from bridge.files import replacing

    with replacing(folder / AGENT) as out:
        out.write(json.dumps(document, indent=2).encode())


def read_document(folder: str | Path) -> dict[str, Any]:
    """Return what stands in agent.json, of whatever scheduler the agent is.

    Raises:
        BridgeError: there is none, it is no JSON, or of another version.
    """
    path = Path(folder) / AGENT
    try:
        document = jsontext.loads(path.read_bytes())
    except FileNotFoundError:
        raise BridgeError(
            "is no checkpoint",
            where=str(folder),
            remedy=f"A checkpoint is a folder with {AGENT} and {WEIGHTS}; `bridge train` makes one.",
        ) from None
    except ValueError as error:
        raise BridgeError(f"is not JSON: {error}", where=str(path)) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BridgeError(
            "is not a checkpoint of this version", where=str(path), remedy=f"`format` must be {FORMAT}."
        )
    return document


def scheduler_of(folder: str | Path) -> str:
    """Return whose decisions a checkpoint's agent takes: ``event`` or ``pool``.

    Raises:
        BridgeError: it is no checkpoint at all.
    """
    said = str(read_document(folder).get("scheduler", "event"))
    return ALIASES.get(said, said)


def is_of_pool(folder: str | Path) -> bool:
    """Tell whether a checkpoint's agent decides for the time-stepped pool.

    Raises:
        BridgeError: it is no checkpoint at all.
    """
    return scheduler_of(folder) == "pool"
