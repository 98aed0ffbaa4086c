"""Which storage host serves which label of a profile: by the host's name, unless the user says otherwise."""

from collections.abc import Mapping

from bridge.batsim.events import Resource
from bridge.errors import BridgeError


class StorageMap:
    """Resolves labels to storage hosts.

    Args:
        storage: the platform's storage hosts.
        given: label -> host name, from the user.

    Raises:
        BridgeError: the user names a host that is no storage.
    """

    def __init__(self, storage: tuple[Resource, ...], given: Mapping[str, str]) -> None:
        self._ids = {host.name: host.id for host in storage}
        self._only = storage[0].id if len(storage) == 1 else None
        for label, name in given.items():
            if name not in self._ids:
                raise BridgeError(
                    f"the platform has no storage host {name!r}",
                    where=f"storage {label}={name}",
                    remedy=f"It has: {', '.join(self._ids) or 'none'}.",
                )
        self._given = {label: self._ids[name] for label, name in given.items()}

    def resolve(self, labels: list[str]) -> dict[str, int] | str:
        """Return label -> id, or the first label that no storage host serves.

        A platform with a single storage host serves every label with it, as Batsim does.
        """
        found: dict[str, int] = {}
        for label in labels:
            host = self._given.get(label, self._ids.get(label, self._only))
            if host is None:
                return label
            found[label] = host
        return found
