"""MRSch: a network predicts what picking a job will do to each resource, and picks by what is scarce now.

B. Li, Y. Fan, M. Dearing, Z. Lan, P. Rich, W. Allcock, M. Papka, "MRSch: Multi-Resource Scheduling for HPC",
IEEE CLUSTER 2022.

The paper's state has two inputs for every node and every unit of burst buffer (setting ``full``). The
default shows running jobs in their place, as SEM does. The goal (Eq. 1) is computed afresh at each decision.
The first pick that does not fit is reserved and held, EASY backfills behind it.
"""

from bridge.env.encoder import Encoder
from bridge.learn.recipe import (
    FuturePredictionConfig,
    NetworkConfig,
    PolicyGradientConfig,
    Recipe,
    Reward,
    TrainingConfig,
    settings,
)
from bridge.worlds.fast.scheduler_config import SchedulerConfig

_SOURCE = "Li, Fan, Dearing, Lan, Rich, Allcock & Papka, CLUSTER 2022 (MRSch)"
#: Burst buffer units of the paper's Theta.
UNITS = 1325

_WAITING = {"share": "share[r]", "request": "t/86400", "wait": "w/86400"}
#: Measurements and goal, in this order.
_MACHINE = {"used": "used[r]", "goal": "goal[r]"}
_ENCODER = Encoder(
    "pick",
    _WAITING,
    window=10,
    running={"share": "share[r]", "left": "left/86400"},
    running_rows=(34,),
    machine=_MACHINE,
    resources=0,
)

PAPER = Recipe(
    "mrsch",
    "default",
    _SOURCE,
    "Picks by predicted use of every resource, weighted by what is scarce; a small state.",
    setup=SchedulerConfig(order="fcfs", backfill="easy", blocked="held"),
    encoder=_ENCODER,
    actor=NetworkConfig("future", (256, 128, 128), (256,), (128, 128, 128)),
    reward=Reward("wait", "plain", "end"),
    training=TrainingConfig(
        epochs=40,
        trajectories=16,
        length=256,
        part=(0.0, 0.6),
        validation=(0.0, 0.6),
        validate_every=4,
        learning_rate=1e-4,
        curriculum=("sampled:10", "real:10", "synthetic:20"),
    ),
    test_from=0.6,
    algorithm="prediction",
    prediction=FuturePredictionConfig(every=4, least=0.02),
)

#: Ours: what tells candidates apart, the machine and the goal beside each of them.
_OURS = {
    "wait": "log10(1 + w)/5",
    "request": "log10(1 + t)/5",
    "share": "share[r]",
    "used": "used[r]",
    "goal": "goal[r]",
    "area": "log10(1 + t*n)/8",
    "growth": "log10(1 + w/max(t, 10))/3",
    "seniority": "w/z",
    "length": "log10(max(t, 1)/max(l, 1))/5",
    "fits": "fits",
    "waiting": "log2(1 + waiting)/8",
    "running": "log2(1 + running)/8",
}

#: The paper's rival: policy gradient on the mean use of the resources.
_SCALAR = PAPER.variant(
    "scalar",
    "The paper's rival: policy gradient on the mean use of two resources.",
    encoder={"machine": {"used": "used[r]"}, "resources": 2},
    actor=NetworkConfig("places", (256, 128)),
    training={"learning_rate": 3e-4, "gamma": 0.99, "curriculum": ()},
    algorithm="gradient",
    gradient=PolicyGradientConfig("(used[0] + used[1] + fits*(share[0] + share[1]))/2", instances=2),
)

SETTINGS = settings(
    PAPER,
    PAPER.variant(
        "ours",
        "One small network for every candidate, trained by PPO on waits as they accrue.",
        source="ours",
        encoder=Encoder("pick", _OURS, window=32, resources=0),
        actor=NetworkConfig("kernel", (32, 16, 8)),
        critic=NetworkConfig("pooled", (32, 16), (16,)),
        reward=Reward("wait", "percentage", "time"),
        training=TrainingConfig(
            epochs=40,
            trajectories=40,
            validate_every=4,
            iterations=8,
            critic_iterations=8,
            minibatch=4096,
            target_kl=0.02,
        ),
        algorithm="ppo",
    ),
    PAPER.variant(
        "cnn",
        "Figure 3: convolutions over the jobs' rows in place of the dense state module.",
        actor=NetworkConfig("future-cnn", (128, 128), (256,), (128, 128, 128)),
    ),
    PAPER.variant(
        "head",
        "As the public code: a pick that does not fit makes way for the oldest job.",
        setup={"blocked": "first"},
    ),
    PAPER.variant(
        "code",
        "As the public code: its reservation, a window of 4, and its way to predict.",
        setup={"blocked": "first"},
        encoder={"window": 4},
        prediction={
            "targets": "values",
            "offsets": (0, 1),
            "weights": (1.0, 1.0),
            "batch": 6,
            "consecutive": True,
            "linear": 200,
            "dueling": False,
        },
    ),
    PAPER.variant(
        "full",
        "The paper's network: two inputs for every node and burst buffer unit of Theta.",
        encoder={
            "running": {"available": "0", "left": "left/86400"},
            "places": (4360, UNITS),
            "by": "unit",
            "absent": (1.0, 0.0),
            "resources": 2,
        },
        actor=NetworkConfig("future", (4000, 1000, 512), (), (128, 128, 128)),
        prediction={"replay": 2_000},
    ),
    _SCALAR,
    _SCALAR.variant(
        "scalar-power",
        "The paper's rival: policy gradient on the mean use of three resources.",
        encoder={"resources": 3},
        gradient={"reward": "(used[0] + used[1] + used[2] + fits*(share[0] + share[1] + share[2]))/3"},
    ),
)
