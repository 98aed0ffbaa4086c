"""Who says that kernels are being compiled, so that nobody thinks that bridge hangs.

A command's terminal says it. In any other program it is an INFO record of the logger ``bridge``. If the
program has not set up logging, it is a line on stderr, and
``logging.getLogger("bridge").setLevel("WARNING")`` leaves it out.
"""

import sys
from collections.abc import Callable

FIRST_TIME = "compiling the scheduler, once on this machine (up to a minute)…"
ANOTHER_PART = "compiling another part of the scheduler, once on this machine (up to a minute)…"

ELSEWHERE = "waiting for another process that is compiling the scheduler (up to a minute)…"


def log_line(text: str) -> None:
    """Log a line, or print it if no logging is set up."""
    import logging

    logger = logging.getLogger("bridge")
    if logger.hasHandlers():
        logger.info(text)
    elif logger.level <= logging.INFO:
        print(f"bridge: {text}", file=sys.stderr, flush=True)


_say: Callable[[str], None] = log_line
_is_announced = False


def announce_by(say: Callable[[str], None]) -> None:
    """Have `say` take the announcement from now on: the next one is the first again."""
    global _say, _is_announced
    _say, _is_announced = say, False


def announce(text: str) -> None:
    """Announce that a kernel is compiled, once in this process: those after it follow closely."""
    global _is_announced
    if not _is_announced:
        _is_announced = True
        _say(text)
