"""Checkpoints: a folder with the recipe as JSON and the weights as safetensors; nothing in it is executed.

agent.json            recipe, where it came from (workload, seed, versions), the constants of its features
weights.safetensors   actor and critic: the best validated so far
resume.safetensors    everything that training needs to go on, bit for bit (not needed to decide)
progress.parquet      one row per epoch
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
    jobs: int
    sha256: str
    seed: int
    constants: Mapping[str, float]
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    resources: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return what agent.json says of it."""
        found: dict[str, Any] = {
            "workload": self.workload,
            "workload_name": self.workload_name,
            "jobs": self.jobs,
            "sha256": self.sha256,
            "seed": self.seed,
            "constants": dict(self.constants),
            "command": self.command,
            "versions": dict(self.versions),
        }
        return found | ({"resources": list(self.resources)} if self.resources else {})


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
        **origin.as_dict(),
        "recipe": recipe.as_dict(),
    }
    write_document(folder, document)


def write_document(folder: Path, document: Mapping[str, Any]) -> None:
    """Write agent.json, whole or not at all."""
    with replacing(folder / AGENT) as out:
        out.write(json.dumps(document, indent=2).encode())


def read_document(folder: Path) -> dict[str, Any]:
    """Return what stands in agent.json, of whatever scheduler the agent is.

    Raises:
        BridgeError: there is none, or it is of another version.
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
    return document


#: Fields of every agent.json that say where an agent comes from, and their types.
_FIELDS: Mapping[str, type] = {
    "workload": str,
    "workload_name": str,
    "jobs": int,
    "sha256": str,
    "seed": int,
}


def fields_of(document: Mapping[str, Any], path: Path, **more: type) -> dict[str, Any]:
    """Return an agent.json's fields of a fixed type, and these besides.

    Raises:
        BridgeError: one is missing, of another type or out of its range.
    """
    kinds = {**_FIELDS, **more}
    for name, kind in kinds.items():
        if not isinstance(document.get(name), kind):
            raise BridgeError(f"{name} cannot be {document.get(name)!r}", where=str(path))
    if not 0 <= document["seed"] <= MAX_SEED:
        raise BridgeError(f"seed cannot be {document['seed']}", where=str(path))
    return {name: document[name] for name in kinds}


def read_agent(folder: Path) -> tuple[Recipe, Origin]:
    """Read agent.json.

    Raises:
        BridgeError: there is none, or it is not what `write_agent` writes.
    """
    path, document = folder / AGENT, read_document(folder)
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
    fields = fields_of(document, path)
    resources = document.get("resources", [])
    if not isinstance(resources, list) or not all(isinstance(name, str) for name in resources):
        raise BridgeError("resources are no names", where=str(path))
    return from_dict(recipe, str(path)), Origin(
        **fields,
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
    epoch, mode = epoch_and_mode(meta, folder / WEIGHTS)
    return Checkpoint(folder, recipe, origin, epoch, actor.eval(), mode)


def epoch_and_mode(meta: Mapping[str, str], path: Path) -> tuple[int, Mode]:
    """Return whose weights a file's are, and how they answer.

    Raises:
        BridgeError: it does not say so.
    """
    try:
        epoch = int(meta.get("epoch", ""))
    except ValueError:
        raise BridgeError("does not say of which epoch it is", where=str(path)) from None
    mode = meta.get("mode")
    if mode not in ("greedy", "sample"):
        raise BridgeError("does not say how it answers", where=str(path))
    return epoch, cast(Mode, mode)


# What trainings keep to go on.


@dataclass
class Course:
    """How far a training has come.

    Attributes:
        epoch: epochs done.
        best, best_epoch, best_mode: the best validated value, whose weights and way to answer that were.
        history: one entry per epoch, dataclasses of one kind.
    """

    epoch: int
    best: float
    best_epoch: int
    best_mode: Mode
    history: list[Any]

    def texts(self) -> dict[str, str]:
        """Return it as a safetensors header holds it."""
        return {
            "epoch": str(self.epoch),
            "best": as_json([self.best, self.best_epoch, self.best_mode]),
            "history": as_json([asdict(entry) for entry in self.history]),
        }


def course_of(meta: Mapping[str, str], entry: Callable[..., Any], path: Path) -> Course:
    """Return what `Course.texts` wrote.

    Raises:
        BridgeError: it is damaged, or the entries are of another kind.
    """
    try:
        history = [entry(**values) for values in json.loads(meta["history"])]
        best, best_epoch, best_mode = json.loads(meta["best"])
        return Course(int(meta["epoch"]), best, best_epoch, best_mode, history)
    except (KeyError, ValueError, TypeError) as error:
        raise BridgeError(f"is damaged: {error!r}", where=str(path)) from None


def write_progress(path: Path, history: Sequence[Any]) -> None:
    """Write a training's entries, dataclasses of one kind, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replacing(path) as out:
        pq.write_table(pa.Table.from_pylist([asdict(entry) for entry in history]), out)


def as_json(value: Any) -> str:
    """Return compact JSON for a safetensors header."""
    return json.dumps(value, separators=(",", ":"))
