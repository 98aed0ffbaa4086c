"""RLBackfilling: a network chooses which waiting job is backfilled next, behind any order.

E. Kolker-Hicks, D. Zhang, D. Dai, "A Reinforcement Learning Based Backfilling Strategy for HPC Batch Jobs",
SC-W 2023.
"""

from bridge.env.encoder import Encoder
from bridge.learn.recipe import NetworkConfig, Recipe, Reward, TrainingConfig, settings
from bridge.worlds.fast.scheduler_config import SchedulerConfig

_SOURCE = "Kolker-Hicks, Zhang & Dai, SC-W 2023 (RLBackfilling)"

#: §3.3: wait, requested time, processors, request against the gap, processors against what is free, constant.
_PAPER = {
    "wait": "min(w/43200, 0.99999)",
    "request": "min(t/max_run, 0.99999)",
    "nodes": "min(n/n_max, 0.99999)",
    "gap": "min(t/(max(gap, 0) + 1), 1)",
    "free": "min(n/max(free, 1), 1)",
    "constant": "1",
}

#: The same in the public code: other caps, one second more in the gap, and no constant.
_CODE = {
    "wait": "min(w/43200, 0.99999)",
    "request": "min(t/max_run, 0.99999)",
    "nodes": "min(n/n_max, 0.99999)",
    "gap": "min(t/(gap + 2), 0.99999)",
    "free": "min(n/max(free, 1), 0.99999)",
    "constant": "0",
}

#: The same, told apart better: logarithms of times, what EASY would say, and how crowded the queue is.
_OURS = {
    "wait": "log10(1 + w)/5",
    "request": "log10(1 + t)/5",
    "nodes": "n/n_max",
    "size": "log2(1 + n)/log2(1 + n_max)",
    "growth": "log10(1 + w/max(t, 10))/3",
    "gap": "log10(1 + max(gap, 0))/5",
    "late": "max(-1, min(1, (t - gap)/3600))",
    "safe": "safe",
    "stop": "blocked",
    "free": "free/n_max",
    "left": "max(-1, (free - n)/n_max)",
    "extra": "min(extra/n_max, 1)",
    "waiting": "log2(1 + waiting)/8",
    "cost": "log10(1 + 10*cost)",
    "head wait": "log10(1 + head_w)/5",
    "head request": "log10(1 + head_t)/5",
    "head growth": "log10(1 + head_w/max(head_t, 10))/3",
    "head nodes": "head_n/n_max",
}

PAPER = Recipe(
    "rlbackfilling",
    "paper",
    _SOURCE,
    "Chooses the next job to backfill; the paper's features, network, reward and protocol.",
    setup=SchedulerConfig(order="fcfs", backfill="easy", protocol="schedgym", preset="rlbackfilling"),
    encoder=Encoder("backfill", _PAPER, window=128),
    actor=NetworkConfig("kernel", (32, 16, 8)),
    critic=NetworkConfig("flat", (32, 16, 8)),
    reward=Reward("bsld", "percentage", "end"),
    training=TrainingConfig(epochs=40),
    deploy="validated",
)

#: As the authors' code trains and tests. Its README has 400 episodes an epoch and 300 epochs; the last
#: weights decide, by sampling. It learns on the whole log behind FCFS heads, whatever the order, and its
#: rewards compare with FCFS and shortest-first backfilling.
CODE = PAPER.variant(
    "code",
    "Chooses the next job to backfill; environment, features and training as in the public code.",
    setup=SchedulerConfig(
        order="fcfs", backfill="easy", protocol="schedgym-code", preset="rlbackfilling", blocked="again"
    ),
    encoder=Encoder("backfill", _CODE, window=128, padding=(0.0, 1.0, 1.0, 1.0, 1.0, 0.0)),
    reward=Reward("bsld", "percentage", "end", base_order="fcfs", base_candidate_order="sjf"),
    training=TrainingConfig(
        epochs=300,
        trajectories=400,
        learning_rate=3e-4,
        part=(0.0, 1.0),
        validation=(0.0, 0.0),
        order="fcfs",
    ),
    deploy="sample",
    test_from=1.0,
)

#: Where the paper's words differ: its features, learning rate and best answers, and heads in the row's order.
WORDS = CODE.variant(
    "words",
    "As code, but where the paper's words differ: features, learning rate, arg max, heads in training.",
    encoder=Encoder("backfill", _PAPER, window=128),
    training={"learning_rate": 1e-3, "order": "", "trajectories": 100},
    deploy="greedy",
)

RECOMMENDED = PAPER.variant(
    "recommended",
    "Chooses the next job to backfill, or to stop; rewarded as bounded slowdowns accrue.",
    setup=SchedulerConfig(order="fcfs", backfill="easy"),
    encoder=Encoder("backfill", _OURS, window=64, stop=True),
    critic=NetworkConfig("pooled", (32, 16), (16,)),
    reward=Reward("bsld", "percentage", "time"),
    training=TrainingConfig(
        epochs=60,
        learning_rate=3e-3,
        critic_rate=3e-3,
        anneal=True,
        iterations=12,
        critic_iterations=12,
        minibatch=4096,
        target_kl=0.02,
        horizon=14_400.0,
        average=0.8,
    ),
)

SETTINGS = settings(RECOMMENDED, PAPER, CODE, WORDS)
