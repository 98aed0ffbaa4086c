"""RLScheduler: a network chooses which waiting job runs next; for one log, or for logs that it never saw.

D. Zhang, D. Dai, Y. He, F. S. Bao, B. Xie, "RLScheduler: An Automated HPC Batch Job Scheduler Using
Reinforcement Learning", SC 2020.

The paper's job features include memory, user, group and executable. Logs mostly lack them, and so do our job
records: these four are the constant 1, as the paper has absent ones. Its trajectory filtering, meant for one
log, is not part of this. The paper draws its training sequences from the whole log; here its last 40 % are
held out.
"""

from bridge.env.encoder import Encoder
from bridge.learn.recipe import EvolutionConfig, NetworkConfig, Recipe, Reward, TrainingConfig, settings
from bridge.worlds.fast.scheduler_config import SchedulerConfig

_SOURCE = "Zhang, Dai, He, Bao & Xie, SC 2020 (RLScheduler)"

#: §4.2 (Table I) as in the public code; 1 stands for what a log does not tell.
_PAPER = {
    "wait": "min(w/43200, 0.99999)",
    "request": "min(t/max_run, 0.99999)",
    "nodes": "min(n/n_max, 0.99999)",
    "memory": "1",
    "user": "1",
    "group": "1",
    "executable": "1",
    "can run": "min(max(fits, 0.00001), 0.99999)",
}
#: An absent job: it has not waited, lacks nothing else, and cannot run.
_ABSENT = (0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)

#: The same, told apart better: logarithms, the job among its rivals, and how crowded queue and machine are.
_OURS = {
    "wait": "log10(1 + w)/5",
    "request": "log10(1 + t)/5",
    "nodes": "n/n_max",
    "size": "log2(1 + n)/log2(1 + n_max)",
    "area": "log10(1 + t*n)/8",
    "growth": "log10(1 + w/max(t, 10))/3",
    "seniority": "w/z",
    "length": "log10(max(t, 1)/max(l, 1))/5",
    "fits": "fits",
    "left": "max(-1, (free - n)/n_max)",
    "free": "free/n_max",
    "waiting": "log2(1 + waiting)/8",
    "running": "log2(1 + running)/8",
    "cost": "log10(1 + 10*cost)",
}

PAPER = Recipe(
    "rlscheduler",
    "paper",
    _SOURCE,
    "Picks the next job; the paper's features, kernel network, reward and protocol, no backfilling.",
    setup=SchedulerConfig(order="fcfs", backfill="none", protocol="schedgym", preset="rlscheduler"),
    encoder=Encoder("pick", _PAPER, window=128, padding=_ABSENT),
    actor=NetworkConfig("kernel", (32, 16, 8)),
    critic=NetworkConfig("scalars", (32, 16, 8), (64, 32, 8)),
    reward=Reward("bsld", "plain", "end"),
    training=TrainingConfig(epochs=100, part=(0.0, 0.5), validation=(0.5, 0.6)),
)

RECOMMENDED = PAPER.variant(
    "recommended",
    "Picks the next job, EASY backfills behind it; rewarded as bounded slowdowns accrue.",
    setup=SchedulerConfig(order="fcfs", backfill="easy"),
    encoder=Encoder("pick", _OURS, window=64),
    critic=NetworkConfig("pooled", (32, 16), (16,)),
    reward=Reward("bsld", "percentage", "time"),
    training=TrainingConfig(
        epochs=60, learning_rate=1e-3, iterations=8, critic_iterations=8, minibatch=4096, target_kl=0.02
    ),
)

#: The generalist's prior: smallest area first, and the sooner the longer a job has waited for its length.
_KEY = "0.4*log10(1 + w/max(t, 10)) - log10(max(t, 1)*n)"

#: Free of scale: nothing depends on how large the machine is. Lengths, sizes and growths in decades, also
#: times how crowded the queue and the machine are: the exponents of an order that changes with them.
_GENERAL = {
    "key": _KEY,
    "length": "log10(max(t, 1))",
    "size": "log10(n/n_max)",
    "nodes": "3*n/n_max",
    "growth": "log10(1 + w/max(t, 10))",
    "wait": "log10(1 + w)/2",
    "seniority": "w/z",
    "fits": "fits",
    "in time": "max(-1, min(1, (gap - t)/max(t, 60)))",
    "length, queue": "log10(max(t, 1))*log2(1 + waiting)/8",
    "size, queue": "log10(n/n_max)*log2(1 + waiting)/8",
    "growth, queue": "log10(1 + w/max(t, 10))*log2(1 + waiting)/8",
    "length, machine": "log10(max(t, 1))*log2(1 + running)/8",
    "size, machine": "log10(n/n_max)*log2(1 + running)/8",
    "length, behind": "log10(max(t, 1))*min(gap, 1)",
    "size, behind": "log10(n/n_max)*min(gap, 1)",
    "size, free": "log10(n/n_max)*free/n_max",
}

#: For several logs (`Training.logs`). EASY's guard is kept, so it delays no reservation: it is an order, but
#: one that sees the machine and the queue. It begins as the rule of its key.
GENERALIST = RECOMMENDED.variant(
    "generalist",
    "Picks and backfills by one order that sees queue and machine; made for several logs at once.",
    setup=SchedulerConfig(order="saf", backfill="easy"),
    encoder=Encoder("pick+backfill", _GENERAL, window=48),
    actor=NetworkConfig("prior", ()),
    critic=NetworkConfig("none"),
    guard="mask",
    algorithm="evolution",
    training=TrainingConfig(
        epochs=60,
        trajectories=36,
        length=384,
        min_base_metric=1.5,
        validate_every=10,
        learning_rate=0.25,
        anneal=True,
        average=0.8,
    ),
    evolution=EvolutionConfig(pairs=6, sigma=1.0),
)

SETTINGS = settings(
    RECOMMENDED,
    PAPER,
    GENERALIST,
    PAPER.variant(
        "backfilling", "The paper's, with EASY backfilling behind the picked job.", setup={"backfill": "easy"}
    ),
    PAPER.variant(
        "mlp",
        "The paper's rival: a flat network over all 128 jobs side by side.",
        actor=NetworkConfig("places", (128, 128, 128)),
    ),
)
