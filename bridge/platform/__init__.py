"""Platform XML: read, check, author, summarise, draw; power and storage."""

from bridge.platform.model import Host, Link, Platform, Zone
from bridge.platform.read import read_platform

__all__ = ["Host", "Link", "Platform", "Zone", "read_platform"]
