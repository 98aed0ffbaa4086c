"""Our policies as a pybatsim scheduler: pybatsim holds the socket, the same dispatcher and referee decide.

    pybatsim "$(python -m bridge.worlds.batsim.pybatsim_adapter)" -t 0 -o '{"order": "sjf", "backfill":
    "easy"}'

(this module, run, prints its own path), or a file of your own, ``MyPolicy.py`` for pybatsim's rule that
the class is named after the file::

    from bridge.worlds.batsim.pybatsim_adapter import PolicyScheduler as MyPolicy

Options (JSON): ``order``, ``backfill``, ``candidate_order``, ``placement``, ``groups`` (host -> group, for
best-fit and topology), ``resources``, ``storage``, ``energy``, ``strict``, ``out`` (a summary file).
A trained agent decides under `bridge.experiment.pybatsim_agent`.
Works with pybatsim 3.1 and 3.2; not under its ``--protect``, which does not pass on the end of a message.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# pybatsim puts this folder and the one above it first on the path while it loads this file; there, our
# `platform` package would shadow the standard library's module.
_HERE = Path(__file__).resolve().parent
_path = list(sys.path)
sys.path[:] = [entry for entry in _path if entry and Path(entry).resolve() not in (_HERE, _HERE.parent)]
try:
    from batsim.batsim import BatsimScheduler  # type: ignore[import-untyped, import-not-found, unused-ignore]

    from bridge.base.errors import BridgeError
    from bridge.scheduler.protocol import Policy
    from bridge.wire import batsim4, events, hosts, times
    from bridge.wire.events import Decision, Event, Message
    from bridge.worlds.batsim import placement
    from bridge.worlds.batsim.dispatcher import DispatcherConfig
    from bridge.worlds.batsim.process import DecisionProcess
    from bridge.worlds.batsim.result import ProcessResult
finally:
    sys.path[:] = _path

_POLICY = ("order", "backfill", "candidate_order")
_OPTIONS = (*_POLICY, "placement", "groups", "resources", "storage", "energy", "strict", "out")


def setup_of(options: Mapping[str, Any]) -> DispatcherConfig:
    """Return the setup that pybatsim's options ask for; BridgeError: one is unknown, or cannot work."""
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        remedy = f"The scheduler knows {', '.join(_OPTIONS)}."
        raise BridgeError("unknown option", where=", ".join(unknown), remedy=remedy)
    name = options.get("placement", "first-fit")
    return DispatcherConfig(
        Policy(**{key: options[key] for key in _POLICY if key in options}),
        placement=placement.rule(name, groups=options.get("groups")),
        placement_name=name,
        resources=options.get("resources", {}),
        storage=options.get("storage", {}),
    )


class PolicyScheduler(BatsimScheduler):  # type: ignore[misc]  # pybatsim has no types
    """Collects pybatsim's calls of one message, and answers when the message is over."""

    #: What the options ask for; `bridge.experiment.pybatsim_agent` knows another one.
    setup: Callable[[Mapping[str, Any]], DispatcherConfig] = staticmethod(setup_of)

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        energy, strict = bool(options.get("energy", False)), bool(options.get("strict", False))
        self._process = DecisionProcess(self.setup(options), energy=energy, strict=strict)
        self._out = options.get("out")
        self._events: list[Event] = []

    @property
    def result(self) -> ProcessResult:
        """Return the decisions so far; complete once the simulation has ended."""
        return self._process.result()

    # What pybatsim tells.

    def _now(self) -> int:
        return times.micro(self.bs.time())

    def _note(self, kind: Callable[..., Event], *what: Any, **more: Any) -> None:
        self._events.append(kind(self._now(), *what, **more))

    def onBeforeEvents(self) -> None:  # noqa: N802
        self._events = []

    def onSimulationBegins(self) -> None:  # noqa: N802
        bs = self.bs
        if bs.scheduler is not self:
            what = "pybatsim's validating machine does not pass on the end of a message"
            remedy = "Leave it out: every decision is checked here already."
            raise BridgeError(what, where="--protect", remedy=remedy)
        self._note(
            events.SimulationBegins,
            _resources(bs.compute_resources),
            _resources(bs.storage_resources),
            dynamic_jobs=bs.dynamic_job_registration_enabled,
            acknowledges=bs.ack_of_dynamic_jobs,
            workloads=bs.workloads,
            profiles={
                workload: dict(workload_profiles) for workload, workload_profiles in bs.profiles.items()
            },
        )

    def onSimulationEnds(self) -> None:  # noqa: N802
        self._note(events.SimulationEnds)

    def onJobSubmission(self, job: Any) -> None:  # noqa: N802
        self._note(batsim4.job_submitted, job.id, job.json_dict, job.profile_dict or None)

    def onJobCompletion(self, job: Any) -> None:  # noqa: N802
        time = times.micro(job.finish_time)
        at = hosts.parse(str(job.allocation)) if job.allocation is not None else ()
        self._events.append(events.JobCompleted(time, job.id, job.job_state.name, job.return_code, at))

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:  # noqa: N802
        self._note(events.ResourceStateChanged, (nodeid,), int(pstate))

    def onRequestedCall(self) -> None:  # noqa: N802
        self._note(events.RequestedCall)

    def onNotifyEventMachineUnavailable(self, machines: Any) -> None:  # noqa: N802
        self._note(events.MachineAvailability, hosts.parse(str(machines)), available=False)

    def onNotifyEventMachineAvailable(self, machines: Any) -> None:  # noqa: N802
        self._note(events.MachineAvailability, hosts.parse(str(machines)), available=True)

    def _ignore(self, *_: Any) -> None:
        """Nothing follows from it; each job that was killed has completed before."""

    onJobsKilled = onJobMessage = onReportEnergyConsumed = onNotifyGenericEvent = _ignore  # noqa: N815

    # What it is told.

    def onNoMoreEvents(self) -> None:  # noqa: N802
        """A message is complete: decide."""
        for decision in self._process.reply_to_message(Message(self._now(), tuple(self._events))).decisions:
            self._say(decision)
        if self._process.dispatcher.ended and self._out:
            self.result.write(self._out)

    def _say(self, decision: Decision) -> None:
        from procset import ProcSet  # type: ignore[import-untyped, import-not-found, unused-ignore]

        bs = self.bs
        if isinstance(decision, events.ExecuteJob):
            job = bs.jobs[decision.job_id]
            job.allocation = ProcSet.from_str(hosts.text_of(decision.hosts))
            if decision.storage_mapping is not None:
                job.storage_mapping = dict(decision.storage_mapping)
            bs.execute_job(job)
        elif isinstance(decision, events.RejectJob):
            bs.reject_jobs_by_id([decision.job_id])
        elif isinstance(decision, events.CallMeLater):
            bs.wake_me_up_at(decision.at / times.MICRO)
        elif isinstance(decision, events.FinishRegistration):
            bs.notify_registration_finished()
        else:  # the dispatcher takes no other decision
            raise TypeError(type(decision).__name__)


def _resources(hosts: Mapping[int, Any]) -> tuple[events.HostInfo, ...]:
    return tuple(
        events.HostInfo(one["id"], one["name"], str(one.get("state", "idle")), one.get("properties", {}))
        for _, one in sorted(hosts.items())
    )


#: pybatsim looks for a class named after the file.
Pybatsim_adapter = PolicyScheduler

if __name__ == "__main__":
    print(Path(__file__).resolve())
