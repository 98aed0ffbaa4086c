"""What the time-stepped pool knows by name: its heuristics and who kills. Plain data, instant to import."""

#: What the scheduler is called, on a command line and in files, besides its name.
ALIASES = {"slotted": "pool"}
#: Heuristics by number; `RANDOM` chooses among all slots and none, whether the job fits or not.
NAMES = ("sjf", "saf", "tetris", "tetris*", "random")
SJF, SAF, TETRIS, TETRIS_STAR, RANDOM = range(len(NAMES))
#: Those that answer anywhere; the random one draws, and only `bridge.pool.evaluate` does that.
HEURISTICS = tuple(name for k, name in enumerate(NAMES) if k != RANDOM)
#: Who kills jobs beside a heuristic: nobody, or the paper's rule, before every decision.
KILLS = ("none", "rule")
#: Weight of packing against shortness in Tetris*.
KNOB = 1e-6
