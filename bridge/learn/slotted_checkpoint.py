"""Checkpoints of agents on the slotted pool: the same folder as other agents', told apart by its scheduler.

See `bridge.learn.checkpoint`: agent.json, weights.safetensors, resume.safetensors, progress.parquet.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from bridge.errors import BridgeError
from bridge.learn.checkpoint import (
    FORMAT,
    Origin,
    epoch_and_mode,
    fields_of,
    fill,
    read_document,
    read_tensors,
    write_document,
    write_tensors,
)
from bridge.learn.folder import AGENT, WEIGHTS
from bridge.learn.rollout import Mode
from bridge.learn.slotted_network import ActorCritic, network_of
from bridge.learn.slotted_recipe import SlottedRecipe, from_dict
from bridge.pool.settings import Settings

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
        **origin.as_dict(),
        "recipe": recipe.as_dict(),
    }
    write_document(folder, document)


def write_weights(folder: Path, weights: Mapping[str, Tensor], epoch: int, mode: Mode) -> None:
    """Write weights.safetensors, whole or not at all."""
    tensors = {f"network.{name}": tensor for name, tensor in weights.items()}
    write_tensors(folder / WEIGHTS, tensors, {"epoch": str(epoch), "mode": mode})


def is_slotted(folder: str | Path) -> bool:
    """Tell whether a checkpoint is of the slotted pool.

    Raises:
        BridgeError: it is no checkpoint at all.
    """
    return read_document(Path(folder)).get("scheduler") == SCHEDULER


def read_agent(folder: Path) -> tuple[SlottedRecipe, Origin]:
    """Read agent.json.

    Raises:
        BridgeError: there is none, or it is not what `write_agent` writes.
    """
    path, document = folder / AGENT, read_document(folder)
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
    return from_dict(document["recipe"], str(path)), Origin(
        **fields_of(document, path, command=str),
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
    epoch, mode = epoch_and_mode(meta, folder / WEIGHTS)
    return SlottedCheckpoint(folder, recipe, origin, epoch, network.eval(), mode)


def require_pool(agent: SlottedCheckpoint, pool: Settings) -> None:
    """Refuse a pool that looks otherwise than the one an agent has learnt on.

    Raises:
        BridgeError: it does.
    """
    own = agent.recipe.pool
    for name in ("units", "slots", "kill_slots", "horizon"):
        if getattr(pool, name) != getattr(own, name):
            raise BridgeError(
                f"has learnt on a pool of {getattr(own, name)} {name}, not {getattr(pool, name)}",
                where=str(agent.folder),
                remedy="It sees a picture of another shape: train one for this pool.",
            )
