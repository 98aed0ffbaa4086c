"""DRAS: a network picks the next job, and the jobs that are backfilled behind it.

Y. Fan, Z. Lan, T. Childers, P. Rich, W. Allcock, M. E. Papka, "Deep Reinforcement Learning for Cluster
Scheduling in HPC", IPDPS 2021.

Every node of the machine is a pair of inputs: whether it is available, and when it will be. Nodes have no
names here: those of the jobs that are believed to end first come first, free ones last. The learning rate is
a tenth of the paper's: at 1e-3 the policy of the large network is deterministic within the first episode.
"""

from bridge.env.encoder import Encoder
from bridge.learn.recipe import NetworkConfig, PolicyGradientConfig, Recipe, Reward, TrainingConfig, settings
from bridge.worlds.fast.scheduler_config import SchedulerConfig

_SOURCE = "Fan, Lan, Childers, Rich, Allcock & Papka, IPDPS 2021 (DRAS)"

#: §III-A: a waiting job. Priority is 1 from so many nodes on: a fifth of Theta is a capability job there.
WAITING = {"size": "n/n_max", "request": "t/86400", "priority": "min(1, n/n_max // 0.184)", "wait": "w/86400"}
#: Rewards: starving, large jobs and a full machine (Theta); the mean slowdown (DataStar).
THETA = "(w/z + n/n_max + min(1, used[0] + fits*n/n_max))/3"
DATASTAR = "-load"


def encoder(nodes: int) -> Encoder:
    """Return what DRAS sees of a machine of so many nodes: 4 W + 2 N numbers."""
    return Encoder(
        "pick+backfill",
        WAITING,
        window=50,
        running={"available": "0", "left": "left/86400"},
        running_rows=(nodes,),
        row_unit="unit",
        empty_row=(1.0, 0.0),
    )


BASE = Recipe(
    "dras",
    "theta",
    _SOURCE,
    "Picks and backfills; two inputs for each of Theta's 4,360 nodes.",
    guard="mask",
    setup=SchedulerConfig(order="fcfs", backfill="easy", blocked="held"),
    encoder=encoder(4360),
    actor=NetworkConfig("pairs", (4000, 1000)),
    algorithm="gradient",
    gradient=PolicyGradientConfig(THETA),
    reward=Reward("wait", "plain", "end"),
    training=TrainingConfig(
        part=(0.0, 0.84),
        epochs=100,
        trajectories=1,
        length=600,
        learning_rate=1e-4,
        gamma=0.99,
        validation=(0.0, 0.84),
        validate_every=20,
    ),
    test_from=0.86,
)

SETTINGS = settings(
    BASE,
    BASE.variant(
        "datastar",
        "Picks and backfills; two inputs for each of DataStar's 1,664 processors.",
        encoder=encoder(1664),
        actor=NetworkConfig("pairs", (1000, 250)),
        gradient=PolicyGradientConfig(DATASTAR),
    ),
)
