"""Checkpoints: a folder with the recipe as JSON and the weights as safetensors; nothing in it is executed.

agent.json            recipe, where it came from (workload, seed, versions), the constants of its features
weights.safetensors   actor and critic: the best validated so far
resume.safetensors    everything that training needs to go on, bit for bit (not needed to decide)
progress.parquet      one row per epoch
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from bridge.encode.encoder import Compiled
from bridge.errors import BridgeError
from bridge.files import replacing
from bridge.learn.folder import AGENT, MAX_SEED, WEIGHTS
from bridge.learn.network import actor_of
from bridge.learn.recipe import Recipe, from_dict
from bridge.learn.rollout import Mode

#: Of agent.json's fields.
FORMAT = 1


@dataclass(frozen=True)
class Origin:
    """Where an agent comes from.

    Attributes:
        workload: as the training was given it, a name or a path.
        workload_name, jobs, sha256: of the log.
        seed: of initial weights and all sampling.
        constants: name -> value for the encoder's features.
        versions: of bridge and what computes.
        command: repeats the training.
        resources: names, nodes first; empty in agents that only know nodes.
    """

    workload: str
    workload_name: str
    jobs: int
    sha256: str
    seed: int
    constants: Mapping[str, float]
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    resources: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained agent, or one in training.

    Attributes:
        folder: where it lies.
        recipe, origin: what it is, and where it comes from.
        epoch: whose weights these are.
        mode: how it answers, ``greedy`` or ``sample``.
        actor: with its weights.
    """

    folder: Path
    recipe: Recipe
    origin: Origin
    epoch: int
    actor: nn.Module
    mode: Mode = "greedy"

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.folder.resolve().name

    def encoder(self) -> Compiled:
        """Return its encoder with the constants of its training workload."""
        return self.recipe.encoder.compile(self.origin.constants)


def write_agent(folder: Path, recipe: Recipe, origin: Origin) -> None:
    """Write agent.json, whole or not at all."""
    document = {
        "format": FORMAT,
        "name": recipe.name,
        "setting": recipe.setting,
        "decision": recipe.decision,
        "protocol": recipe.setup.protocol,
        "workload": origin.workload,
        "workload_name": origin.workload_name,
        "jobs": origin.jobs,
        "sha256": origin.sha256,
        "seed": origin.seed,
        "constants": dict(origin.constants),
        "command": origin.command,
        "versions": dict(origin.versions),
        **({"resources": list(origin.resources)} if origin.resources else {}),
        "recipe": recipe.as_dict(),
    }
    with replacing(folder / AGENT) as out:
        out.write(json.dumps(document, indent=2).encode())


def read_agent(folder: Path) -> tuple[Recipe, Origin]:
    """Read agent.json.

    Raises:
        BridgeError: there is none, or it is not what `write_agent` writes.
    """
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
    if document.get("scheduler"):
        raise BridgeError(
            "is an agent of the slotted pool", where=str(folder), remedy="`bridge evaluate` judges it."
        )
    recipe = document.get("recipe")
    constants = document.get("constants")
    if not isinstance(recipe, dict) or not isinstance(constants, dict):
        raise BridgeError("lacks its recipe or constants", where=str(path))
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in constants.values()):
        raise BridgeError("a constant is no number", where=str(path))
    if not isinstance(document.get("versions", {}), dict):
        raise BridgeError("versions are no table", where=str(path))
    kinds = {"workload": str, "workload_name": str, "jobs": int, "sha256": str, "seed": int}
    for name, kind in kinds.items():
        if not isinstance(document.get(name), kind):
            raise BridgeError(f"{name} cannot be {document.get(name)!r}", where=str(path))
    resources = document.get("resources", [])
    if not isinstance(resources, list) or not all(isinstance(name, str) for name in resources):
        raise BridgeError("resources are no names", where=str(path))
    if not 0 <= document["seed"] <= MAX_SEED:
        raise BridgeError(f"seed cannot be {document['seed']}", where=str(path))
    return from_dict(recipe, str(path)), Origin(
        **{name: document[name] for name in kinds},
        constants={k: float(v) for k, v in constants.items()},
        versions={str(k): str(v) for k, v in dict(document.get("versions") or {}).items()},
        command=str(document.get("command", "")),
        resources=tuple(resources),
    )


def write_tensors(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, str]) -> None:
    """Write tensors and texts to one safetensors file, whole or not at all."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as out:
        out.write(_ordered(save(plain, dict(meta))))


def _ordered(file: bytes) -> bytes:
    """Return a safetensors file with its texts sorted: the library's order differs from call to call."""
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8 : 8 + size])
    texts = dict(sorted(header.pop("__metadata__", {}).items()))
    text = json.dumps({"__metadata__": texts, **header}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the tensors behind it stay aligned
    return len(text).to_bytes(8, "little") + text + file[8 + size :]


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read tensors and texts.

    Raises:
        BridgeError: the file is missing or damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except FileNotFoundError:
        raise BridgeError(
            "is missing", where=str(path), remedy="Is the training's folder complete?"
        ) from None
    except (SafetensorError, OSError, ValueError) as error:
        raise BridgeError(f"is damaged: {error}", where=str(path)) from None


def fill(network: nn.Module, tensors: Mapping[str, Tensor], prefix: str, where: Path) -> None:
    """Give a network the weights whose names begin with a prefix.

    Raises:
        BridgeError: they are of another network, or not finite.
    """
    own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    expected = network.state_dict()
    shapes = {k: tuple(v.shape) for k, v in own.items()}
    if shapes != {k: tuple(v.shape) for k, v in expected.items()}:
        raise BridgeError(
            "the weights are not of the network that the recipe describes",
            where=str(where),
            remedy="Do not mix files of several checkpoints.",
        )
    if not all(bool(torch.isfinite(v).all()) for v in own.values()):
        raise BridgeError("a weight is not a finite number", where=str(where))
    network.load_state_dict(own)


def load(folder: str | Path) -> Checkpoint:
    """Read a trained agent.

    Raises:
        BridgeError: it is no checkpoint, or a file is damaged or of another one.
    """
    folder = Path(folder)
    recipe, origin = read_agent(folder)
    tensors, meta = read_tensors(folder / WEIGHTS)
    actor = actor_of(recipe)
    fill(actor, tensors, "actor.", folder / WEIGHTS)
    try:
        epoch = int(meta.get("epoch", ""))
    except ValueError:
        raise BridgeError("does not say of which epoch it is", where=str(folder / WEIGHTS)) from None
    mode = meta.get("mode")
    if mode not in ("greedy", "sample"):
        raise BridgeError("does not say how it answers", where=str(folder / WEIGHTS))
    return Checkpoint(folder, recipe, origin, epoch, actor.eval(), cast(Mode, mode))


def as_json(value: Any) -> str:
    """Return compact JSON for a safetensors header."""
    return json.dumps(value, separators=(",", ":"))
