"""How a policy is named, wherever one is asked for: ``sjf+easy``, ``saf+rule``, an agent's folder, a plug-in.

| name | policy |
|---|---|
| `sjf`, `sjf+easy`, `(w/t)**3*n+none` | a queue order, by name or as an expression, and a backfilling rule |
| `lookahead(saf)`, `lookahead(saf, T=3600)+easy` | an order that tries its queue with others in front |
| `saf+easy+guest(300)` | the same with a rule of action, see `bridge.scheduler.actions` |
| `recorded` | what happened: the log's own starts |
| `saf`, `saf+rule`, `tetris` | a heuristic of the time-stepped pool, and who kills mispredicted jobs |
| `agents/mine`, `zoo/NAME` | a trained agent, by its folder |
| `module:ATTR` | what a Python module of the user's own provides |
| `module:ATTR+easy`, `sjf+module:ATTR` | an order, or a backfilling rule, of the user's own |
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bridge.base import plugins
from bridge.base.cache import is_checkpoint, shipped_agents
from bridge.base.errors import BridgeError
from bridge.base.files import is_there
from bridge.base.jsontext import shortened
from bridge.base.plugins import Typed
from bridge.base.suggestions import did_you_mean
from bridge.scheduler.actions import ACTIONS, format_action, parse_action
from bridge.scheduler.names import (
    BACKFILLS,
    CLUSTER_ORDERS,
    KILLS,
    NAMES,
    ORDERS,
    RECORDED,
    SLURM_BACKFILL,
    refuse_recorded,
)
from bridge.scheduler.protocol import Policy

#: Words that are an expression of an order by themselves.
_VARIABLES = ("fairshare", "partition", "t_max", "n_max")


@dataclass(frozen=True)
class PolicyName:
    """A policy, as it was named.

    Attributes:
        order: the queue's order (name or expression), or the pool's heuristic.
        backfill: the backfilling rule; empty = not said.
        kill: who kills in the pool; empty = not said.
        agent: the folder of a trained agent; empty = none.
        action: a rule of action beside order and backfilling; empty = none.
    """

    text: str
    order: str = ""
    backfill: str = ""
    kill: str = ""
    agent: str = ""
    plugin: str = ""
    action: str = ""

    @property
    def only_pool(self) -> bool:
        """Whether the name has a meaning for the time-stepped pool only, as ``saf+rule`` and ``tetris``."""
        alone = not self.backfill and self.order in NAMES and self.order not in ORDERS
        return bool(alone or (self.kill and not self.backfill))

    @property
    def is_recorded(self) -> bool:
        return self.order == RECORDED

    @property
    def is_rule(self) -> bool:
        """Whether it is an order of the event-driven scheduler, alone or with a backfilling rule."""
        return not (self.agent or self.plugin or self.only_pool or self.is_recorded)

    def policy(self, backfill: str = Policy.backfill, candidate_order: str = "") -> Policy:
        """Return the policy that a rule names; `backfill`: where it names none. BridgeError: no rule."""
        if self.is_recorded:
            raise refuse_recorded()
        return Policy(self.order, self.backfill or backfill, candidate_order, action=self.action)


def parse_policy(text: str) -> PolicyName:
    before, plus, last = (part.strip() for part in text.rpartition("+"))
    if plus and last.partition("(")[0].strip() in ACTIONS and not is_there(text, Path.is_dir):
        return replace(parse_policy(before), text=text, action=format_action(parse_action(last)))
    order, plus, rule = (part.strip() for part in text.rpartition("+"))
    order_name = order if plus else text.strip()
    named = order_name in ORDERS or order_name in NAMES or order_name in CLUSTER_ORDERS
    is_folder = is_there(text, Path.is_dir)
    if text and (is_checkpoint(text) or (is_folder and (os.sep in text or not named))):
        return PolicyName(text, agent=text)
    if text.startswith("zoo/") and text in shipped_agents():
        return PolicyName(text, agent=str(shipped_agents()[text]))
    if order_name.lower() == RECORDED:
        if plus:
            what = "the record has its own starts, and no rule beside them"
            raise BridgeError(
                what, where=f"policy {shortened(text, 200)!r}", remedy=f"Write {RECORDED} alone."
            )
        return PolicyName(text, RECORDED, backfill="none")
    backfills = rule in (*BACKFILLS, SLURM_BACKFILL) or (
        bool(plus) and plugins.find("backfill", rule) is not None
    )
    if plus and order and (backfills or rule in KILLS):
        return PolicyName(text, order, backfill=rule if backfills else "", kill=rule if rule in KILLS else "")
    if ":" in text:
        return PolicyName(text, plugin=text)
    if plugins.find("order", order_name) is not None:
        return PolicyName(text, order_name)
    word = re.fullmatch(r"[\w./-]{2,}", order_name) is not None and order_name not in _VARIABLES
    if not text.strip() or (plus and named) or (word and not plus and not named):
        if named:
            hint = did_you_mean(rule, (*BACKFILLS, *KILLS), f"{order}+")
        else:
            there = (*ORDERS, *CLUSTER_ORDERS, *NAMES, *shipped_agents(), RECORDED)
            hint = _hint_of_module(text) or did_you_mean(order_name, there)
        raise BridgeError(
            "is no policy and no folder of a trained agent",
            where=f"policy {shortened(text, 200)!r}",
            remedy=f"{hint}Write an order and a backfilling rule ({', '.join(BACKFILLS)}), such as sjf+easy, "
            "or for the pool a heuristic, alone or with +rule, such as saf+rule; or an agent's folder; "
            "or a policy of your own, module:NAME.",
        )
    return PolicyName(text, text.strip())


def _hint_of_module(text: str) -> str:
    """Return how to name what a module provides, if the text is that of a module in this folder."""
    module = text.removesuffix(".py")
    if not module.isidentifier() or not is_there(f"{module}.py", Path.is_file):
        return ""
    return f"{module}.py is a module: write {module}:NAME, with the name of the policy in it. "


def typed_policy(text: str) -> Typed:
    """Return the name of a policy as its user typed it.

    The rules that it is made of are loaded: of ``module:ATTR+RULE`` and ``ORDER+module:ATTR``.
    """
    order, plus, rule = (Typed(part.strip()) for part in text.rpartition("+"))
    if plus and not is_there(text, Path.is_dir):
        plugins.allow_reference("backfill", rule)
        plugins.allow_reference("order", order)
    return Typed(text)


def is_own(name: str) -> bool:
    """Tell whether a policy is ``module:ATTR``, and no agent's folder of such a name."""
    return plugins.is_reference(name) and not is_there(name)


def refuse_twice(names: Iterable[str]) -> list[str]:
    """Return names, of which none may be there twice. Raises BridgeError: one is."""
    earlier: list[str] = []
    for name in names:
        if name in earlier:
            raise BridgeError("is named twice", where=f"policy {name!r}", remedy="Name it once.")
        earlier.append(name)
    return earlier


def combine_names(firsts: Sequence[str], seconds: Sequence[str]) -> list[str]:
    """Return ``FIRST+SECOND`` of all pairs, each once, for ``--order`` and ``--backfill``."""
    return list(dict.fromkeys(f"{first}+{second}" for first in firsts for second in seconds))
