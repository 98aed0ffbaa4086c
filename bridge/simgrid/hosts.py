"""Loading the platform: SimGrid builds it, the XML is only read for what SimGrid does not tell."""

import xml.etree.ElementTree as ET
from typing import Any

from bridge.simgrid import library, machines
from bridge.simgrid.errors import ModelError
from bridge.simgrid.machines import Machine, Machines
from bridge.simgrid.options import Options


def load(engine: Any, options: Options, limit: int) -> Machines:
    """Load the platform into SimGrid's engine and number its machines.

    Args:
        engine: simgrid.Engine, configured.
        limit: at most so many compute nodes; 0 means all.

    Raises:
        ModelError: the file is not a platform, or its roles, speeds or power states make no sense.
    """
    root = _read(options.platform)
    try:
        engine.load_platform(options.platform)
        engine.netzone_root.seal()
    except Exception as error:  # SimGrid says no with whatever its C++ exceptions become in Python
        raise ModelError(f"SimGrid refuses it: {error}", where=options.platform) from None
    hosts = engine.all_hosts
    names = sorted({p.get("id", "") for zone in _zones(root) for p in zone.findall("prop")})
    around = library.zone_properties(names)
    built = machines.build(
        [Machine(host, host.name, library.host_properties(host.name)) for host in hosts], options, limit
    )
    for machine in built:
        machine.zone_properties = around.get(machine.name, {})
    return built


def varies(platform: str) -> bool:
    """Whether resources of the platform change over time (profiles or traces of speed, bandwidth, state)."""
    root = _read(platform)
    return any(
        element.tag.startswith("trace") or any(key.endswith("_file") for key in element.attrib)
        for element in root.iter()
    )


def _read(path: str) -> ET.Element:
    try:
        root = ET.parse(path).getroot()
    except OSError as error:
        raise ModelError(
            f"cannot be read: {error.strerror}", where=path, remedy="Give -p a platform file."
        ) from None
    except ET.ParseError as error:
        line, column = error.position
        raise ModelError(f"is not XML: {error.msg}", where=f"{path}:{line}:{column}") from None
    if root.tag != "platform":
        raise ModelError(
            f"its root is <{root.tag}>, not <platform>", where=path, remedy="Give -p a SimGrid platform."
        )
    return root


def _zones(root: ET.Element) -> list[ET.Element]:
    return [element for tag in ("zone", "AS", "cluster", "cabinet") for element in root.iter(tag)]
