"""Checkpoints of agents on the slotted pool: the same folder as other agents', told apart by its scheduler.

See `bridge.learn.checkpoint`: agent.json, weights.safetensors, resume.safetensors, progress.parquet.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from bridge.errors import BridgeError
from bridge.files import replacing
from bridge.learn.checkpoint import FORMAT, Origin, fill, read_tensors, write_tensors
from bridge.learn.folder import AGENT, MAX_SEED, WEIGHTS
from bridge.learn.rollout import Mode
from bridge.learn.slotted_network import ActorCritic, network_of
from bridge.learn.slotted_recipe import SlottedRecipe, from_dict

#: What agent.json says of its scheduler.
SCHEDULER = "slotted"


@dataclass(frozen=True, eq=False)
class SlottedCheckpoint:
    """A trained agent of the slotted pool, or one in training.

    Attributes:
        folder: where it lies.
        recipe, origin: what it is, and where it comes from.
        epoch: whose weights these are.
        network: with its weights.
        mode: how it answers, ``greedy`` or ``sample``.
    """

    folder: Path
    recipe: SlottedRecipe
    origin: Origin
    epoch: int
    network: ActorCritic
    mode: Mode = "greedy"

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.folder.resolve().name


def write_agent(folder: Path, recipe: SlottedRecipe, origin: Origin) -> None:
    """Write agent.json, whole or not at all."""
    document = {
        "format": FORMAT,
        "scheduler": SCHEDULER,
        "name": recipe.name,
        "setting": recipe.setting,
        "decision": recipe.decision,
        "workload": origin.workload,
        "workload_name": origin.workload_name,
        "jobs": origin.jobs,
        "sha256": origin.sha256,
        "seed": origin.seed,
        "constants": dict(origin.constants),
        "command": origin.command,
        "versions": dict(origin.versions),
        "recipe": recipe.as_dict(),
    }
    with replacing(folder / AGENT) as out:
        out.write(json.dumps(document, indent=2).encode())


def write_weights(folder: Path, weights: Mapping[str, Tensor], epoch: int, mode: Mode) -> None:
    """Write weights.safetensors, whole or not at all."""
    tensors = {f"network.{name}": tensor for name, tensor in weights.items()}
    write_tensors(folder / WEIGHTS, tensors, {"epoch": str(epoch), "mode": mode})


def _document(folder: Path) -> dict[str, Any]:
    """Return what stands in agent.json."""
    path = folder / AGENT
    try:
        document = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BridgeError(
            "is no checkpoint",
            where=str(folder),
            remedy=f"A checkpoint is a folder with {AGENT} and {WEIGHTS}; `bridge train` makes one.",
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BridgeError(f"is not JSON: {error}", where=str(path)) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BridgeError(
            "is not a checkpoint of this version", where=str(path), remedy=f"`format` must be {FORMAT}."
        )
    return document


def is_slotted(folder: str | Path) -> bool:
    """Tell whether a checkpoint is of the slotted pool.

    Raises:
        BridgeError: it is no checkpoint at all.
    """
    return _document(Path(folder)).get("scheduler") == SCHEDULER


def read_agent(folder: Path) -> tuple[SlottedRecipe, Origin]:
    """Read agent.json.

    Raises:
        BridgeError: there is none, or it is not what `write_agent` writes.
    """
    path, document = folder / AGENT, _document(folder)
    if document.get("scheduler") != SCHEDULER:
        raise BridgeError(
            "is an agent of the event-driven scheduler, not of the slotted pool",
            where=str(folder),
            remedy="Name it alone, without `--scheduler slotted`.",
        )
    tables = {name: document.get(name) for name in ("recipe", "constants", "versions")}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise BridgeError(f"{name} is no table", where=str(path))
    kinds = {"workload": str, "workload_name": str, "jobs": int, "sha256": str, "seed": int, "command": str}
    for name, kind in kinds.items():
        if not isinstance(document.get(name), kind):
            raise BridgeError(f"{name} cannot be {document.get(name)!r}", where=str(path))
    if not 0 <= document["seed"] <= MAX_SEED:
        raise BridgeError(f"seed cannot be {document['seed']}", where=str(path))
    return from_dict(document["recipe"], str(path)), Origin(
        **{name: document[name] for name in kinds},
        constants={},
        versions={str(k): str(v) for k, v in document["versions"].items()},
    )


def load(folder: str | Path) -> SlottedCheckpoint:
    """Read a trained agent of the slotted pool.

    Raises:
        BridgeError: it is no such checkpoint, or a file is damaged or of another one.
    """
    folder = Path(folder)
    recipe, origin = read_agent(folder)
    tensors, meta = read_tensors(folder / WEIGHTS)
    network = network_of(recipe)
    fill(network, tensors, "network.", folder / WEIGHTS)
    try:
        epoch = int(meta.get("epoch", ""))
    except ValueError:
        raise BridgeError("does not say of which epoch it is", where=str(folder / WEIGHTS)) from None
    mode = meta.get("mode")
    if mode not in ("greedy", "sample"):
        raise BridgeError("does not say how it answers", where=str(folder / WEIGHTS))
    return SlottedCheckpoint(folder, recipe, origin, epoch, network.eval(), cast(Mode, mode))
