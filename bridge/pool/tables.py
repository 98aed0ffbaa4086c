"""What commands show of evaluations and validations of the time-stepped pool."""

from collections.abc import Mapping
from typing import Any

from bridge.base.counted import counted
from bridge.report.evaluation_tables import ORACLE
from bridge.report.table import Table


def pool_evaluation(document: Mapping[str, Any]) -> list[Any]:
    size = (
        f"{counted(document['sequences'], 'sequence')} of {document['steps']} steps, rate "
        f"{document['rate']:g}"
    )
    headings = ("policy", "kill", "mean slowdown", "mean completion, steps")
    table = Table(headings, title=f"{document['data']}: {size}", words=(1,))
    for one in document["policies"]:
        name = f"{one['policy']}{'*' if one['oracle'] else ''}"
        table.add(name, one["kill"], f"{one['slowdown']:.4f}", f"{one['completion_time']:.4f}")
    return [table, *([ORACLE] if any(one["oracle"] for one in document["policies"]) else [])]


#: Rows of a validation of the pool: what is compared, its name, and its format.
_ROWS = (
    ("slowdown", "mean slowdown", ".4f"),
    ("completion_time", "mean completion, steps", ".4f"),
    ("kills", "kills", ",d"),
    ("lost_steps", "lost steps", ",d"),
)


def pool_validation(document: Mapping[str, Any]) -> list[Any]:
    policies = document["policies"]
    one = policies[0]
    size = f"{one['data']}: {counted(one['sequences'], 'sequence')} of {one['steps']} steps"
    where = f"profile {document['profile']} on {document['platform']} ({document['world']})"
    table = Table(("policy", "", "fast", "detailed", "difference"), words=(1,))
    below = []
    for one in policies:
        name = one["policy"] + ("*" if one["fast"]["oracle"] else "")
        for key, label, form in _ROWS:
            step = one["difference"][key]
            values = (format(one[world][key], form) for world in ("fast", "detailed"))
            table.add(name, label, *values, format(step, f"+{form}") if step else "=")
            name = ""
        table.line()
        differing, first = one["differing_starts"], one["first_difference"]
        below.append(f"{one['policy']}: {differing:,} of {counted(one['jobs'], 'job')} start in another step")
        if first:
            below.append(
                f"  first: job {first['job']} of sequence {first['sequence']}, step {first['fast']} in the "
                f"fast world, {first['detailed']} on the platform"
            )
    oracle = [ORACLE] if any(one["fast"]["oracle"] for one in policies) else []
    return [f"{size}, {where}", table, *below, *oracle]
