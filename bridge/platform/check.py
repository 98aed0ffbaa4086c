"""The lint: all findings about one platform file, in the order of its lines."""

from pathlib import Path

from bridge.platform.findings import Finding
from bridge.platform.model import MASTER_NAME
from bridge.platform.read import inspect, refuse
from bridge.platform.rules import check_hosts
from bridge.platform.rules_network import check_network


def check_platform(
    path: str | Path, *, data: bytes | None = None, master_name: str = MASTER_NAME
) -> list[Finding]:
    """Every finding about the file; an empty list means that there is nothing to say.

    Args:
        path: the file, as it appears in the findings.
        data: its contents, if they are at hand.
        master_name: the host that Batsim's `-m` would name.

    Raises:
        BridgeError: the file cannot be read at all.
    """
    platform, findings = inspect(path, data=data, master_name=master_name)
    if platform is not None:
        readable = not findings.errors  # routes that could not be read would all be reported as missing
        check_hosts(platform, findings)
        if readable:
            check_network(platform, findings)
    return findings.sorted()


def require_sound(path: str | Path, data: bytes | None = None) -> list[Finding]:
    """Check a file, or contents before they are written; return what is not an error.

    Raises BridgeError for the first error.
    """
    found = check_platform(path, data=data)
    for finding in found:
        if finding.severity == "error":
            raise refuse(finding)
    return found
