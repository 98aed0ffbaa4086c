"""Where an agent comes from: its workload, its seed, and what decides the bits of its training."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from bridge.config import Natural, Of
from bridge.learn.folder import MAX_SEED


@dataclass(frozen=True)
class Origin:
    """Where an agent comes from.

    Attributes:
        workload: as the training was given it, a name or a path.
        workload_name, jobs, sha256: of the log; the digest is of its contents (`Workload.digest`), in older
            checkpoints of its file.
        seed: of initial weights and all sampling.
        constants: name -> value for the encoder's features.
        versions: of bridge and what computes.
        command: repeats the training.
        resources: names, nodes first; empty in agents that only know nodes.
    """

    workload: str
    workload_name: str
    jobs: Natural
    sha256: str
    seed: Annotated[int, Of(least=0, most=MAX_SEED)]
    constants: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    resources: tuple[str, ...] = ()


def sha256_of(path: Path) -> str:
    """Return the digest of a log file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Return what decides the bits of a training."""
    import numba
    import numpy
    import torch

    import bridge

    return {
        "bridge": bridge.__version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "threads": str(torch.get_num_threads()),
    }
