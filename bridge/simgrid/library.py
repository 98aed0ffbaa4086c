"""What SimGrid's Python bindings lack, taken from the C interface of the library that they have loaded."""

import ctypes
import functools
from pathlib import Path
from typing import Any

from bridge.simgrid.errors import ModelError

_P = ctypes.c_void_p
_S = ctypes.c_char_p
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "sg_host_by_name": (_P, [_S]),
    "sg_host_get_properties": (_P, [_P]),
    "sg_host_energy_plugin_init": (None, []),
    "sg_host_energy_update_all": (None, []),
    "sg_host_get_consumed_energy": (ctypes.c_double, [_P]),
    "sg_host_get_wattmin_at": (ctypes.c_double, [_P, ctypes.c_int]),
    "sg_mailbox_listen": (ctypes.c_int, [_S]),
    "sg_zone_get_root": (_P, []),
    "sg_zone_get_sons": (None, [_P, _P]),
    "sg_zone_get_hosts": (None, [_P, _P]),
    "sg_zone_get_property_value": (_S, [_P, _S]),
    "sg_host_get_name": (_S, [_P]),
    "xbt_dict_new_homogeneous": (_P, [_P]),
    "xbt_dict_free": (None, [_P]),
    "xbt_dict_cursor_first": (None, [_P, _P]),
    "xbt_dict_cursor_get_or_free": (ctypes.c_int, [_P, _P, _P]),
    "xbt_dict_cursor_step": (None, [_P]),
    "xbt_dynar_new": (_P, [ctypes.c_ulong, _P]),
    "xbt_dynar_free": (None, [_P]),
    "xbt_dynar_length": (ctypes.c_ulong, [_P]),
    "xbt_dynar_get_cpy": (None, [_P, ctypes.c_ulong, _P]),
}


@functools.cache
def simgrid_library() -> ctypes.CDLL:
    """Return libsimgrid as loaded by the bindings, with the functions used here declared.

    Raises:
        ModelError: it is not found, or is of a release whose C interface differs.
    """
    import simgrid  # noqa: F401 — loads the library, which is then looked up among the process's own

    library = ctypes.CDLL(_loaded_path())
    for name, (result, arguments) in _SIGNATURES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ModelError(
                f"SimGrid's library has no function {name}",
                where=_loaded_path(),
                remedy="Use SimGrid 3.32 (Debian 12: apt install python3-simgrid).",
            ) from None
        function.restype, function.argtypes = result, arguments
    return library


def _loaded_path() -> str:
    with Path("/proc/self/maps").open() as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if "/libsimgrid.so" in path:
                return path
    raise ModelError(
        "the SimGrid library is not among the loaded ones", remedy="Use the python3-simgrid package."
    )


@functools.cache
def host_pointer(name: str) -> int:
    """Return SimGrid's handle of a host."""
    pointer: int = simgrid_library().sg_host_by_name(name.encode())
    return pointer


def host_properties(name: str) -> dict[str, str]:
    """Return the properties of a host as the platform gives them."""
    library = simgrid_library()
    table = library.sg_host_get_properties(host_pointer(name))
    if not table:
        return {}
    found = {key: (ctypes.cast(data, _S).value or b"").decode() for key, data in _dict_items(table)}
    library.xbt_dict_free(ctypes.byref(_P(table)))
    return found


def zone_properties(names: list[str]) -> dict[str, dict[str, str]]:
    """Return, for every host, the properties of the zones around it; an inner zone overrides an outer one.

    Args:
        names: all property names that may occur; SimGrid only answers for a name.
    """
    if not names:
        return {}
    library = simgrid_library()
    found: dict[str, dict[str, str]] = {}
    todo: list[tuple[int, dict[str, str]]] = [(library.sg_zone_get_root(), {})]
    while todo:
        zone, inherited = todo.pop()
        values = {name: library.sg_zone_get_property_value(zone, name.encode()) for name in names}
        here = inherited | {name: value.decode() for name, value in values.items() if value is not None}
        for host in _zone_hosts(zone):
            found[host] = here
        children = library.xbt_dict_new_homogeneous(None)
        library.sg_zone_get_sons(zone, children)
        todo += [(data, here) for _, data in _dict_items(children)]
        library.xbt_dict_free(ctypes.byref(_P(children)))
    return found


def _zone_hosts(zone: int) -> list[str]:
    library = simgrid_library()
    dynar = library.xbt_dynar_new(ctypes.sizeof(_P), None)
    library.sg_zone_get_hosts(zone, dynar)
    hosts, slot = [], _P()
    for i in range(library.xbt_dynar_length(dynar)):
        library.xbt_dynar_get_cpy(dynar, i, ctypes.byref(slot))
        hosts.append(library.sg_host_get_name(slot).decode())
    library.xbt_dynar_free(ctypes.byref(_P(dynar)))
    return hosts


def _dict_items(table: int) -> list[tuple[str, int]]:
    library = simgrid_library()
    cursor, key, data = _P(), _S(), _P()
    items: list[tuple[str, int]] = []
    library.xbt_dict_cursor_first(table, ctypes.byref(cursor))
    while library.xbt_dict_cursor_get_or_free(ctypes.byref(cursor), ctypes.byref(key), ctypes.byref(data)):
        items.append(((key.value or b"").decode(), data.value or 0))
        library.xbt_dict_cursor_step(cursor)
    return items
