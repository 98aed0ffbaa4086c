"""One self-contained HTML page of runs, validations, evaluations and agents: the verdict, then the rest."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from bridge.errors import BridgeError
from bridge.files import replacing
from bridge.judge.agreement import Validation
from bridge.report.page.charts import SECTIONS, Block, Sheet
from bridge.report.page.evaluation import Evaluation, bound_summary, bound_table
from bridge.report.page.inputs import Material, read_inputs
from bridge.report.page.learning import explained, learnt
from bridge.report.page.policies import evaluated, means
from bridge.report.page.runs import metrics, named, over_time, schedule
from bridge.report.page.worlds import validated
from bridge.report.table import render
from bridge.report.tables import TITLES, between, show
from bridge.version import __version__

__all__ = ["Material", "page", "read_inputs", "write_page"]

TITLE = "bridge report"
#: Rules named beside an agent, the best first.
MOST_RULES = 3


def write_page(material: Material, path: Path, title: str = TITLE) -> None:
    """Write the page (.html); an existing file is replaced only if all went well (BridgeError)."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise BridgeError("a page is saved as .html", where=str(path), remedy="Change the suffix.")
    made = page(material, title).encode(errors="replace")  # a name may hold half a surrogate pair
    with replacing(path) as out:
        out.write(made)


def page(material: Material, title: str = TITLE) -> str:
    """Return the page as HTML: the same inputs and title give the same text."""
    sheet = Sheet()
    sections = list(_sections(material, sheet))
    # As a browser reads it, so that the hashes hold: with \n for every end of line.
    scripts = [s.replace("\r\n", "\n").replace("\r", "\n") for s in (get_plotlyjs(), _asset("page.js"))]
    if any("</script" in script.lower() for script in scripts):
        raise BridgeError("plotly.js cannot be put into a page: it holds an end of script")
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    return render(
        "page.html.j2",
        hashes=" ".join(f"'sha256-{digest}'" for digest in digests),
        title=title,
        style=_asset("page.css"),
        sources=material.sources,
        sections=sections,
        charts=sheet.data(),
        scripts=scripts,
        version=__version__,
    )


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _sections(material: Material, sheet: Sheet) -> Iterator[dict[str, Any]]:
    """Yield every section that has a body, or a part with one, as `section.html.j2` takes it."""

    def made(anchor: str, body: Sequence[Block] = (), parts: Any = (), **words: str) -> Iterator[Any]:
        if body or any(part for _, part in parts):
            told = SECTIONS[anchor]
            lead = told["lead"].format(**words)
            yield {"anchor": anchor, "title": told["title"], "lead": lead, "body": body, "parts": parts}

    def each(draw: Callable[[Any, Sheet], Iterable[Block]], inputs: Sequence[tuple[str, Any]]) -> Any:
        return [(name, list(draw(one, sheet))) for name, one in inputs]

    runs, agents, validations = material.runs, material.checkpoints, material.validations
    judged = [*material.evaluations]
    judged += [(name, agent.evaluation) for name, agent in agents if agent.evaluation is not None]
    yield from made("verdict", _verdict(judged, material, sheet))
    yield from made("bounds", parts=[(name, bound_table(one)) for name, one in material.bounds])
    image = Markup('<img src="{}" alt="{}">')
    yield from made("futures", parts=[(name, [image.format(uri, name)]) for name, uri in material.pictures])
    whose = "The run's" if len(runs) == 1 else f"The {len(runs)} runs'"
    yield from made("metrics", metrics(runs, sheet), whose=whose)
    yield from made("over-time", over_time(runs, sheet))
    yield from made("schedules", parts=each(schedule, [(named(*run), run) for run in runs]))
    yield from made("policies", parts=each(evaluated, judged))
    yield from made("worlds", parts=each(validated, validations))
    yield from made("training", parts=each(learnt, agents))
    yield from made("explanations", parts=each(explained, agents))


# The verdict, which a person wants to see first: who is better, whether both worlds agree, and one picture.


def _verdict(evaluations: Sequence[tuple[str, Evaluation]], material: Material, sheet: Sheet) -> list[Block]:
    """Return the verdicts of all evaluations, validations and bounds; nothing without any."""
    said = [line for _, one in evaluations for line in _judged(one)]
    said += [_compared(one.document) for _, one in material.validations]
    said += [bound_summary(one) for _, one in material.bounds]
    if not said:
        return []
    lines = Markup("\n").join(Markup("<li><strong>{}</strong>{}</li>").format(*line) for line in said)
    drawn = [means(evaluations[0][1], sheet)] if evaluations else []
    return [Markup('<ul class="verdict">\n{}\n</ul>').format(lines), drawn]


def _judged(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield a line on every agent; on the first of the rules, where there is none."""
    base, others = evaluation.base, list(evaluation.entries[1:])
    learnt = [one for one in others if one.agent] or others[:1]
    rules = [one for one in others if not one.agent and one not in learnt]
    rules.sort(key=lambda one: one.mean.mean, reverse=evaluation.higher_is_better)
    metric = evaluation.metric
    beside = ", ".join(f"{rule.label} {show(metric, rule.mean.mean)}" for rule in rules[:MOST_RULES])
    for one in learnt:
        said = f". Mean {TITLES.get(metric, metric)} {show(metric, base.mean.mean)} under {base.label}, "
        said += f"{show(metric, one.mean.mean)} under it"
        if one.difference:
            said += f", 95 % interval of the difference {between(metric, one.difference)}"
        said += f"; {len(base.values):,} windows." + (f" Rules beside it: {beside}." if rules else "")
        yield f"{one.label}: {one.verdict or 'judged'}", said


def _compared(validation: Validation) -> tuple[str, str]:
    """Return one line on how far both worlds agree."""
    inputs, found = validation.inputs, [(one.policy, one.jobs) for one in validation.policies]
    said = [f"{who}: {one.differing_starts:,} of {one.common:,} jobs start otherwise" for who, one in found]
    same = not any(jobs.differing_starts for _, jobs in found)
    head = "Both worlds agree, start for start" if same else "On the platform schedules differ"
    on = f"{inputs.get('platform', 'a platform')}, profile {inputs.get('profile', '')}"
    return head, f" ({on}). {'; '.join(said)}."
