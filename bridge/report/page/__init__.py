"""One self-contained HTML page of runs, validations, evaluations and agents: the verdict, then the rest."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.base.version import __version__
from bridge.judge.world_agreement import ValidationDocument
from bridge.report.evaluation_document import EvaluationDocument, bound_summary, bound_table
from bridge.report.page.charts import SECTIONS, Block, Sheet
from bridge.report.page.inputs import ReportInputs, read_inputs
from bridge.report.page.learning import explanation_section, training_section
from bridge.report.page.policies import evaluation_section, means
from bridge.report.page.runs import metrics, over_time, run_label, schedule
from bridge.report.page.worlds import validated
from bridge.report.table import render
from bridge.report.tables import TITLES, format_interval, format_metric

__all__ = ["ReportInputs", "page", "read_inputs", "write_page"]

TITLE = "bridge report"
#: Rules named beside an agent, the best first.
MOST_RULES = 3


def write_page(material: ReportInputs, path: Path, title: str = TITLE) -> None:
    """Write the page (.html); an existing file is replaced only if all went well (BridgeError)."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise BridgeError("a page is saved as .html", where=str(path), remedy="Change the suffix.")
    html = page(material, title).encode(errors="replace")  # a name may hold half a surrogate pair
    with atomic_write(path) as out:
        out.write(html)


def page(material: ReportInputs, title: str = TITLE) -> str:
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


def _sections(material: ReportInputs, sheet: Sheet) -> Iterator[dict[str, Any]]:
    """Yield every section that has a body, or a part with one, as `section.html.j2` takes it."""

    def section(anchor: str, body: Sequence[Block] = (), parts: Any = (), **words: str) -> Iterator[Any]:
        if body or any(part for _, part in parts):
            texts = SECTIONS[anchor]
            lead = texts["lead"].format(**words)
            yield {"anchor": anchor, "title": texts["title"], "lead": lead, "body": body, "parts": parts}

    def each(draw: Callable[[Any, Sheet], Iterable[Block]], inputs: Sequence[tuple[str, Any]]) -> Any:
        return [(name, list(draw(one, sheet))) for name, one in inputs]

    runs, agents, validations = material.runs, material.checkpoints, material.validations
    judged = [*material.evaluations]
    judged += [(name, agent.evaluation) for name, agent in agents if agent.evaluation is not None]
    yield from section("verdict", _verdict(judged, material, sheet))
    yield from section("bounds", parts=[(name, bound_table(one)) for name, one in material.bounds])
    image = Markup('<img src="{}" alt="{}">')
    yield from section(
        "futures", parts=[(name, [image.format(uri, name)]) for name, uri in material.pictures]
    )
    whose = "The run's" if len(runs) == 1 else f"The {len(runs)} runs'"
    yield from section("metrics", metrics(runs, sheet), whose=whose)
    yield from section("over-time", over_time(runs, sheet))
    yield from section("schedules", parts=each(schedule, [(run_label(*run), run) for run in runs]))
    yield from section("policies", parts=each(evaluation_section, judged))
    yield from section("worlds", parts=each(validated, validations))
    yield from section("training", parts=each(training_section, agents))
    yield from section("explanations", parts=each(explanation_section, agents))


# The verdict, which a person wants to see first: who is better, whether both worlds agree, and one picture.


def _verdict(
    evaluations: Sequence[tuple[str, EvaluationDocument]], material: ReportInputs, sheet: Sheet
) -> list[Block]:
    """Return the verdicts of all evaluations, validations and bounds; nothing without any."""
    verdicts = [line for _, one in evaluations for line in _judged(one)]
    verdicts += [_compared(one.document) for _, one in material.validations]
    verdicts += [bound_summary(one) for _, one in material.bounds]
    if not verdicts:
        return []
    lines = Markup("\n").join(Markup("<li><strong>{}</strong>{}</li>").format(*line) for line in verdicts)
    charts_drawn = [means(evaluations[0][1], sheet)] if evaluations else []
    return [Markup('<ul class="verdict">\n{}\n</ul>').format(lines), charts_drawn]


def _judged(evaluation: EvaluationDocument) -> Iterator[tuple[str, str]]:
    """Yield a line on every agent; on the first of the rules, where there is none."""
    base, others = evaluation.base, list(evaluation.entries[1:])
    learnt = [one for one in others if one.agent] or others[:1]
    rules = [one for one in others if not one.agent and one not in learnt]
    rules.sort(key=lambda one: one.mean.mean, reverse=evaluation.higher_is_better)
    metric = evaluation.metric
    beside = ", ".join(f"{rule.label} {format_metric(metric, rule.mean.mean)}" for rule in rules[:MOST_RULES])
    for one in learnt:
        mean = f"{TITLES.get(metric, metric)} {format_metric(metric, base.mean.mean)}"
        summary = f". Mean {mean} under {base.label}, "
        summary += f"{format_metric(metric, one.mean.mean)} under it"
        if one.difference:
            summary += f", 95 % interval of the difference {format_interval(metric, one.difference)}"
        summary += f"; {counted(len(base.values), 'window')}." + (
            f" Rules beside it: {beside}." if rules else ""
        )
        yield f"{one.label}: {one.verdict or 'judged'}", summary


def _compared(validation: ValidationDocument) -> tuple[str, str]:
    """Return one line on how far both worlds agree."""
    inputs, pairs = validation.inputs, [(one.policy, one.jobs) for one in validation.policies]
    lines = [f"{who}: {one.differing_starts:,} of {one.common:,} jobs start otherwise" for who, one in pairs]
    same = not any(jobs.differing_starts for _, jobs in pairs)
    head = "Both worlds agree, start for start" if same else "On the platform schedules differ"
    on = f"{inputs.get('platform', 'a platform')}, profile {inputs.get('profile', '')}"
    return head, f" ({on}). {'; '.join(lines)}."
