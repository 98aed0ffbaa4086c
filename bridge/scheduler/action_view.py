"""What agents see of a rule of action: what it would choose at their decision."""

from bridge.base.arrays import Array
from bridge.base.jit import inner
from bridge.scheduler.action_state import ActionState
from bridge.scheduler.actions import LAS
from bridge.scheduler.preemption_rules import choose_by_rule
from bridge.scheduler.score import Op, prepare_variable
from bridge.scheduler.state import STACK


@inner
def action_prepare_variable(
    state: ActionState, b: int, op: int, r: int, place: int, which: Array, n: int
) -> None:
    """Write variable `op` for jobs ``which[:n]`` where programs look, see `prepare_variable`."""
    if op != Op.RULE:
        prepare_variable(state, b, op, r, place, which, n)
        return
    out = state.stack[STACK + place]
    n_candidates = min(n, state.scalars[b].n_candidates)
    for i in range(n):
        out[i] = 0.0 if i < n_candidates else -1.0
    if state.action[0].kind < LAS:  # TRIAL: it tries the first one
        if n_candidates > 0:
            out[0] = 1.0
    elif state.scalars[b].head >= 0:
        for k in range(choose_by_rule(state, b)):
            for i in range(n_candidates):
                if which[i] == state.chosen[k]:
                    out[i] = 1.0
