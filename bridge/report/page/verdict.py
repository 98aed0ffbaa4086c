"""What a person wants to see first: who is better, whether both worlds agree, and one picture."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from bridge.report.html import Section
from bridge.report.page.charts import Sheet
from bridge.report.page.evaluation import Evaluation
from bridge.report.page.inputs import Validation
from bridge.report.page.policies import TITLES, between, means
from bridge.report.tables import show

#: Rules named beside an agent, the best first.
MOST_RULES = 3


def verdict(
    evaluations: Sequence[tuple[str, Evaluation]],
    validations: Sequence[tuple[str, Validation]],
    sheet: Sheet,
) -> Section | None:
    """Return the verdicts of all evaluations and validations; None without any."""
    said = [line for _, one in evaluations for line in _judged(one)]
    said += [line for _, one in validations for line in _compared(one.document)]
    if not said:
        return None
    lines = Markup("\n").join(map(Markup("<li><strong>{}</strong>{}</li>").format, *zip(*said, strict=True)))
    drawn = [means(evaluations[0][1], sheet)] if evaluations else []
    lead = "The outcome in short. How it was found, and everything else, is below."
    return Section(
        "verdict", "The verdict", lead, [Markup('<ul class="verdict">\n{}\n</ul>').format(lines), drawn]
    )


def _judged(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield a line on every agent; on the first of the rules, where there is none."""
    base, others = evaluation.base, list(evaluation.entries[1:])
    learnt = [one for one in others if one.agent] or others[:1]
    rules = [one for one in evaluation.entries if not one.agent and one is not base and one not in learnt]
    rules.sort(key=lambda one: one.mean.mean, reverse=evaluation.higher_is_better)
    metric = evaluation.metric
    for one in learnt:
        held = f", 95 % interval of the difference {between(metric, one.difference)}"
        line = (
            f". Mean {TITLES.get(metric, metric)} {show(metric, base.mean.mean)} under {base.label}, "
            f"{show(metric, one.mean.mean)} under it{held if one.difference else ''}; "
            f"{len(base.values):,} windows."
        )
        if rules:
            named = ", ".join(f"{rule.label} {show(metric, rule.mean.mean)}" for rule in rules[:MOST_RULES])
            line += f" Rules beside it: {named}."
        yield f"{one.label}: {one.verdict or 'judged'}", line


def _compared(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield one line on how far both worlds agree."""
    inputs = document["inputs"]
    found = [
        f"{one['policy']}: {jobs['differing_starts']:,} of {jobs['common']:,} jobs start otherwise"
        for one in document["policies"]
        for jobs in (one["jobs"],)
        if {"differing_starts", "common"} <= set(jobs)
    ]
    if found:
        same = all(not one["jobs"]["differing_starts"] for one in document["policies"])
        head = "Both worlds agree, start for start" if same else "On the platform schedules differ"
        on = f"{inputs.get('platform', 'a platform')}, profile {inputs.get('profile', '')}"
        yield head, f" ({on}). {'; '.join(found)}."
