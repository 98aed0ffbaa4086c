"""The decision process: frame, message, pass, reply, frame, until the simulation or something else ends."""

import gc
from typing import Any

from bridge.base.errors import BridgeError
from bridge.base.jsontext import shortened
from bridge.scheduler.protocol import Policy
from bridge.wire import events as ev
from bridge.wire.batsim4 import Batsim4
from bridge.wire.dialects import codec
from bridge.wire.events import Message, Reply
from bridge.wire.json_codec import JsonCodec, detect_dialect
from bridge.wire.times import MICRO
from bridge.worlds.batsim.acting_dispatcher import ActingDispatcher
from bridge.worlds.batsim.dispatcher import Dispatcher, DispatcherConfig
from bridge.worlds.batsim.endpoint import Endpoint, NeverCameError, PeerGoneError, WentSilentError
from bridge.worlds.batsim.killing_site_dispatcher import KillingSiteDispatcher
from bridge.worlds.batsim.referee import Referee
from bridge.worlds.batsim.result import ExitReason, ProcessResult
from bridge.worlds.batsim.site import SiteRules
from bridge.worlds.batsim.site_dispatcher import SiteDispatcher
from bridge.worlds.batsim.wire_scheduler import WireScheduler

#: What an endpoint says of its peer.
_OUTCOMES: dict[type, ExitReason] = {
    NeverCameError: ExitReason.NEVER_CAME,
    PeerGoneError: ExitReason.GONE,
    WentSilentError: ExitReason.SILENT,
}
#: Characters of what an error shows of a message.
_MOST = 300


def _dispatcher_of(setup: DispatcherConfig) -> WireScheduler[Any]:
    """Return who schedules: jobs on a pool of hosts, on a cluster's nodes, or jobs that may be killed."""
    if setup.site is not None:
        return KillingSiteDispatcher(setup) if setup.site_kills else SiteDispatcher(setup)
    return ActingDispatcher(setup) if setup.policy.action else Dispatcher(setup)


class DecisionProcess:
    """Decides for one simulation, by the event-driven scheduler or another one.

    `dialect`: of the wire, see `bridge.wire.dialects`; empty: what the first frame is in. `energy`: the
    platform simulates energy, so that power states may be changed. `strict`: stop at the first illegal
    decision, in place of dropping it. Raises BridgeError: the setup cannot work.
    """

    def __init__(
        self,
        setup: DispatcherConfig | WireScheduler[Any],
        *,
        dialect: str = "",
        energy: bool = False,
        strict: bool = False,
    ) -> None:
        if isinstance(setup, DispatcherConfig):
            setup = _dispatcher_of(setup)
        self.dispatcher: WireScheduler[Any] = setup
        self.referee = Referee(energy=energy, strict=strict, site=self._site_rules)
        registers = self.dispatcher.registers
        self._codec: JsonCodec | None = codec(dialect, registers=registers) if dialect else None
        self._messages = 0
        self._now = 0

    def _site_rules(self) -> SiteRules | None:
        """Return what is known of nodes that jobs share; a decider that is not ours knows nothing."""
        return getattr(self.dispatcher, "rules", None)

    def reply_to_frame(self, frame: bytes) -> bytes:
        """Return the reply to one frame, without any socket; BridgeError names the message that is wrong."""
        if self._codec is None:
            self._codec = codec(detect_dialect(frame), registers=self.dispatcher.registers)
        greeting = self._codec.greet(frame)
        if greeting is not None:
            return greeting
        number = self._messages + 1
        message = self._codec.decode(frame, number)
        try:
            return self._codec.encode(self.reply_to_message(message))
        except BridgeError as error:
            place = f"message {number}, time {message.now / 1e6:.6f} s"
            where = f"{place}, {shortened(error.where, _MOST)}" if error.where else place
            raise BridgeError(shortened(error.what, _MOST), where=where, remedy=error.remedy) from error

    def reply_to_message(self, message: Message) -> Reply:
        """Return the scheduler's reply to a message; illegal decisions are dropped (strict: BridgeError)."""
        self.referee.observe(message)
        decisions = self.dispatcher.decide(message)
        before = len(self.referee.refusals)
        reply = self.referee.check(message.now, decisions)
        for refusal in self.referee.refusals[before:]:
            self.dispatcher.on_refused(refusal.decision, refusal.why)
        self._messages += 1
        self._now = message.now
        return reply

    def run(self, endpoint: Endpoint) -> ProcessResult:
        """Answer until SIMULATION_ENDS; the result holds all decisions, even after an error.

        Never raises for what the other side does, nor for Ctrl-C: see `ProcessResult.outcome`.
        """
        try:
            while not self.dispatcher.ended:
                endpoint.send(self.reply_to_frame(endpoint.receive()))
        except BridgeError as error:
            return self.result(_OUTCOMES.get(type(error), ExitReason.FAILED), error)
        except KeyboardInterrupt:
            return self.result(ExitReason.INTERRUPTED)
        return self.result()

    def result(
        self, outcome: ExitReason = ExitReason.ENDED, error: BridgeError | None = None
    ) -> ProcessResult:
        result = ProcessResult(
            outcome, error, self._now, self._messages, self.dispatcher, self.referee.refusals
        )
        if outcome is ExitReason.ENDED and (result.missing or not self.dispatcher.ended):
            result.outcome = ExitReason.INCOMPLETE
        return result


#: Of the simulation that warms up: more jobs than a session has room for at first.
_JOBS = 1100
_HOSTS = 8


def warm_up() -> None:
    """Play a small simulation before the socket is bound: first messages are answered like later ones.

    Kernels are loaded (half a second) or compiled, late imports done, arrays grown once; then all that lives
    so far is left out of garbage collection for good.
    """
    process, spoken = DecisionProcess(DispatcherConfig(Policy("fcfs", "easy"))), Batsim4()
    compute = tuple(ev.HostInfo(k, f"host{k}") for k in range(_HOSTS))

    def tell(now: int, *events: ev.Event) -> None:
        process.reply_to_frame(spoken.encode_message(ev.Message(now, events)))

    def job(k: int) -> ev.JobSubmitted:
        fields = {"subtime": 1, "res": 1 + k % _HOSTS, "profile": "p", "walltime": 10 + k % 7}
        return ev.JobSubmitted(MICRO, f"w0!{k}", 1 + k % _HOSTS, MICRO, 10 * MICRO, "p", fields)

    tell(0, ev.SimulationBegins(0, compute))
    tell(MICRO, *map(job, range(_JOBS // 2)))
    tell(MICRO, *map(job, range(_JOBS // 2, _JOBS)))
    for now in range(2 * MICRO, 60 * MICRO, MICRO):
        done = next(one for one in process.dispatcher.jobs.values() if one.state == "running")
        tell(now, ev.JobCompleted(now, done.job_id, "COMPLETED_SUCCESSFULLY", 0, done.hosts))
    tell(60 * MICRO, ev.SimulationEnds(60 * MICRO))
    gc.collect()
    gc.freeze()
