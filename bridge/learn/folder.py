"""The files of a checkpoint's folder, and whether a folder is one; read without loading what learns."""

from pathlib import Path

AGENT, WEIGHTS, RESUME, PROGRESS = (
    "agent.json",
    "weights.safetensors",
    "resume.safetensors",
    "progress.parquet",
)
#: Largest seed of a training: what 64 bits with a sign hold.
MAX_SEED = 2**63 - 1


def is_checkpoint(path: str | Path) -> bool:
    """Tell whether this is a checkpoint's folder."""
    return (Path(path) / AGENT).is_file()
