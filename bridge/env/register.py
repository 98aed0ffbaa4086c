"""Makes the environments known to Gymnasium, when it is imported: `gymnasium.make("bridge/Backfill-v0")`.

Without the import, the name does the same: `gymnasium.make("bridge.env.register:bridge/Backfill-v0")`.
"""

from collections.abc import Mapping

from gymnasium.envs.registration import register, registry

from bridge.encode.encoder import Decision

#: Each environment's decision.
ENVIRONMENTS: Mapping[str, Decision] = {
    "bridge/Pick-v0": "pick",
    "bridge/Backfill-v0": "backfill",
    "bridge/PickAndBackfill-v0": "pick+backfill",
    "bridge/Inspect-v0": "inspect",
}

for _name, _decision in ENVIRONMENTS.items():
    if _name not in registry:
        register(
            _name,
            entry_point="bridge.env.environment:SchedulingEnv",
            vector_entry_point="bridge.env.environment:SchedulingVectorEnv",
            kwargs={"decision": _decision},
        )

#: RLSchert's time-stepped pool.
PICK_OR_KILL = "bridge/PickOrKill-v0"

if PICK_OR_KILL not in registry:
    register(
        PICK_OR_KILL,
        entry_point="bridge.pool.environment:PickOrKillEnv",
        vector_entry_point="bridge.pool.environment:PickOrKillVectorEnv",
    )
