"""SchedInspector: a network lets the base order's pick pass, or rejects it for a while.

D. Zhang, D. Dai, B. Xie, "SchedInspector: A Batch Job Scheduling Inspector Using Reinforcement Learning",
HPDC 2022.
"""

from dataclasses import replace

from bridge.env.encoder import Encoder
from bridge.learn.recipe import NetworkConfig, Recipe, Reward, TrainingConfig, settings
from bridge.policies import rlbackfilling
from bridge.worlds.fast.scheduler_config import SchedulerConfig

_SOURCE = "Zhang, Dai & Xie, HPDC 2022 (SchedInspector)"

#: §3.3, "manual" features; the queue delay is scaled as in the public code.
MANUAL = {
    "wait": "min(w/43200, 0.99999)",
    "run": "min(t/max_run, 0.99999)",
    "nodes": "min(n/n_max, 0.99999)",
    "free nodes": "min(free/n_max, 0.99999)",
    "runnable": "min(max(fits, 0.00001), 0.99999)",
    "skip time": "min(rejects*600/43200, 1)",
    "queue delay": "min(600*cost/(60*128), 0.99999)",
}
#: The eighth of the paper: 0 without backfilling.
BACKFILLABLE = {"backfilling contributions": "min(backfillable/128, 0.99999)"}
#: As `MANUAL`, where the metric is the wait: the public code's queue delay is then the sum of the delays.
FOR_WAIT = {**MANUAL, "queue delay": "min(waiting/128, 0.99999)"}
#: Figure 5: job and machine as they are, without the two derived features.
NATIVE = {name: MANUAL[name] for name in ("wait", "run", "nodes", "free nodes")}
#: Figure 5: job and machine beside every waiting and running job, as they are.
_STATE = Encoder(
    "inspect",
    NATIVE,
    running={"left": "min(left/max_run, 1)", "nodes": "n/n_max"},
    running_rows=(64,),
    queued={"wait": NATIVE["wait"], "run": NATIVE["run"], "nodes": NATIVE["nodes"]},
    queued_rows=128,
)
#: Figure 5: the native ones with what tells whether the job can run.
COMPACTED = {name: MANUAL[name] for name in ("wait", "run", "nodes", "free nodes", "runnable")}

#: The same, told apart better: logarithms, and who else waits.
_OURS = {
    "wait": "log10(1 + w)/5",
    "run": "log10(1 + t)/5",
    "size": "log2(1 + n)/log2(1 + n_max)",
    "free nodes": "free/n_max",
    "left": "max(-1, (free - n)/n_max)",
    "runnable": "fits",
    "growth": "log10(1 + w/max(t, 10))/3",
    "rejections": "log2(1 + rejects)/6",
    "waiting": "log2(1 + waiting)/8",
    "queue delay": "log10(1 + 10*cost)",
    "backfillable": "log2(1 + backfillable)/8",
}

PAPER = Recipe(
    "schedinspector",
    "paper",
    _SOURCE,
    "Rejects picks of SJF; the paper's features, network, reward and protocol.",
    setup=SchedulerConfig(order="sjf", backfill="none", protocol="schedgym", preset="schedinspector"),
    encoder=Encoder("inspect", {**MANUAL, **BACKFILLABLE}),
    actor=NetworkConfig("kernel", (32, 16, 8)),
    critic=NetworkConfig("kernel", (32, 16, 8)),
    reward=Reward("bsld", "percentage", "end"),
    training=TrainingConfig(epochs=40, length=128, part=(0.0, 0.2), validation=(0.0, 0.2)),
    deploy="sample",
    test_from=0.2,
)

#: As the authors' code trains: seven features, its own reward, no cap on rejections, the free tail, episodes
#: of more than 1,280 decisions discarded, the first 10,000 jobs, 4,000 epochs, the last weights.
CODE = PAPER.variant(
    "code",
    "Rejects picks of SJF; environment, features, reward and training as in the public code.",
    setup={"protocol": "schedgym-code"},
    encoder=Encoder("inspect", MANUAL),
    reward=Reward("bsld", "relative", "end"),
    training=TrainingConfig(
        epochs=4000,
        length=128,
        learning_rate=3e-4,
        part=(0.0, 1.0),
        first_jobs=10_000,
        max_decisions=1280,
        validation=(0.0, 0.0),
    ),
    test_from=1.0,
)

RECOMMENDED = PAPER.variant(
    "recommended",
    "Rejects picks of SJF; rewarded as bounded slowdowns accrue.",
    setup=SchedulerConfig(order="sjf", backfill="none"),
    encoder=Encoder("inspect", _OURS),
    critic=NetworkConfig("kernel", (32, 32, 16)),
    reward=Reward("bsld", "percentage", "time"),
    training=replace(
        rlbackfilling.RECOMMENDED.training,
        trajectories=60,
        horizon=172_800.0,
        initial_reject_rate=0.7,
        warmup=1,
        average=0.5,
    ),
    test_from=0.6,
)


SETTINGS = settings(
    RECOMMENDED,
    PAPER,
    RECOMMENDED.variant(
        "priced",
        "As recommended, with a price on nodes that are idle while a waiting job fits.",
        reward={"idle": 100.0},
        # who begins by holding most jobs back pays so much for it that the rest is not learnt (HPC2N)
        training={"rejecting": 0.1},
    ),
    CODE,
    CODE.variant(
        "code-wait",
        "As code, for the mean wait: the queue delay follows the metric.",
        encoder=Encoder("inspect", FOR_WAIT),
        reward={"metric": "wait"},
    ),
    PAPER.variant("native", "Figure 5: native features.", encoder=Encoder("inspect", NATIVE)),
    CODE.variant(
        "code-state",
        "Figure 5: the whole state, waiting and running jobs, in the code's environment.",
        encoder=_STATE,
        actor=NetworkConfig("places", (32, 16, 8)),
        critic=NetworkConfig("flat", (32, 16, 8)),
    ),
    PAPER.variant("compacted", "Figure 5: compacted features.", encoder=Encoder("inspect", COMPACTED)),
    PAPER.variant("winloss", "Figure 6: win or loss as the reward.", reward={"form": "winloss"}),
    PAPER.variant("nativereward", "Figure 6: the difference as the reward.", reward={"form": "native"}),
    PAPER.variant("wait", "Figure 9: mean wait as the target.", reward={"metric": "wait"}),
    PAPER.variant(
        "maxbsld", "Figure 9: largest bounded slowdown as the target.", reward={"metric": "bsld.max"}
    ),
    PAPER.variant(
        "backfilling", "Figure 11: on top of SJF with EASY backfilling.", setup={"backfill": "easy"}
    ),
    PAPER.variant(
        "slurm",
        "Figure 12: on top of Slurm's multifactor priority with backfilling.",
        setup={"order": "slurm", "backfill": "easy"},
    ),
)
