"""What SimGrid's Python bindings lack, taken from the library that they have loaded."""

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError

_P, _S, _D, _I = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double, ctypes.c_int
#: SimGrid's kernel, the method that moves its clock, and the one that ends the actions that are over then.
_KERNEL = "_ZN7simgrid6kernel10EngineImpl9instance_E"
_SOLVE = "_ZNK7simgrid6kernel10EngineImpl5solveEd"
_END = "_ZNK7simgrid6kernel10EngineImpl20handle_ended_actionsEv"
#: Function -> type of the result, and of each argument.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "sg_host_by_name": (_P, _S),
    "sg_host_get_name": (_S, _P),
    "sg_host_get_property_value": (_S, _P, _S),
    "sg_host_is_on": (_I, _P),
    "sg_host_energy_plugin_init": (None,),
    "sg_host_energy_update_all": (None,),
    "sg_host_get_consumed_energy": (_D, _P),
    "sg_host_get_wattmin_at": (_D, _P, _I),
    "sg_mailbox_listen": (_I, _S),
    "sg_zone_get_by_name": (_P, _S),
    "sg_zone_get_hosts": (None, _P, _P),
    "sg_zone_get_property_value": (_S, _P, _S),
    _SOLVE: (_D, _P, _D),
    _END: (None, _P),
    "xbt_dynar_new": (_P, ctypes.c_ulong, _P),
    "xbt_dynar_free": (None, _P),
    "xbt_dynar_length": (ctypes.c_ulong, _P),
    "xbt_dynar_get_cpy": (None, _P, ctypes.c_ulong, _P),
}


@functools.cache
def simgrid_library() -> ctypes.CDLL:
    """Return libsimgrid as loaded by the bindings, with the functions used here declared.

    Raises BridgeError: it is not found, or is of a release whose C interface differs.
    """
    import simgrid  # noqa: F401 — loads the library, which is then looked up among the process's own

    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    path = next((line.split(maxsplit=5)[-1] for line in maps.splitlines() if "/libsimgrid.so" in line), "")
    if not path:
        what = "the SimGrid library is not among the loaded ones"
        raise BridgeError(what, remedy="Use the python3-simgrid package.")
    library = ctypes.CDLL(path)
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name, None)
        if function is None:
            remedy = "Use SimGrid 3.32 (Debian 12: apt install python3-simgrid)."
            raise BridgeError(f"SimGrid's library has no function {name}", where=path, remedy=remedy)
        function.restype, function.argtypes = result, arguments
    return library


def steps() -> tuple[Callable[[float], float], Callable[[], None]]:
    """Return two functions: one moves SimGrid's clock, one ends the actions that are over then.

    The first takes the latest date (s; -1: none) and stops at the next end before; it returns how much time
    passes (s; -1: there is no end).
    """
    library = simgrid_library()
    kernel = _P.in_dll(library, _KERNEL)
    solve, end = (functools.partial(getattr(library, name), kernel) for name in (_SOLVE, _END))
    return solve, end


@functools.cache
def host_pointer(name: str) -> int:
    pointer: int = simgrid_library().sg_host_by_name(name.encode())
    return pointer


def properties(kind: str, name: str, keys: list[str]) -> dict[str, str]:
    """Return the properties of a ``host`` or ``zone``; none if there is no such.

    SimGrid only answers for a key: give all that may occur.
    """
    library = simgrid_library()
    owner = {"host": library.sg_host_by_name, "zone": library.sg_zone_get_by_name}[kind](name.encode())
    value_of = getattr(library, f"sg_{kind}_get_property_value")
    values = [(key, value_of(owner, key.encode())) for key in keys] if owner else []
    return {key: value.decode(errors="backslashreplace") for key, value in values if value is not None}


def zone_hosts(name: str) -> list[str]:
    """Return the names of the hosts directly in a zone; none if there is no such zone."""
    library = simgrid_library()
    zone = library.sg_zone_get_by_name(name.encode())
    if not zone:
        return []
    dynar = library.xbt_dynar_new(ctypes.sizeof(_P), None)
    library.sg_zone_get_hosts(zone, dynar)
    hosts, slot = [], _P()
    for i in range(library.xbt_dynar_length(dynar)):
        library.xbt_dynar_get_cpy(dynar, i, ctypes.byref(slot))
        hosts.append(library.sg_host_get_name(slot).decode())
    library.xbt_dynar_free(ctypes.byref(_P(dynar)))
    return hosts
