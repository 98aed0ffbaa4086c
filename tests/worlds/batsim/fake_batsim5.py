"""A stand-in for Batsim 5: a fake Batsim 4 whose messages and replies are said anew in the other dialect."""

import dataclasses
import json
from collections.abc import Callable

import batsim5_accepts

from bridge.wire import events as ev
from bridge.wire.batsim4 import Batsim4
from bridge.wire.batsim5 import AT_BEGIN, ON_SUBMISSION, Batsim5
from bridge.worlds.batsim.process import DecisionProcess

#: The sleeping state of the fake's hosts.
_SLEEPING = 2


class Batsim5Around:
    """Between a fake Batsim 4 and a process that speaks the dialect of Batsim 5.

    Args:
        answer: answers frames.
        init: the text that Batsim hands on.

    Attributes:
        features: what the process has asked for.
        frames: all that was said, in Batsim 5's words, the handshake first.
    """

    def __init__(self, answer: Callable[[bytes], bytes], init: str = "") -> None:
        self._answer = answer
        self._outer, self._inner = Batsim4(), Batsim5()
        first = len(init).to_bytes(4, "little") + init.encode()
        hello = answer(first)
        self.features = batsim5_accepts.hello(hello)
        self.frames = [first, hello]
        self._inner.features = frozenset(self.features)
        self._profiles: dict[str, dict[str, ev.FieldMap]] = {}
        self._asleep: set[int] = set()
        self._probes: list[str] = []
        self._stopped: list[str] = []

    def __call__(self, frame: bytes) -> bytes:
        message = self._outer.decode(frame, 1)
        told = self._inner.encode_message(
            dataclasses.replace(message, events=tuple(map(self._to_batsim5, message.events)))
        )
        reply = self._answer(told + b"\0")
        self.frames += [told, reply]
        batsim5_accepts.check(reply, json.loads(told)["now"])
        decided = self._inner.decode_reply(reply, 1)
        plain = [found for decision in decided.decisions if (found := self._to_batsim4(decision)) is not None]
        return self._outer.encode(ev.Reply(decided.now, tuple(plain)))

    def _to_batsim4(self, decision: ev.Decision) -> ev.Decision | None:
        """Return a decision as Batsim 4 would have it."""
        if not isinstance(decision, ev.OpaqueDecision):
            return dataclasses.replace(decision, extra_fields=None)
        if decision.kind == "CreateProbeEvent":
            assert decision.fields["probe_id"] not in self._probes, "there is such a probe"
            self._probes.append(decision.fields["probe_id"])
            return ev.QueryEnergy(decision.time)
        assert decision.kind == "StopProbeEvent" and decision.fields["probe_id"] in self._stopped
        return None

    def _to_batsim5(self, event: ev.Event) -> ev.Event:
        """Return an event as Batsim 5 would have it."""
        if isinstance(event, ev.SimulationBegins):
            assert event.dynamic_jobs == ("dynamic_registration" in self.features)
            self._profiles = {workload: dict(known) for workload, known in event.profiles.items()}
            known = self._profiles if AT_BEGIN in self.features else {}
            return dataclasses.replace(event, profiles=known, extra_fields=None)
        if isinstance(event, ev.JobSubmitted):
            workload = event.job_id.partition("!")[0]
            profile = self._profiles.get(workload, {}).get(event.profile)
            profile = profile if ON_SUBMISSION in self.features else None
            own = {"id", "subtime", "res", "profile", "walltime"}
            fields = {name: value for name, value in event.fields.items() if name not in own}
            return dataclasses.replace(event, fields=fields, profile_fields=profile)
        if isinstance(event, ev.EnergyAnswer):
            self._stopped.append(self._probes.pop(0))
            told = {
                "probe_id": self._stopped[-1],
                "data_type": "AggregatedProbeData",
                "data": {"data": event.joules},
            }
            return dataclasses.replace(event, extra_fields=told)
        if isinstance(event, ev.ResourceStateChanged):
            hosts = {host for low, high in event.hosts for host in range(low, high + 1)}
            switched = event.pstate == _SLEEPING or bool(hosts & self._asleep)
            self._asleep = self._asleep | hosts if event.pstate == _SLEEPING else self._asleep - hosts
            return dataclasses.replace(event, switched=switched)
        return event


def through5(process: DecisionProcess) -> Callable[[bytes], bytes]:
    """Return what answers frames of Batsim 4 with a process that believes it speaks to Batsim 5."""
    return Batsim5Around(process.reply_to_frame)
