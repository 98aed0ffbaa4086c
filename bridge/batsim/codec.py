"""Codecs: bytes to typed events, typed decisions to bytes, and back; one per version of Batsim.

The versions are in `bridge.dialects`; numbers, times and sets of hosts are read by `bridge.wire`, as are
those of the platform model.
"""

from typing import Protocol

from bridge.batsim.events import Message, Reply
from bridge.errors import BridgeError

#: Names of the dialects; the first frame tells which one it is.
DIALECTS = ("batsim4", "batsim5")


class Codec(Protocol):
    """One dialect of the wire, for one simulation."""

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

    def decode_reply(self, frame: bytes, number: int) -> Reply:
        """Return the other direction's frame, as a decision process sent it; see `decode`."""

    def encode_message(self, message: Message) -> bytes:
        """Return a message as the frame that the platform would have sent."""


def codec(dialect: str, *, registers: bool = False) -> Codec:
    """Return the codec of a dialect.

    Args:
        dialect: one of `DIALECTS`.
        registers: jobs will be registered, for which Batsim 5 must be asked.

    Raises:
        BridgeError: there is none of this name.
    """
    if dialect == "batsim4":
        from bridge.dialects.batsim4 import Batsim4

        return Batsim4()
    if dialect == "batsim5":
        from bridge.dialects.batsim5 import Batsim5

        return Batsim5(registers)
    raise BridgeError(
        "unknown dialect of the wire", where=repr(dialect), remedy=f"Choose {', '.join(DIALECTS)}."
    )


def spoken(frame: bytes) -> str:
    """Return the dialect that a first frame is in: Batsim 5 sends a length and a text, 4 a message."""
    text = len(frame) - 4
    return "batsim5" if text >= 0 and int.from_bytes(frame[:4], "little") == text else "batsim4"
