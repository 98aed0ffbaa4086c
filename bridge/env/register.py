"""Makes the environments known to Gymnasium, when it is imported: `gymnasium.make("bridge/Backfill-v0")`.

`import bridge` sees to it (`bridge.base.gymnasium_hook`). Without any import, the name does the same:
`gymnasium.make("bridge:bridge/Backfill-v0")`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gymnasium.envs.registration import register, registry

from bridge.env.encoder import DecisionKind

if TYPE_CHECKING:
    pass

#: Each environment's decision.
ENVIRONMENTS: Mapping[str, "DecisionKind"] = {
    "bridge/Pick-v0": "pick",
    "bridge/Backfill-v0": "backfill",
    "bridge/PickAndBackfill-v0": "pick+backfill",
    "bridge/Inspect-v0": "inspect",
    "bridge/Preempt-v0": "preempt",
    "bridge/Trial-v0": "trial",
}

#: RLSchert's time-stepped pool.
PICK_OR_KILL = "bridge/PickOrKill-v0"

_SPECS: dict[str, tuple[str, dict[str, str]]] = {
    **{name: ("bridge.env.environment:Scheduling", {"decision": of}) for name, of in ENVIRONMENTS.items()},
    PICK_OR_KILL: ("bridge.pool.environment:PickOrKill", {}),
}
for _name, (_where, _options) in _SPECS.items():
    if _name not in registry:
        register(_name, entry_point=f"{_where}Env", vector_entry_point=f"{_where}VectorEnv", kwargs=_options)
