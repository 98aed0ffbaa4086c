"""One message in, one reply out: whoever decides proposes, the referee checks, what is refused goes back."""

from collections.abc import Sequence
from typing import Protocol

from bridge.batsim.events import Decision, Message, Reply
from bridge.batsim.referee import Referee


class Chooser(Protocol):
    """Whoever decides: the dispatcher, or an experiment of one's own."""

    def decide(self, message: Message) -> Sequence[Decision]:
        """Apply a message and return what to do about it."""

    def refused(self, decision: Decision, why: str) -> None:
        """A decision was not sent."""


class Responder:
    """Answers messages with legal decisions only.

    Args:
        chooser: whoever decides.
        referee: who checks.
    """

    def __init__(self, chooser: Chooser, referee: Referee) -> None:
        self.chooser, self.referee = chooser, referee

    def respond(self, message: Message) -> Reply:
        """Return the reply to a message.

        Raises:
            BridgeError: the message makes no sense, or (strict referee) a decision is illegal.
        """
        self.referee.observe(message)
        decisions = self.chooser.decide(message)
        if not decisions:
            return Reply(message.now)
        told = len(self.referee.refusals)
        reply = self.referee.check(message.now, decisions)
        for refusal in self.referee.refusals[told:]:
            self.chooser.refused(refusal.decision, refusal.why)
        return reply
