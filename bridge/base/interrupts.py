"""Ctrl-C, SIGTERM and SIGHUP end the work in hand once; what there is of it is written undisturbed."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Whoever asks so often means it, whatever is lost.
_INSISTING = 4
#: Seconds in which machine code has to return after a signal, where `ends_anyway` watches it.
_GRACE = 2.0
#: Exit status of a command that was interrupted.
_INTERRUPTED = 130


class Interrupts:
    """Requested exit status of a signal; 0 if there was none.

    `held`: signals are only noted: results are being written.
    """

    def __init__(self) -> None:
        self.status, self.held, self._times = 0, False, 0

    def take(self, number: int, _frame: object) -> None:
        """Take a signal: the first one ends the work, by KeyboardInterrupt."""
        self._times += 1
        first, self.status = not self.status, self.status or 128 + number
        if (first and not self.held) or self._times >= _INSISTING:
            raise KeyboardInterrupt


_current = Interrupts()
_inside = False


@contextmanager
def interrupts_once() -> Iterator[Interrupts]:
    """Have signals raise KeyboardInterrupt once within the block; no change in a thread or within another.

    A signal that is ignored outside stays ignored: nohup and background jobs of a shell ask for that.
    """
    global _current, _inside
    if _inside or threading.current_thread() is not threading.main_thread():
        yield _current
        return
    _current = Interrupts()
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _current.take) for number in heard}
    _inside = True
    try:
        yield _current
    finally:
        _current, _inside = Interrupts(), False
        for number, handler in before.items():
            signal.signal(number, handler)


def raise_if_interrupted() -> None:
    """Raise the KeyboardInterrupt of an earlier signal again: long work calls this between its steps.

    Python drops an exception that is raised in a destructor or in a callback of compiled code.
    """
    if _current.status and not _current.held:
        raise KeyboardInterrupt


def hold_interrupts() -> None:
    """Have signals do nothing any more, up to the end of `interrupts_once`: results are being written."""
    _current.held = True


@contextmanager
def ends_anyway(last_words: Callable[[], None]) -> Iterator[Callable[[bool], None]]:
    """Yield a switch; while it is on, a signal ends the process even if machine code does not return.

    Python hears of a signal only between its own instructions, and LLVM compiles a kernel in one call of up
    to half a minute. Only for work that can be killed at any time. `last_words` is called before the end.
    No change in a thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda _: None
        return
    is_off = threading.Event()
    is_off.set()
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)

    def watch() -> None:
        while number := os.read(reads, 1):
            if number[0] in _SIGNALS and not is_off.wait(_GRACE):
                last_words()
                os._exit(_INTERRUPTED)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda on: is_off.clear() if on else is_off.set()
    finally:
        is_off.set()
        signal.set_wakeup_fd(before)
        os.close(writes)  # ends the thread
        thread.join()
        os.close(reads)
