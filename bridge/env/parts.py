"""The large kernels that the loop of a batch calls.

Compiled into the loop they would be hardly faster, and the compiler would work on it five times as long.
"""

from bridge.base.jit import apart
from bridge.env import rows
from bridge.worlds.fast import world

apply_action = apart(rows.apply_action)
encode = apart(rows.encode)
run_until_decision = apart(world.run_until_decision)
write_context = apart(rows.write_context)
