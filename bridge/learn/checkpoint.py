"""Checkpoints: a folder with the recipe as JSON and the weights as safetensors; nothing in it is executed.

agent.json            scheduler and recipe, where it came from (workload, seed, versions), the constants of
                      its features
weights.safetensors   actor, and critic if it has one: the best validated so far
resume.safetensors    everything that training needs to go on, bit for bit (not needed to decide)
progress.parquet      one row per epoch
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, cast, overload

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from bridge.base import renamed
from bridge.base.cache import AGENT
from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.config import from_tables, to_tables
from bridge.config.fields import keys_of
from bridge.env.encoder import CompiledEncoder
from bridge.learn.checkpoint_files import FORMAT, SCHEDULERS, WEIGHTS, read_document, scheduler_of
from bridge.learn.checkpoint_files import Provenance as Provenance
from bridge.learn.kinds import kind_of
from bridge.learn.learner import Mode
from bridge.learn.recipe import AnyRecipe, R, Recipe, from_dict


@dataclass(frozen=True, eq=False)
class Agent(Generic[R]):
    """A trained agent, or one in training.

    Attributes:
        recipe: what it is.
        origin: where it comes from.
        mode: how it answers, ``greedy`` or ``sample``.
    """

    folder: Path
    recipe: R
    origin: Provenance
    epoch: int
    actor: nn.Module
    mode: Mode = "greedy"

    @property
    def name(self) -> str:
        """Label in tables."""
        return self.folder.resolve().name

    def encoder(self: "Agent[Recipe]") -> CompiledEncoder:
        """Return its encoder with the constants of its training workload."""
        return self.recipe.encoder.compile(self.origin.constants)


#: Agents of the event-driven scheduler.
LogAgent = Agent[Recipe]
#: What agent.json says of an agent's origin only if there is something to say.
_ABSENT = ("resources", "others", "cluster_sha256", "picks_sha256")


def write_agent(folder: Path, recipe: AnyRecipe, origin: Provenance) -> None:
    head: dict[str, Any] = {"format": FORMAT}
    if recipe.scheduler != Recipe.scheduler:
        head["scheduler"] = recipe.scheduler
    head |= {"name": recipe.name, "setting": recipe.setting, "decision": recipe.decision}
    if isinstance(recipe, Recipe):
        head["protocol"] = recipe.setup.protocol
    own = {k: v for k, v in to_tables(origin).items() if v or k not in _ABSENT}
    document = {**head, **own, "recipe": recipe.as_dict()}
    with atomic_write(folder / AGENT) as out:
        out.write(json.dumps(document, indent=2).encode())


def read_agent(folder: Path, kind: type[AnyRecipe] | None = None) -> tuple[Any, Provenance]:
    path, document = folder / AGENT, read_document(folder)
    scheduler, wanted = scheduler_of(folder), kind.scheduler if kind else ""
    if scheduler not in ((wanted,) if wanted else SCHEDULERS):
        whose = SCHEDULERS.get(scheduler, f"another scheduler, {_short(scheduler)}")
        what = f"is an agent of {whose}, not of {SCHEDULERS.get(wanted, 'one that is known')}"
        raise BridgeError(what, where=str(folder), remedy="Name it among agents of its own scheduler.")
    recipe_type: Any = kind or kind_of(scheduler).recipe
    own = {key: document[key] for key in keys_of(Provenance).values() if key in document}
    origin = from_tables(Provenance, own, str(path))
    if not isinstance(document.get("recipe"), dict):
        raise BridgeError("recipe is no table", where=str(path))
    return from_dict(document["recipe"], str(path), recipe_type), origin


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def add_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def strip_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): v for name, v in tensors.items() if name.startswith(prefix)}


def write_weights(folder: Path, weights: Mapping[str, Tensor], epoch: int, mode: Mode) -> None:
    """Write the weights of an epoch, and how they answer."""
    write_tensors(folder / WEIGHTS, weights, {"epoch": str(epoch), "mode": mode})


def write_tensors(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, str]) -> None:
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with atomic_write(path) as out:
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
    try:
        with safe_open(str(path), framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return _renamed(tensors), dict(file.metadata() or {})
    except FileNotFoundError:
        raise BridgeError(
            "is missing", where=str(path), remedy="Is the training's folder complete?"
        ) from None
    except (SafetensorError, OSError, ValueError) as error:
        raise BridgeError(f"is damaged: {error}", where=str(path)) from None


def _renamed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors by today's names: the pool's agents once had a format of their own."""
    if any(name.startswith(("actor.", "now.actor.")) for name in tensors):
        return tensors
    old = {"network.": "actor.", "now.": "now.actor.", "best.": "best.actor."}

    def renamed(name: str) -> str:
        before = next((one for one in old if name.startswith(one)), "")
        return old.get(before, "") + name.removeprefix(before)

    return {renamed(name): tensor for name, tensor in tensors.items()}


def load_weights_into(network: nn.Module, tensors: Mapping[str, Tensor], prefix: str, where: Path) -> None:
    """Load the weights of a prefix into a network; BridgeError: other shapes, or not finite."""
    own = _fitting(network, tensors, prefix, where)
    if not all(bool(torch.isfinite(v).all()) for v in own.values()):
        raise BridgeError("a weight is not a finite number", where=str(where))
    network.load_state_dict(own)


def _fitting(
    network: nn.Module, tensors: Mapping[str, Tensor], prefix: str, where: Path
) -> dict[str, Tensor]:
    own = strip_prefix(prefix, tensors)
    if {k: v.shape for k, v in own.items()} != {k: v.shape for k, v in network.state_dict().items()}:
        what = "the weights are not of the network that the recipe describes"
        raise BridgeError(what, where=str(where), remedy="Do not mix files of several checkpoints.")
    return own


@overload
def load(folder: str | Path) -> Agent[Recipe]: ...
@overload
def load(folder: str | Path, kind: type[R]) -> Agent[R]: ...
def load(folder: str | Path, kind: Any = Recipe) -> Agent[Any]:
    """Read a trained agent whose recipe is of a kind; BridgeError: it is none, of another, or damaged."""
    folder = Path(folder)
    recipe, origin = read_agent(folder, kind)
    path = folder / WEIGHTS
    tensors, meta = read_tensors(path)
    with torch.device("meta"):  # what is in the file decides about memory, not what a recipe asks for
        _fitting(network_of(recipe), tensors, "actor.", path)
    actor = network_of(recipe)
    load_weights_into(actor, tensors, "actor.", path)
    try:
        epoch = int(meta.get("epoch", ""))
    except ValueError:
        raise BridgeError("does not say of which epoch it is", where=str(path)) from None
    mode = meta.get("mode")
    if mode not in ("greedy", "sample"):
        raise BridgeError("does not say how it answers", where=str(path))
    return Agent(folder, recipe, origin, epoch, actor.eval(), cast(Mode, mode))


def load_any(folder: str | Path) -> Agent[Any]:
    """Read a trained agent of whatever scheduler it is; raises as `load`."""
    scheduler = scheduler_of(folder)
    kind: Any = kind_of(scheduler).recipe if scheduler in SCHEDULERS else Recipe
    return load(folder, kind)


def network_of(recipe: AnyRecipe) -> nn.Module:
    return kind_of(recipe.scheduler).network(recipe)


if not TYPE_CHECKING:
    __getattr__ = renamed.getter(__name__)
