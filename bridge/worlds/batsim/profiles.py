"""Batsim 4's profiles: which are well-formed, the storage that a job of one needs, and copies of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from bridge.base.errors import BridgeError
from bridge.wire import fields
from bridge.wire.events import FieldMap, JobSubmitted, SimulationBegins
from bridge.wire.profile_values import DEFAULT_STORAGE, READERS

#: Finds a profile of the same workload by name; None if it is not there.
Lookup = Callable[[str], FieldMap | None]

#: Types of profiles that can be registered while the simulation runs.
_REGISTERED = [kind for kind in READERS if kind not in ("composed", "send", "recv")]
#: Deepest nesting of composed profiles that is followed.
_DEEPEST = 20
#: Profiles of which it is kept which storage they need.
_MOST_LABELS = 1024


def steps(profile: FieldMap, lookup: Lookup) -> Iterable[FieldMap]:
    """Return the profile itself, or the profiles that it is composed of, each once."""
    return _parts(profile, lookup) if profile.get("type") == "composed" else (profile,)


def _parts(profile: FieldMap, lookup: Lookup) -> Iterator[FieldMap]:
    stack: list[FieldMap | str] = [profile]
    visited: set[str] = set()
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            profile_fields = None if part in visited else lookup(part)
            visited.add(part)
            if profile_fields is None:
                continue
            part = profile_fields
        if part.get("type") != "composed":
            yield part
        elif isinstance(names := part.get("seq"), list):
            stack += [name for name in reversed(names) if isinstance(name, str)]


def storage_labels(profile: FieldMap, lookup: Lookup) -> list[str]:
    """Return the storage labels that a storage_mapping must resolve for this profile."""
    labels: list[str] = []
    for part in steps(profile, lookup):
        if part.get("type") == "parallel_homogeneous_pfs":
            label = part.get("host") if "host" in part and "storage" not in part else part.get("storage")
            labels.append(str(label or DEFAULT_STORAGE))
        elif part.get("type") == "data_staging":
            labels += [str(part.get("from")), str(part.get("to"))]
    return list(dict.fromkeys(labels))


def any_size(profile: FieldMap, lookup: Lookup) -> bool:
    """Tell whether a job of this profile may run on another number of hosts than it asks for."""
    return all(part.get("type") == "parallel_homogeneous_total" for part in steps(profile, lookup))


def find_fault(profile: FieldMap) -> str:
    """Return why Batsim would refuse to register this profile, or an empty text.

    Types that need files or a running SMPI are refused as well, and composed profiles: Batsim 4.2.1 registers
    them without their parts, and dies of a segmentation fault where a job of one starts.
    """
    kind = profile.get("type")
    if kind not in _REGISTERED:
        return f"a profile of type {kind!r} cannot be registered"
    profile_fields = fields.Fields(dict(profile))
    try:
        profile_fields.integer("ret", 0)
        READERS[kind](profile_fields)
    except BridgeError as error:
        return error.what
    return ""


class Profiles:
    """The profiles of a simulation as far as they are known, by workload and name."""

    def __init__(self, begin: SimulationBegins) -> None:
        self.by_workload: dict[str, dict[str, FieldMap]] = {
            w: dict(workload_profiles) for w, workload_profiles in begin.profiles.items()
        }
        self._labels: dict[tuple[str, str], tuple[str, ...]] = {}

    def add(self, workload: str, name: str, profile: FieldMap) -> None:
        profiles = self.by_workload.setdefault(workload, {})
        if name not in profiles:
            profiles[name] = profile
            self._labels.clear()  # it may be a part of others

    def labels(self, workload: str, name: str) -> tuple[str, ...]:
        labels = self._labels.get((workload, name))
        if labels is None:
            if len(self._labels) >= _MOST_LABELS:
                self._labels.clear()
            profiles = self.by_workload.get(workload, {})
            labels = tuple(storage_labels(profiles[name], profiles.get)) if name in profiles else ()
            self._labels[workload, name] = labels
        return labels


class JobProfiles(Profiles):
    """The profiles of a simulation's jobs, by its first message, and the storage that serves them.

    `storage`: storage label -> host name, from the user; BridgeError: the host is no storage.
    """

    def __init__(self, begin: SimulationBegins, storage: Mapping[str, str]) -> None:
        super().__init__(begin)
        self._deadly = begin.crashing_profile_types
        self._storage = {host.name: host.id for host in begin.storage}
        self._only = begin.storage[0].id if len(begin.storage) == 1 else None
        for label, name in storage.items():
            if name not in self._storage:
                what = f"the platform has no storage host {name!r}"
                remedy = f"It has: {', '.join(self._storage) or 'none'}."
                raise BridgeError(what, where=f"storage {label}={name}", remedy=remedy)
        self._storage |= {label: self._storage[name] for label, name in storage.items()}

    def storage_of(self, event: JobSubmitted) -> tuple[dict[str, int] | None, str]:
        """Take note of a submitted job; returns the storage host of each label, and why it cannot have them.

        None for a job that needs no storage. A label is served by the host that the user names for it, by the
        host of that name, or by the only one there is, as in Batsim.
        """
        workload = event.job_id.partition("!")[0]
        if event.profile_fields is not None:
            self.add(workload, event.profile, event.profile_fields)
        if self._deadly and (profiles := self.by_workload.get(workload, {})) and event.profile in profiles:
            kinds = {str(part.get("type")) for part in steps(profiles[event.profile], profiles.get)}
            if fatal := kinds & self._deadly:
                return None, f"its profile is of type {min(fatal)}, which this Batsim does not survive"
        storage: dict[str, int] = {}
        for label in self.labels(workload, event.profile):
            host = self._storage.get(label, self._only)
            if host is None:
                return None, f"its profile uses the storage {label!r}, which the platform does not have"
            storage[label] = host
        return storage or None, ""

    def get(self, workload: str, name: str) -> FieldMap:
        profiles = self.by_workload.get(workload, {})
        visited: set[str] = set()

        def whole(name: str, above: tuple[str, ...]) -> bool:
            if name in visited:
                return True
            profile = profiles.get(name)
            if profile is None or name in above or len(above) > _DEEPEST:
                return False
            parts = profile.get("seq") if profile.get("type") == "composed" else None
            if isinstance(parts, list) and not all(whole(str(part), (*above, name)) for part in parts):
                return False
            visited.add(name)
            return True

        return profiles[name] if whole(name, ()) else {}

    def composed(self, workload: str, name: str) -> bool:
        return self.get(workload, name).get("type") == "composed"
