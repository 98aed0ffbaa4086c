"""What metrics are called on a study's page, and in which unit they stand there."""

#: Metric → (heading, factor, digits); others as they are.
HEADS = {
    "bsld": ("mean bounded slowdown", 1.0, 2),
    "slowdown": ("mean slowdown", 1.0, 2),
    "wait": ("mean wait, h", 1 / 3600, 2),
    "completion": ("mean completion, steps", 1.0, 2),
    "turnaround": ("mean turnaround, h", 1 / 3600, 2),
    "utilisation": ("utilisation, %", 100.0, 1),
    "utilisation.burst_buffer": ("burst buffer, %", 100.0, 1),
    "utilisation.power": ("power, %", 100.0, 1),
    "idle.fitting": ("idle while a job fits, %", 100.0, 1),
    "bsld.600": ("bounded slowdown, τ = 600 s", 1.0, 2),
    "slowdown.long": ("slowdown, jobs above 1 h", 1.0, 2),
    "wait.area": ("area-weighted wait, h", 1 / 3600, 2),
    "bsld.user.max": ("worst user, bounded slowdown", 1.0, 1),
    "bsld.size.max": ("worst size class, bounded slowdown", 1.0, 1),
    "utilisation.useful": ("useful utilisation, %", 100.0, 1),
    "waste": ("waste, %", 1.0, 2),
    "lost": ("lost node-h", 1.0, 1),
    "preemptions": ("preemptions a job", 1.0, 2),
    "bsld.max": ("largest bounded slowdown", 1.0, 1),
    "wait.max": ("longest wait, h", 1 / 3600, 1),
    "wait.small": ("mean wait of the small quarter, h", 1 / 3600, 2),
    "wait.large": ("mean wait of the large quarter, h", 1 / 3600, 2),
}


def heading(metric: str) -> str:
    return HEADS.get(metric, (metric, 1.0, 3))[0]


def is_share(metric: str) -> bool:
    """Tell whether a metric is a share: its differences are points, of which percentages say nothing."""
    return heading(metric).endswith(", %")
