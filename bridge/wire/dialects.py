"""Dialects of the wire: how each version of Batsim spells what `bridge.wire.events` says, and which it is.

Numbers, times and sets of hosts are read by `bridge.wire`, as are those of the platform model.
"""

from typing import TYPE_CHECKING

from bridge.base.errors import BridgeError

if TYPE_CHECKING:
    from bridge.wire.json_codec import JsonCodec

#: Names of the dialects; the first frame tells which one it is.
DIALECTS = ("batsim4", "batsim5")


def codec(dialect: str, *, registers: bool = False) -> "JsonCodec":
    """Return the codec of one of `DIALECTS`; `registers`: jobs will be registered, as Batsim 5 must allow."""
    if dialect == "batsim4":
        from bridge.wire.batsim4 import Batsim4

        return Batsim4()
    if dialect == "batsim5":
        from bridge.wire.batsim5 import Batsim5

        return Batsim5(registers)
    remedy = f"Choose {', '.join(DIALECTS)}."
    raise BridgeError("unknown dialect of the wire", where=repr(dialect), remedy=remedy)
