"""Who says that kernels are being compiled, so that nobody thinks that bridge hangs.

A command's terminal says it. In any other program it is an INFO record of the logger ``bridge``. If the
program has not set up logging, it is a line on stderr, and
``logging.getLogger("bridge").setLevel("WARNING")`` leaves it out. Then it counts what is compiled: on a
terminal in place, elsewhere by a line or a record now and then.
"""

import sys
import time
from collections.abc import Callable

from bridge.base.counted import counted

FIRST_TIME = "compiling the scheduler, once on this machine (up to a minute)…"
ANOTHER_PART = "compiling another part of the scheduler, once on this machine (up to a minute)…"

ELSEWHERE = "waiting for another process that is compiling the scheduler (up to a minute)…"


#: Between two lines about the progress, where they cannot be written in place, s.
PAUSE = 15.0


def log_line(text: str) -> None:
    """Log a line, or print it if no logging is set up."""
    import logging

    if _is_printed():
        print(f"bridge: {text}", file=sys.stderr, flush=True)
    else:
        logging.getLogger("bridge").info(text)


def _is_printed() -> bool:
    import logging

    logger = logging.getLogger("bridge")
    return not logger.hasHandlers() and logger.level <= logging.INFO


class CompileCounter:
    """Tells a program's user how many functions are compiled; a call of it is one that begins or ends."""

    def __init__(self) -> None:
        self._began_at = self._told_at = time.monotonic()

    def __call__(self, done: int, over: bool) -> None:
        """`done` functions are compiled, and if it is `over`, all that are needed now."""
        now = time.monotonic()
        text = f"{counted(done, 'function')} compiled, {now - self._began_at:.0f} s"
        if _is_printed() and sys.stderr.isatty():
            print(f"\r{' ' * len(text)}\r" if over else f"\r{text}", end="", file=sys.stderr, flush=True)
        elif now - self._told_at >= PAUSE:
            self._told_at = now
            log_line(text)


def on_compile_progress(tell: Callable[[int, bool], None]) -> None:
    """Tell from now on how many functions were compiled, and whether the kernel is done that needed them."""
    from numba.core import event

    class Count(event.Listener):
        def __init__(self) -> None:
            self._open, self._done = 0, 0

        def on_start(self, _event: event.Event) -> None:
            self._open += 1
            tell(self._done, False)

        def on_end(self, _event: event.Event) -> None:
            self._open -= 1  # of functions within each other
            self._done += 1
            tell(self._done, not self._open)

    event.register("numba:compile", Count())


def log_compiling(text: str) -> None:
    """Log that kernels are compiled, and from now on how many are."""
    log_line(text)
    on_compile_progress(CompileCounter())


_say: Callable[[str], None] = log_compiling
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
