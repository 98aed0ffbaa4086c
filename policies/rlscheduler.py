"""RLScheduler: a network chooses which waiting job runs next.

D. Zhang, D. Dai, Y. He, F. S. Bao, B. Xie, "RLScheduler: An Automated HPC Batch Job Scheduler Using
Reinforcement Learning", SC 2020.

The paper's job features include memory, user, group and executable. Logs mostly lack them, and so do our job
records: these four are the constant 1, as the paper has absent ones. Its trajectory filtering, meant for one
log, is not part of this. The paper draws its training sequences from the whole log; here its last 40 % are
held out.
"""

from bridge.encode.encoder import Encoder
from bridge.fast.setup import Setup
from bridge.learn.recipe import Network, Recipe, Reward, Training, settings

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
    setup=Setup(order="fcfs", backfill="none", protocol="schedgym", preset="rlscheduler"),
    encoder=Encoder("pick", _PAPER, window=128, padding=_ABSENT),
    actor=Network("kernel", (32, 16, 8)),
    critic=Network("scalars", (32, 16, 8), (64, 32, 8)),
    reward=Reward("bsld", "plain", "end"),
    training=Training(epochs=100, part=(0.0, 0.5), validation=(0.5, 0.6)),
)

RECOMMENDED = PAPER.variant(
    "recommended",
    "Picks the next job, EASY backfills behind it; rewarded as bounded slowdowns accrue.",
    setup=Setup(order="fcfs", backfill="easy"),
    encoder=Encoder("pick", _OURS, window=64),
    critic=Network("pooled", (32, 16), (16,)),
    reward=Reward("bsld", "percentage", "time"),
    training=Training(
        epochs=60, learning_rate=1e-3, iterations=8, critic_iterations=8, minibatch=4096, target_kl=0.02
    ),
)

SETTINGS = settings(
    RECOMMENDED,
    PAPER,
    PAPER.variant(
        "backfilling", "The paper's, with EASY backfilling behind the picked job.", setup={"backfill": "easy"}
    ),
    PAPER.variant(
        "mlp",
        "The paper's rival: a flat network over all 128 jobs side by side.",
        actor=Network("places", (128, 128, 128)),
    ),
)
