"""What a worker does with a cell: it trains the agent, judges, and keeps what was found."""

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bridge.base.errors import BridgeError
from bridge.learn.checkpoint_files import best_epoch_of, epochs_of, validated_of
from bridge.study.cells import FORMAT, Cell, Logs, load_log, non_default_fields, sha256_of, sha256_of_log
from bridge.study.store import Claim, Store, damaged

if TYPE_CHECKING:
    from bridge.learn.checkpoint import Agent


#: Between two signs of life, seconds.
BEAT = 5.0


def _read(name: str, sha256: str, logs: Logs) -> Any:
    """Return a log that is still what the cell's key says; raises BridgeError where it was replaced."""
    log = logs(name)
    if (sha256_of(name) if logs is load_log else sha256_of_log(name, log)) != sha256:
        what = "the log was replaced after this run had read it"
        raise BridgeError(what, where=name, remedy="Run the study again.")
    return log


def run_cell(cell: Cell, store: Store, runner: str, logs: Logs = load_log) -> dict[str, Any]:
    """Train (or resume) the cell's agent, evaluate it, save and return the record; a saved one is read."""
    done = store.cell(cell.key)
    if done is not None:
        return done
    claim = replace(Claim.own(runner), epochs=cell.epochs)
    store.claim(cell.key, claim)
    ended = threading.Event()
    threading.Thread(target=_beat, args=(store, cell.key, ended), daemon=True).start()
    from bridge.study.evaluate_cell import evaluate_cell

    started_at = time.perf_counter()
    try:
        log = _read(cell.file, cell.sha256, logs)
        agent = _trained(cell, store, claim, logs) if cell.recipe else None
        trained = time.perf_counter()
        record = {
            "format": FORMAT,
            "row": cell.row,
            "log": cell.log,
            "seed": cell.seed,
            "logs": _logs_of(cell),
            "metrics": list(cell.metrics),
            "tests": list(evaluate_cell(cell, agent, log)),
            "epochs": epochs_of(agent.folder) if agent else 0,
            "best_epoch": best_epoch_of(agent.folder) if agent else 0,
            "validated": validated_of(agent.folder) if agent else None,
            "agent": cell.agent_key,
            "made_of": non_default_fields(cell.recipe or cell.heuristic or cell.setup),
            "train_seconds": trained - started_at,
            "seconds": time.perf_counter() - started_at,
        }
        store.save(cell.key, record)
        return record
    finally:
        ended.set()
        store.release(cell.key)


def _logs_of(cell: Cell) -> dict[str, str]:
    """Return the digests of all logs of a cell: judged on, learnt on."""
    logs = {cell.file: cell.sha256}
    if cell.recipe is not None:
        logs[cell.learnt_on] = cell.learnt_sha256
        logs |= dict(zip(getattr(cell.recipe.training, "logs", ()), cell.others, strict=True))
    return logs


def _beat(store: Store, key: str, ended: threading.Event) -> None:
    """Give signs of life until the cell has ended."""
    while not ended.wait(BEAT):
        store.refresh_claim(key)


def _trained(cell: Cell, store: Store, claim: Claim, logs: Logs) -> "Agent[Any]":
    """Return the cell's agent, trained as far as its recipe says; a training that broke off goes on."""
    from bridge.learn.checkpoint import load
    from bridge.learn.learner import TrainingContext
    from bridge.learn.trainer import EpochRecord
    from bridge.learn.training import TrainingData, train_or_resume, use_threads

    recipe = cell.training_recipe
    assert recipe is not None
    folder, kind = store.agent(cell.agent_key), type(recipe)
    if folder.exists():
        with damaged(folder):
            return load(folder, kind)
    use_threads(1)
    log = _read(cell.learnt_on, cell.learnt_sha256, logs)
    material = TrainingData.of(recipe, log, cell.learnt_sha256)
    teacher = _trained(cell.teacher, store, claim, logs).folder if cell.teacher else None

    def report(progress: EpochRecord) -> None:
        epochs = max(cell.epochs, progress.epoch)
        store.claim(cell.key, replace(claim, epoch=progress.epoch, epochs=epochs))

    with store.attempt(cell.agent_key, [one.agent_key for one in cell.shorter]) as own:
        origin = material.origin(cell.learnt_on, cell.seed)
        context: TrainingContext[Any] = TrainingContext(
            material.recipe, material.jobs, origin, own, teacher=teacher
        )
        train_or_resume(context, report)
    return load(folder, kind)
