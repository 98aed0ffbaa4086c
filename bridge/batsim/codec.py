"""Codecs: bytes to typed events, typed decisions to bytes; one per dialect, a seam for Batsim 5.

The dialect that is spoken is in `bridge.batsim.batsim4`; its numbers, times and sets of hosts are read by
`bridge.wire`, as are those of the platform model.
"""

from collections.abc import Callable
from typing import Protocol

from bridge.batsim.batsim4 import Batsim4
from bridge.batsim.events import Message, Reply
from bridge.errors import BridgeError


class Codec(Protocol):
    """One dialect of the wire."""

    def greet(self, frame: bytes) -> bytes | None:
        """Return the dialect's own answer to a frame without events (a handshake), None for a message."""

    def decode(self, frame: bytes, number: int) -> Message:
        """Return a frame as a message.

        Args:
            frame: as received.
            number: its place among the messages, from 1, for errors.

        Raises:
            BridgeError: it is malformed, or says what the dialect does not have; the error names the place.
        """

    def encode(self, reply: Reply) -> bytes:
        """Return a reply as a frame."""


#: Dialect -> its codec.
DIALECTS: dict[str, Callable[[], Codec]] = {"batsim4": Batsim4}


def codec(dialect: str) -> Codec:
    """Return the codec of a dialect.

    Raises:
        BridgeError: there is none of this name.
    """
    if dialect not in DIALECTS:
        raise BridgeError(
            "unknown dialect of the wire", where=repr(dialect), remedy=f"Choose {', '.join(DIALECTS)}."
        )
    return DIALECTS[dialect]()
