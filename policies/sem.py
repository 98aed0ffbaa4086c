"""SEM: DRAS with a state that shows running jobs in place of nodes.

B. Li, Y. Fan, M. Dearing, Z. Lan, P. Rich, W. Allcock, M. Papka, "Encoding for Reinforcement Learning Driven
Scheduling", 2022.

A machine has far fewer running jobs than nodes, so that the state no longer grows with the machine. The
setting ``resources`` is the paper's outlook: demand is a fraction of every resource, for jobs that wait and
that run.
"""

from dataclasses import replace

from bridge.env.encoder import Encoder
from bridge.learn.recipe import NetworkConfig, PolicyGradientConfig, settings
from bridge.policies import dras
from bridge.policies.dras import BASE, DATASTAR, THETA, WAITING

_SOURCE = "Li, Fan, Dearing, Lan, Rich, Allcock & Papka, 2022 (SEM)"


def encoder(running: int) -> Encoder:
    """Return what SEM sees: 4 W + 2 K numbers, of the K largest running jobs."""
    running_features = {"size": "n/n_max", "left": "left/86400"}
    return replace(dras.encoder(running), running=running_features, row_unit="job", empty_row=())


_THETA = replace(
    BASE,
    name="sem",
    source=_SOURCE,
    summary="Picks and backfills; two inputs for each of the 34 jobs that fit on Theta at once.",
    encoder=encoder(34),
    actor=NetworkConfig("pairs", (200, 100)),
    training=replace(BASE.training, learning_rate=1e-3),
)

SETTINGS = settings(
    _THETA,
    _THETA.variant(
        "datastar",
        "Picks and backfills; the 40 largest running jobs of DataStar.",
        encoder=encoder(40),
        gradient=PolicyGradientConfig(DATASTAR),
    ),
    _THETA.variant(
        "atlas", "Picks and backfills; the 40 largest running jobs of Atlas.", encoder=encoder(40)
    ),
    _THETA.variant(
        "resources",
        "Picks and backfills over any number of resources; the 34 largest running jobs.",
        encoder={
            "features": {"share": "share[r]", **{k: v for k, v in WAITING.items() if k != "size"}},
            "running": {"share": "share[r]", "left": "left/86400"},
            "resources": 0,
        },
        actor=NetworkConfig("places", (200, 100)),
        gradient=PolicyGradientConfig(THETA),
    ),
)
