"""The large kernels that the loop of a batch calls.

Compiled into the loop they would be hardly faster, and the compiler would work on it five times as long.
"""

from bridge.base.jit import apart
from bridge.env import rows
from bridge.worlds.fast import world

apply_action = apart(rows.apply_action)
delays_head = rows.delays_head
encode = apart(rows.encode)
key_rows = rows.key_rows
list_rows = rows.list_rows
run_until_decision = apart(world.run_until_decision)
write_context = apart(rows.write_context)
