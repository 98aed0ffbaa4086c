"""Kinds of decision that a pass waits for, and stages of a pass, as both kinds of state have them."""

#: Kinds of decision that `bridge.scheduler.core.advance` returns.
NOTHING, PICK, INSPECT, BACKFILL = 0, 1, 2, 3
#: Beside them: an order in Python must score the waiting jobs; ``env.work`` is used up, for a look at Ctrl-C.
SCORE, PAUSE = 4, -2
#: And on a cluster: `bridge.scheduler.cluster_bookings` must carry out the pass, a kernel that few need.
BOOK = 5
#: Of a scheduler that may stop jobs: which running job gives way to the blocked head; which is tried next.
PREEMPT, TRIAL = 6, 7
#: The answer "none of them": do not pick, reject, stop backfilling.
DECLINE = -1

#: Stages of a pass, ``env.phase``.
PHASE_IDLE, PHASE_PICK, PHASE_INSPECT, PHASE_TRY, PHASE_BACKFILL, PHASE_BOOK = 0, 1, 2, 3, 4, 5
PHASE_TRIAL = 6
