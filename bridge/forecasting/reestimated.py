"""A state in which running jobs are believed to take what their progress suggests."""

from dataclasses import replace

import numpy as np

from bridge.forecasting.state import MachineState
from bridge.scheduler.state import SECOND
from bridge.workload.running_beliefs import RunningBeliefs

#: Levels of a state that has no distributions: all but two thousandths lie at what is believed.
_LEVELS = (0.001, 0.999)


def with_beliefs(state: MachineState, beliefs: RunningBeliefs) -> MachineState:
    """Return the state after the last belief of each running job, by place; others stay as they are.

    A distribution keeps its shape and moves to its new median. One without distributions believes requests.
    """
    state.refuse_site("a progress series")
    levels, quantiles = state.levels, state.quantiles.copy()
    if not len(levels):
        levels = np.array(_LEVELS)
        quantiles = np.repeat(state.request[:, None] / SECOND, len(levels), axis=1)
    running = state.lengths.running.copy()
    for j in range(state.n_running):
        age = state.now - int(state.start[j])
        part = slice(int(beliefs.first[j]), int(beliefs.first[j + 1]))
        last = int(np.searchsorted(beliefs.after[part], age, side="right")) - 1
        if last < 0:
            continue
        total = min(
            max(int(beliefs.total[part][last]), age + SECOND), max(int(state.request[j]), age + SECOND)
        )
        running[j] = total
        quantiles[j] *= total / SECOND / float(np.interp(0.5, levels, quantiles[j]))
    lengths = replace(state.lengths, running=running, oracle=state.lengths.oracle or beliefs.synthetic)
    return replace(state, levels=levels, quantiles=quantiles, lengths=lengths)
