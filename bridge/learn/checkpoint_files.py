"""The files of a checkpoint's folder, what its agent.json says, and where an agent comes from.

It is read without loading what learns.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from bridge.base import jsontext
from bridge.base.cache import AGENT
from bridge.base.errors import BridgeError
from bridge.base.files import is_there
from bridge.config import Constraint, Natural
from bridge.scheduler.names import ALIASES

WEIGHTS = "weights.safetensors"
RESUME, PROGRESS = "resume.safetensors", "progress.parquet"
#: What agents decide for, by the name in their recipes.
SCHEDULERS = {"event": "the event-driven scheduler", "pool": "the time-stepped pool"}
#: What is learnt on, and with which seed, if nothing is said.
WORKLOADS, SEED = {"event": "bundled-128", "pool": "synthetic"}, 1
#: Of agent.json's fields.
FORMAT = 1
#: Largest seed of a training: what 64 bits with a sign hold.
MAX_SEED = 2**63 - 1


def read_document(folder: str | Path) -> dict[str, Any]:
    """Return agent.json's contents, for any scheduler; BridgeError: missing or invalid."""
    path = Path(folder) / AGENT
    if not is_there(path):
        remedy = f"A checkpoint is a folder with {AGENT} and {WEIGHTS}; `bridge train` makes one."
        raise BridgeError("is no checkpoint", where=str(folder), remedy=remedy)
    try:
        document = jsontext.loads(path.read_bytes())
    except ValueError as error:
        raise BridgeError(f"is not JSON: {error}", where=str(path)) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        remedy = f"`format` must be {FORMAT}."
        raise BridgeError("is not a checkpoint of this version", where=str(path), remedy=remedy)
    return document


def epochs_of(folder: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(folder / PROGRESS).num_rows)


def best_epoch_of(folder: Path) -> int:
    """Return the first epoch of the best validation, of an agent that has learnt here; see `first_best`."""
    import pyarrow.parquet as pq

    return first_best(pq.read_table(folder / PROGRESS, columns=["valid_mean"])["valid_mean"].to_pylist())


def first_best(values: Sequence[float]) -> int:
    """Return the first epoch with the lowest value of all; the last one where nothing was validated (NaN)."""
    valid_values = [value for value in values if value == value]
    return 1 + values.index(min(valid_values)) if valid_values else len(values)


def validated_of(folder: Path) -> float | None:
    """Return the metric of the best weights on the validation sequences over the base's; None: unknown."""
    import pyarrow.parquet as pq

    columns = pq.read_table(folder / PROGRESS, columns=["valid_mean", "valid_base"]).to_pydict()
    pairs = zip(columns["valid_mean"], columns["valid_base"], strict=True)
    return min((mean / base for mean, base in pairs if mean == mean and base > 0), default=None)


def scheduler_of(folder: str | Path) -> str:
    """Return whose decisions a checkpoint's agent takes, ``event`` or ``pool``; errors as `read_document`."""
    scheduler_name = str(read_document(folder).get("scheduler", "event"))
    return ALIASES.get(scheduler_name, scheduler_name)


def is_of_pool(folder: str | Path) -> bool:
    """Tell whether a checkpoint's agent decides for the time-stepped pool; errors as `read_document`."""
    return scheduler_of(folder) == "pool"


@dataclass(frozen=True)
class Provenance:
    """Where an agent comes from.

    Attributes:
        workload: as the training was given it, a name or a path.
        workload_name, jobs, sha256: of the log; the digest is of its contents (`Workload.digest`), in older
            checkpoints of its file.
        constants: name -> value for the encoder's features.
        resources: names, nodes first; empty in agents that only know nodes.
        extra_log_digests: digests of the further logs that it learnt on, by name or path as given.
        cluster_sha256: digest of the cluster that it learnt on; empty if there was none.
    """

    workload: str
    workload_name: str
    jobs: Natural
    sha256: str
    seed: Annotated[int, Constraint(ge=0, le=MAX_SEED)]
    constants: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    resources: tuple[str, ...] = ()
    extra_log_digests: Annotated[Mapping[str, str], Constraint(key="others")] = field(default_factory=dict)
    cluster_sha256: str = ""


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    import torch

    versions_by_name = {
        name: import_module(name).__version__ for name in ("bridge", "torch", "numpy", "numba")
    }
    return {**versions_by_name, "threads": str(torch.get_num_threads())}
