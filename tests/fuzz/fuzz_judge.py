"""What a reader may do with an input: give a value, or one `BridgeError` to show; soon, and silently."""

import multiprocessing
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

import bridge
from bridge.base.errors import BridgeError

#: Longest message of an error, characters.
LONGEST_MESSAGE = 2000
#: CPU time that one input may take, seconds.
LIMIT = 5.0
#: Time after which a process that has not gone on hangs in compiled code, where no signal is heard, seconds.
PATIENCE = 30.0
#: Warnings that nobody reads: they say that a computation went wrong, or a text was taken for code.
LOUD = (RuntimeWarning, SyntaxWarning)
_PACKAGE = str(Path(bridge.__file__).parent)

Reader = Callable[[bytes, Path], object]


class Hang(BaseException):
    """An input took longer than `LIMIT`; no reader catches it with what else goes wrong."""


class Lost(Exception):  # noqa: N818
    """A value came back otherwise than it was written."""


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise Hang(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _place(error: BaseException) -> str:
    """Return the innermost line of bridge that an error went through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(_PACKAGE)]
    return f" ({Path(frames[-1].filename).name}, {frames[-1].name})" if frames else ""


def complaint(reader: Reader, data: bytes, folder: Path, limit: float = LIMIT) -> str:
    """Return what a reader does wrong with an input, "" for nothing; alike for alike faults."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        for kind in LOUD:
            warnings.simplefilter("always", kind)
        try:
            with _bounded(limit):
                reader(data, folder)
        except BridgeError as error:
            message = str(error)
            if len(message) > LONGEST_MESSAGE:
                return f"a message of more than {LONGEST_MESSAGE} characters{_place(error)}"
            try:
                message.encode()
            except UnicodeEncodeError:
                return f"a message that cannot be printed{_place(error)}"
        except Lost as error:
            return f"lost: {error}"
        except (Exception, Hang) as error:
            return f"{type(error).__name__}{_place(error)}"
    if caught:
        return f"{caught[0].category.__name__} ({Path(caught[0].filename).name})"
    return ""


Outcomes = Iterator[tuple[int, str]]


def _send(outcomes: Outcomes, sender: Connection) -> None:
    for outcome in outcomes:
        sender.send(outcome)
    sender.send(None)


def in_child(outcomes: Outcomes, first: int) -> Outcomes:
    """Yield what outcomes (input, complaint) from the `first` input on are, computed in a process of its own.

    It may hang in compiled code, or die: that is the last outcome then.
    """
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_send, args=(outcomes, sender))
    process.start()
    sender.close()
    try:
        while receiver.poll(PATIENCE):
            outcome = receiver.recv()
            if outcome is None:
                return
            yield outcome
            first = outcome[0] + 1
        yield first, "Hang in compiled code"
    except EOFError:
        yield first, "the process died"
    finally:
        process.kill()
        process.join()


def reduced(reader: Reader, data: bytes, folder: Path, tries: int = 200) -> bytes:
    """Return a smaller input with the same complaint: lines, then parts that are left out."""
    fault = complaint(reader, data, folder)
    if fault.startswith("Hang"):
        return data

    def is_same(smaller: bytes) -> bool:
        return bool(smaller) and complaint(reader, smaller, folder) == fault

    for separator in (b"\n", b""):
        parts = data.split(separator) if separator else [data[k : k + 1] for k in range(len(data))]
        size = max(len(parts) // 2, 1)
        while size and tries > 0:
            k = 0
            while k < len(parts) and tries > 0:
                tries -= 1
                smaller = parts[:k] + parts[k + size :]
                if is_same(separator.join(smaller)):
                    parts = smaller
                else:
                    k += size
            size //= 2
        data = separator.join(parts)
    return data
