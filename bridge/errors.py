"""The one error type a user sees: what is wrong, where, and what to do about it."""

from contextlib import AbstractContextManager

#: Characters of an error, at most: it may quote an input of any length.
MOST = 2000
#: Of these what is wrong, where, and the remedy have so many.
_WHAT, _WHERE, _REMEDY = 900, 400, 680


class BridgeError(Exception):
    """A mistake in the input or the surroundings that the user can mend.

    Args:
        what: what is wrong, in one sentence without a full stop.
        where: the place: a file, ``file:line``, a job, an option. Empty if there is none.
        remedy: what the user can do about it. Empty if nothing is known.
        status: the exit status of the process that it ends.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "", status: int = 1) -> None:
        what, remedy = bounded(what, _WHAT), bounded(remedy, _REMEDY)
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy
        self.status = status

    def __str__(self) -> str:
        text = f"{bounded(self.where, _WHERE)}: {self.what}" if self.where else self.what
        return f"{text}\n  {self.remedy}" if self.remedy else text


def bounded(text: str, most: int = MOST) -> str:
    """Return a text, without its middle if it is longer than so many characters."""
    if len(text) <= most:
        return text
    return f"{text[: most * 3 // 4]} […] {text[-(most // 4 - 5) :]}"


class _Placed:
    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        """Nothing happens until an error comes."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, BridgeError):
            error.where = ": ".join(filter(None, (self._where, error.where)))


def placed(where: str) -> AbstractContextManager[None]:
    """Put a place before that of every BridgeError that is raised within: ``file``, then ``file: job 7``."""
    return _Placed(where)
