"""What SimGrid's document type allows: attributes of each tag, and the order of elements.

Source: simgrid.dtd of SimGrid 3.32. SimGrid's parser enforces it to the letter: an unknown attribute or a
link after a route stops the simulation.
"""

from collections.abc import Mapping

#: tag -> (required attributes, optional attributes).
ATTRIBUTES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    tag: (frozenset(required.split()), frozenset(optional.split()))
    for tag, (required, optional) in {
        "platform": ("version", ""),
        "config": ("", "id"),
        "prop": ("id value", ""),
        "zone": ("id routing", ""),
        "AS": ("id routing", ""),
        "host": ("id speed", "core speed_file availability_file state_file coordinates pstate"),
        "disk": ("read_bw write_bw", "id"),
        "host_link": ("id up down", ""),
        "cluster": (
            "id prefix suffix radical speed bw lat",
            "core sharing_policy topology topo_parameters bb_bw bb_lat bb_sharing_policy router_id "
            "limiter_link "
            "loopback_bw loopback_lat",
        ),
        "cabinet": ("id prefix suffix radical speed bw lat", ""),
        "peer": ("id speed bw_in bw_out", "lat coordinates speed_file availability_file state_file"),
        "router": ("id", "coordinates"),
        "backbone": ("id bandwidth latency", ""),
        # The DTD calls a link's latency optional, but SimGrid 3.32 stops without it.
        "link": ("id bandwidth latency", "bandwidth_file latency_file state_file sharing_policy"),
        "route": ("src dst", "symmetrical"),
        "bypassRoute": ("src dst", ""),
        "zoneRoute": ("src dst gw_src gw_dst", "symmetrical"),
        "ASroute": ("src dst gw_src gw_dst", "symmetrical"),
        "bypassZoneRoute": ("src dst gw_src gw_dst", ""),
        "bypassASroute": ("src dst gw_src gw_dst", ""),
        "link_ctn": ("id", "direction"),
        "trace": ("id periodicity", "file"),
        "trace_connect": ("trace element", "kind"),
        "actor": ("host function", "start_time kill_time on_failure"),
        "process": ("host function", "start_time kill_time on_failure"),
        "argument": ("value", ""),
        "random": ("id min max mean std_deviation", "seed radical generator"),
        "model_prop": ("id value", ""),
    }.items()
}

#: Attribute values from a fixed list.
CHOICES: Mapping[tuple[str, str], frozenset[str]] = {
    ("cluster", "sharing_policy"): frozenset({"SHARED", "SPLITDUPLEX", "FULLDUPLEX", "FATPIPE"}),
    ("cluster", "bb_sharing_policy"): frozenset({"SHARED", "FATPIPE"}),
    ("cluster", "topology"): frozenset({"FLAT", "TORUS", "FAT_TREE", "DRAGONFLY"}),
    ("link", "sharing_policy"): frozenset({"SHARED", "SPLITDUPLEX", "FULLDUPLEX", "FATPIPE", "WIFI"}),
    ("route", "symmetrical"): frozenset({"YES", "NO", "yes", "no"}),
    ("zoneRoute", "symmetrical"): frozenset({"YES", "NO", "yes", "no"}),
    ("ASroute", "symmetrical"): frozenset({"YES", "NO", "yes", "no"}),
    ("link_ctn", "direction"): frozenset({"UP", "DOWN", "NONE"}),
}

#: Tags that make SimGrid stop, with what replaced them.
REMOVED: Mapping[str, str] = {
    "storage": 'Use a <host> with speed 0f and <prop id="role" value="storage"/>.',
    "storage_type": 'Use a <host> with speed 0f and <prop id="role" value="storage"/>.',
    "mount": 'Use a <host> with speed 0f and <prop id="role" value="storage"/>.',
    "include": "Paste the included file here.",
}

_ZONES = frozenset({"zone", "AS", "cluster", "peer"})
_ZONE_ROUTES = frozenset({"zoneRoute", "ASroute", "bypassASroute", "bypassZoneRoute"})
_LEAVES = frozenset({"host", "router", "host_link", "cabinet"})
_LEAF_ROUTES = frozenset({"route", "bypassRoute"})
_NETWORK = frozenset({"link", "backbone"})
_TRACES = frozenset({"trace", "trace_connect"})
_CHILDREN: Mapping[str, frozenset[str]] = {
    "platform": frozenset({"config", "random", "actor", "process"}) | _ZONES | _TRACES,
    "zone": frozenset({"prop"}) | _ZONES | _ZONE_ROUTES | _LEAVES | _LEAF_ROUTES | _NETWORK | _TRACES,
    "host": frozenset({"prop", "disk", "mount"}),
    "disk": frozenset({"prop"}),
    "link": frozenset({"prop"}),
    "cluster": frozenset({"prop"}),
    "config": frozenset({"prop"}),
    **dict.fromkeys(_ZONE_ROUTES | _LEAF_ROUTES, frozenset({"link_ctn"})),
    **dict.fromkeys(("actor", "process"), frozenset({"argument", "prop"})),
}


class ContentModel:
    """Follows the children of one element and says why the next one may not stand there."""

    def __init__(self, tag: str) -> None:
        self.tag = "zone" if tag == "AS" else tag
        self.phase = (
            0  # zone: 0 properties, 1 members and links, 2 routes; platform: 0 config, 1 zones, 2 actors
        )
        self.kind = ""  # zone: "hosts" or "zones", whichever came first

    def refuse(self, child: str) -> str:
        """Empty if `child` may come next, else the reason."""
        if child in REMOVED:
            return ""  # reported as a removed tag, with its own remedy
        if child not in _CHILDREN.get(self.tag, frozenset()):
            return f"<{child}> is not allowed inside <{self.tag}>"
        if self.tag == "platform":
            phase = 0 if child in ("config", "random") else 2 if child in ("actor", "process") else 1
            return self._advance(child, phase)
        if self.tag != "zone":
            return ""
        kind = ""
        if child in _ZONES | _ZONE_ROUTES:
            kind = "zones"
        elif child in _LEAVES | _LEAF_ROUTES or (child in _NETWORK and not self.kind):
            kind = "hosts"  # links are for both kinds, but SimGrid decides at the first element
        if kind and self.kind and kind != self.kind:
            return (
                f"<{child}> cannot stand in a zone that begins with {self.kind} or links: hosts and zones "
                "do not mix, and links come after inner zones"
            )
        self.kind = self.kind or kind
        if child == "prop":
            return self._advance(child, 0)
        return self._advance(child, 2 if child in _ZONE_ROUTES | _LEAF_ROUTES | _TRACES else 1)

    def _advance(self, child: str, phase: int) -> str:
        if phase < self.phase:
            order = "properties, then members and links, then routes"
            return f"<{child}> comes too late in <{self.tag}>" + (f": {order}" if self.tag == "zone" else "")
        self.phase = phase
        return ""
