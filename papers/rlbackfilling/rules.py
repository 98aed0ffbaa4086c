"""Fixed rules in the place of RLBackfilling's network: they tell what its environment alone is worth."""

from bridge.study.fixed_rules import BackfillRule


def first_candidate(resources: int) -> BackfillRule:
    """Return the rule that always answers with the first candidate, the one that came first."""
    del resources
    return BackfillRule("0")


def shortest_candidate(resources: int) -> BackfillRule:
    """Return the rule that always answers with the shortest requested time, the first among equals."""
    del resources
    return BackfillRule("-t")


RULES = {"first-candidate": first_candidate, "shortest-candidate": shortest_candidate}
