"""What SimGrid's document type allows: attributes of each tag with their kinds, and the order of elements.

Source: simgrid.dtd of SimGrid 3.32 and the parser made from it. The parser enforces it to the letter: an
unknown attribute or a link after a route stops the simulation.
"""

import dataclasses
from collections.abc import Mapping

#: Kinds of values besides a list of choices; SimGrid reads each in its own way (see `values.py`).
KINDS = ("text", "bandwidth", "bandwidths", "time", "speed", "speeds", "whole", "real", "file", "coordinates")


@dataclasses.dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: what SimGrid makes of its text, whether it must be there, whether it may be empty."""

    kind: str
    required: bool
    optional_text: bool
    choices: tuple[str, ...] = ()


def _attributes(text: str) -> Mapping[str, Attribute]:
    """`name[!|?][=kind]`: `!` is required, `?` may be empty; a kind with `|` lists the choices."""
    found = {}
    for word in text.split():
        name, _, kind = word.partition("=")
        choices = tuple(kind.split("|")) if "|" in kind else ()
        kind = "choice" if choices else kind or "text"
        found[name.strip("!?")] = Attribute(kind, name.endswith("!"), name.endswith("?"), choices)
    return found


_SYMMETRICAL = "symmetrical=YES|NO|yes|no"
_FILES = "speed_file?=file availability_file?=file state_file?=file"
_ZONE_ENDS = "src! dst! gw_src! gw_dst!"
_ACTOR = "host! function! start_time=real kill_time=real on_failure=DIE|RESTART"
_CABINET = "id! prefix! suffix! radical! speed!={} bw!=bandwidth lat!=time"

#: tag -> name -> attribute. A link's latency is optional in the DTD, but SimGrid stops without it.
ATTRIBUTES: Mapping[str, Mapping[str, Attribute]] = {
    tag: _attributes(text)
    for tag, text in {
        "platform": "version!=real",
        "config": "id",
        "prop": "id! value!",
        "zone": "id! routing!",
        "AS": "id! routing!",
        "host": f"id! speed!=speeds core=whole pstate=whole coordinates?=coordinates {_FILES}",
        "disk": "read_bw!=bandwidth write_bw!=bandwidth id",
        "host_link": "id! up! down!",
        "cluster": f"{_CABINET.format('speeds')} core=whole router_id topo_parameters "
        "bb_bw?=bandwidth bb_lat?=time bb_sharing_policy=SHARED|FATPIPE limiter_link?=bandwidth "
        "loopback_bw?=bandwidth loopback_lat?=time sharing_policy=SHARED|SPLITDUPLEX|FULLDUPLEX|FATPIPE "
        "topology=FLAT|TORUS|FAT_TREE|DRAGONFLY",
        "cabinet": _CABINET.format("speed"),
        "peer": f"id! speed!=speed bw_in!=bandwidth bw_out!=bandwidth lat coordinates?=coordinates {_FILES}",
        "router": "id! coordinates?=coordinates",
        "backbone": "id! bandwidth!=bandwidth latency!=time",
        "link": "id! bandwidth!=bandwidths latency!=time bandwidth_file?=file latency_file?=file "
        "state_file?=file sharing_policy=SHARED|SPLITDUPLEX|FULLDUPLEX|FATPIPE|WIFI",
        "route": f"src! dst! {_SYMMETRICAL}",
        "bypassRoute": "src! dst!",
        "zoneRoute": f"{_ZONE_ENDS} {_SYMMETRICAL}",
        "ASroute": f"{_ZONE_ENDS} {_SYMMETRICAL}",
        "bypassZoneRoute": _ZONE_ENDS,
        "bypassASroute": _ZONE_ENDS,
        "link_ctn": "id! direction=UP|DOWN|NONE",
        "trace": "id! periodicity!=real file",
        "trace_connect": "trace! element! kind=HOST_AVAIL|SPEED|LINK_AVAIL|BANDWIDTH|LATENCY",
        "actor": _ACTOR,
        "process": _ACTOR,
        "argument": "value!",
        "random": "id! min! max! mean! std_deviation! seed radical generator=DRAND48|RAND|RNGSTREAM|NONE",
        "model_prop": "id! value!",
    }.items()
}

#: Tags that make SimGrid stop, with what replaced them.
REMOVED: Mapping[str, str] = {
    "storage": 'Use a <host> with speed 0f and <prop id="role" value="storage"/>.',
    "storage_type": 'Use a <host> with speed 0f and <prop id="role" value="storage"/>.',
    "mount": 'Use a <host> with speed 0f and <prop id="role" value="storage"/>.',
    "include": "Paste the included file here.",
}

_GROUPS = {
    "ZONES": "zone AS cluster peer",
    "ZONE_ROUTES": "zoneRoute ASroute bypassASroute bypassZoneRoute",
    "MEMBERS": "host router host_link",
    "ROUTES": "route bypassRoute",
    "LINKS": "link backbone",
    "TRACES": "trace trace_connect",
    "ACTORS": "actor process",
}

#: tag -> state -> child -> next state; every element begins in the state "" and may end in any.
_Automaton = Mapping[str, Mapping[str, str]]


def _automaton(**states: str) -> _Automaton:
    """Lines of `children > next state; …`, children as names or groups of names."""
    found: dict[str, dict[str, str]] = {}
    for state, text in states.items():
        row = found.setdefault("" if state == "start" else state, {})
        for part in text.split(";"):
            children, _, target = part.partition(">")
            for child in children.split():
                row |= dict.fromkeys(_GROUPS.get(child, child).split(), target.strip().replace("start", ""))
    return found


_ROUTE = _automaton(start="link_ctn > start")
_PROPS = _automaton(start="prop > start")
_PROGRAM = _automaton(start="argument prop > start")

# A zone holds members or zones, never both; links go with both, but SimGrid decides at the first element.
CONTENT: Mapping[str, _Automaton] = {
    "platform": _automaton(
        start="config random > start; ZONES cabinet TRACES > zones; ACTORS > actors",
        zones="ZONES cabinet TRACES > zones; ACTORS > actors",
        actors="ACTORS > actors",
    ),
    "zone": _automaton(
        start="prop > start; ZONES > zones; ZONE_ROUTES > zone_routes; "
        "MEMBERS cabinet LINKS > members; ROUTES > routes; TRACES > traces",
        zones="ZONES LINKS > zones; ZONE_ROUTES > zone_routes; TRACES > traces",
        zone_routes="ZONE_ROUTES TRACES > zone_routes",
        members="MEMBERS cabinet LINKS TRACES > members; ROUTES > routes",
        routes="ROUTES TRACES > routes",
        traces="TRACES > traces",
    ),
    # The old name of a zone; SimGrid's parser treats links after properties otherwise than without them.
    "AS": _automaton(
        start="prop > props; ZONES > zones; ZONE_ROUTES > zone_routes; "
        "MEMBERS cabinet LINKS TRACES > members; ROUTES > routes",
        props="prop > props; ZONES cabinet LINKS > zones; ZONE_ROUTES > zone_routes; "
        "MEMBERS > members; ROUTES > routes; TRACES > traces",
        zones="ZONES cabinet LINKS > zones; ZONE_ROUTES TRACES > zone_routes",
        zone_routes="ZONE_ROUTES > zone_routes; TRACES > traces",
        members="MEMBERS cabinet LINKS > members; ROUTES TRACES > routes",
        routes="ROUTES TRACES > routes",
        traces="TRACES > traces",
    ),
    "host": _automaton(start="prop disk mount > start"),
    **dict.fromkeys(("disk", "link", "cluster", "config"), _PROPS),
    **dict.fromkeys([*_GROUPS["ZONE_ROUTES"].split(), *_GROUPS["ROUTES"].split()], _ROUTE),
    **dict.fromkeys(_GROUPS["ACTORS"].split(), _PROGRAM),
}

_ORDER = {
    "platform": "settings, then zones, then actors",
    "zone": "properties, then members and links, then routes",
    "AS": "properties, then members and links, then routes",
}


class ContentModel:
    """Follows the children of one element and says why the next one may not stand there."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.states: _Automaton = CONTENT.get(tag, {"": {}})
        self.state = ""

    def refuse(self, child: str) -> str:
        """Empty if `child` may come next, else the reason."""
        if child in self.states.get(self.state, {}):
            self.state = self.states[self.state][child]
            return ""
        if not any(child in row for row in self.states.values()):
            return f"<{child}> is not allowed inside <{self.tag}>"
        if self.tag in ("zone", "AS") and child not in self.states.get("routes", {}):
            return (
                f"<{child}> cannot stand in a zone that begins as this one does, or comes too late: "
                f"hosts and zones do not mix, links come after inner zones; {_ORDER[self.tag]}"
            )
        return f"<{child}> comes too late in <{self.tag}>: {_ORDER[self.tag]}"
