"""Agents in the place of a rule of action: who gives way to the blocked head, and which job is tried next.

Ours. Both begin as the rule itself: its choice is the key of their score (`rule`), and everything else is a
linear correction that learns by evolution strategies. They have the rule's rights and believe what it
believes.
"""

from bridge.env.encoder import Encoder
from bridge.learn.recipe import EvolutionConfig, NetworkConfig, Recipe, Reward, TrainingConfig, settings
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: 1 for a candidate, 0 for the row that declines: no feature speaks of that one.
_OF = "(1 + min(rule, 0))"
#: Decades of seconds, around five minutes.
_LENGTH = "{}*(log10(max({}, 1))/2 - 1.5)"

#: How much more there is left of a candidate than of the head, in decades of node-seconds, halved.
_AREA = "{0}*max(-2, min(2, log10(max({1}, 1)*n/(2*max(head_t, 1)*max(head_n, 1)))))"
#: What is left by the user's last two runs, where orders believe √(request × those): their square over it.
_PREDICTED = "(rest + served)*(rest + served)/max(left + served, 1) - served"
#: Had less than 300 s: such jobs go first, and do not give way.
_YOUNG = "(1 - min(max({} - 299, 0), 1))"

#: Of a running job that may give way: what it has had and what is left of it, by request and by prediction,
#: against the head; its nodes against what the head lacks.
_VICTIM = {
    "key": f"0.2*max(rule, 0) - 0.1*{_OF}",
    "candidate": _OF,
    "predicted area": _AREA.format(_OF, _PREDICTED),
    "area": _AREA.format(_OF, "left"),
    "old, for a young head": f"{_OF}*(1 - {_YOUNG.format('served')})*{_YOUNG.format('head_served')}",
    "young": f"{_OF}*{_YOUNG.format('served')}",
    "served": _LENGTH.format(_OF, "served"),
    "too many": f"{_OF}*log10(max(n/max(head_n - free, 1), 1))",
    "gap": _LENGTH.format(_OF, "gap"),
}
#: Of a waiting job that may be tried: the smallest area first is the rule's order.
_TRIED = {
    "key": f"0.4*{_OF}*max(1 - 0.1*log10(max(t, 1)*n), 0.05)",
    "candidate": _OF,
    "rule": "max(rule, 0)",
    "length": _LENGTH.format(_OF, "t"),
    "nodes": f"{_OF}*log10(n)/2",
    "share": f"{_OF}*n/n_max",
    "wait": f"{_OF}*(log10(1 + w)/2 - 1.5)",
    "growth": f"{_OF}*log10(1 + w/max(t, 10))",
    "growth, short": f"{_OF}*log10(1 + w/600)",
    "safe": f"{_OF}*safe",
    "gap": _LENGTH.format(_OF, "gap"),
    "in time": f"{_OF}*max(-1, min(1, (gap - t)/max(t, 60)))",
    "length, queue": f"{_OF}*(log10(max(t, 1))/2 - 1.5)*log2(1 + waiting)/4",
    "nodes, queue": f"{_OF}*log10(n)*log2(1 + waiting)/8",
    "queue": f"{_OF}*(log2(1 + waiting)/8 - 0.5)",
}

PREEMPT = Recipe(
    "acting",
    "preempt",
    "ours",
    "Chooses which running job gives way to the blocked head, in place of hybrid(300).",
    setup=SchedulerConfig("saf", "easy", action="hybrid(300)", estimator="blended"),
    encoder=Encoder("preempt", _VICTIM, window=128, stop=True),
    actor=NetworkConfig("prior", ()),
    critic=NetworkConfig("none"),
    reward=Reward("wait", "percentage", "end"),
    algorithm="evolution",
    training=TrainingConfig(
        epochs=16,
        trajectories=12,
        length=256,
        validate_every=8,
        learning_rate=0.4,
        anneal=True,
        average=0.5,
    ),
    evolution=EvolutionConfig(pairs=5, sigma=0.7),
)

SETTINGS = settings(
    PREEMPT,
    PREEMPT.variant(
        "trial",
        "Chooses which waiting job is tried next as a guest, in place of guest(300).",
        setup={"action": "guest(300)"},
        encoder=Encoder("trial", _TRIED, window=128, stop=True),
        training={"epochs": 32, "trajectories": 24},
    ),
)
