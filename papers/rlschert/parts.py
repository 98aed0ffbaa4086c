"""Parts of RLSchert's page, each of which can be run alone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bridge.pool.synthetic import synthetic
from papers.rlschert import convergence as rlschert_convergence
from papers.rlschert import holes as rlschert_holes
from papers.rlschert import killed as rlschert_killed
from papers.rlschert import networks as rlschert_networks
from papers.rlschert import run as rlschert_run
from papers.rlschert import shares as rlschert_shares
from papers.rlschert import synthetic as rlschert_synthetic
from papers.rlschert import worlds as rlschert_worlds
from papers.rlschert.play import Wanted
from papers.rlschert.train import Data, data_of

#: Parts that need the logged jobs, in the order in which they are run.
LOGGED: dict[str, Callable[[Wanted, Data], None]] = {
    "tables": rlschert_run.tables,
    "held-out": rlschert_run.held_out,
    "table-9": rlschert_shares.run,
    "convergence": rlschert_convergence.run,
    "figure-12": rlschert_holes.run,
    "figure-13": rlschert_killed.run,
    "worlds": rlschert_worlds.run,
    "table-3": rlschert_networks.run,
}
SYNTHETIC = "synthetic"
PARTS = (*LOGGED, SYNTHETIC)
#: Parts that are run only if they are named: they take minutes.
NAMED = ("worlds",)
#: Parts that train, and seeds if nothing else is said. Where all parts are run, only the first trains.
TRAINS = {"tables": 3, "table-3": 1, SYNTHETIC: 1}


def run(wanted: Wanted, parts: tuple[str, ...], seeds: int | None, path: Path | None) -> None:
    """Run some parts, or all: then whatever needs no training is done for the agents that exist.

    Args:
        wanted: who, and how; its seeds do not count.
        parts: names of `PARTS`; none = all.
        seeds: of agents that are to be trained.
        path: the logged jobs.

    Raises:
        BridgeError: there are no logged jobs, and a part needs them.
    """
    data = data_of(path) if not parts or any(part in LOGGED for part in parts) else None
    for part in PARTS:
        if part not in parts if parts else part in NAMED:
            continue
        trains = part in TRAINS and (part in parts or part == "tables")
        plan = replace(wanted, seeds=(TRAINS[part] if seeds is None else seeds) if trains else 0)
        if part == SYNTHETIC:
            rlschert_synthetic.run(plan, synthetic())
        elif data is not None:
            LOGGED[part](plan, data)
