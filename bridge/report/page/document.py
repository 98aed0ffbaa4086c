"""The page itself: sections in order, a table of contents, and everything it needs inside of it."""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import bridge
from bridge.errors import BridgeError
from bridge.files import replacing
from bridge.report.page.charts import Sheet
from bridge.report.page.html import Section, text
from bridge.report.page.inputs import Material
from bridge.report.page.learning import explanations, training
from bridge.report.page.policies import policies
from bridge.report.page.runs import metrics, over_time
from bridge.report.page.schedule import schedules
from bridge.report.page.verdict import verdict
from bridge.report.page.worlds import worlds

TITLE = "bridge report"


def write_page(material: Material, path: Path, title: str = TITLE) -> None:
    """Write the page; an existing file is replaced only if all went well.

    Raises:
        BridgeError: another suffix than .html, an input cannot be drawn, or the file cannot be written.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise BridgeError("a page is saved as .html", where=str(path), remedy="Change the suffix.")
    made = page(material, title).encode(errors="replace")  # a name may hold half a surrogate pair
    with replacing(path) as out:
        out.write(made)


def page(material: Material, title: str = TITLE) -> str:
    """Return the page as HTML: the same inputs and title give the same text.

    Raises:
        BridgeError: plotly is missing, or an input cannot be drawn.
    """
    try:
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]
    except ImportError as error:
        raise BridgeError(
            "the package plotly is missing, which draws the charts",
            remedy="Install it: pip install 'plotly>=6'",
        ) from error
    sheet = Sheet()
    judged = [*material.evaluations]
    judged += [(name, one.evaluation) for name, one in material.checkpoints if one.evaluation is not None]
    found = [
        verdict(judged, material.validations, sheet),
        metrics(material.runs, sheet),
        over_time(material.runs, sheet),
        schedules(material.runs, sheet),
        policies(judged, sheet),
        worlds(material.validations, sheet),
        training(material.checkpoints, sheet),
        explanations(material.checkpoints, sheet),
    ]
    sections = [section for section in found if section is not None]
    style = _asset("page.css")
    # As a browser reads it, so that the hashes hold: with \n for every end of line.
    scripts = [s.replace("\r\n", "\n").replace("\r", "\n") for s in (get_plotlyjs(), _asset("page.js"))]
    if any("</script" in script.lower() for script in scripts):
        raise BridgeError("plotly.js cannot be put into a page: it holds an end of script")
    return _HTML.format(
        policy=_policy(scripts),
        title=text(title),
        style=style,
        sources="\n".join(map(_source, material.sources)),
        contents=_contents(sections),
        sections="\n".join(map(_section, sections)),
        data=sheet.data(),
        plotly=scripts[0],
        script=scripts[1],
        version=text(bridge.__version__),
    )


def _asset(name: str) -> str:
    return resources.files("bridge.report.page").joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    """Return a content security policy: only our two scripts run, and nothing is loaded from anywhere."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"


def _source(source: tuple[str, str, str]) -> str:
    name, kind, about = map(text, source)
    return f"<li><strong>{name}</strong>, {kind}" + (f": {about}</li>" if about else "</li>")


def _contents(sections: Sequence[Section]) -> str:
    lines = []
    for section in sections:
        inner = "".join(f'<li><a href="#{text(a)}">{text(title)}</a></li>' for a, title in section.entries)
        nested = f"<ul>{inner}</ul>" if inner else ""
        lines.append(f'<li><a href="#{text(section.anchor)}">{text(section.title)}</a>{nested}</li>')
    return "\n".join(lines)


def _section(section: Section) -> str:
    return (
        f'<section id="{text(section.anchor)}" aria-labelledby="{text(section.anchor)}-title">\n'
        f'<h2 id="{text(section.anchor)}-title">{text(section.title)}</h2>\n'
        f'<p class="lead">{text(section.lead)}</p>\n{section.body}\n</section>'
    )


_HTML = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<nav aria-label="Contents">
<p><a href="#top">Contents</a></p>
<ul>
{contents}
</ul>
</nav>
<main id="top">
<header>
<h1>{title}</h1>
<ul class="sources">
{sources}
</ul>
<noscript><p class="broken">Charts need scripting. Every number is in the tables.</p></noscript>
</header>
{sections}
<footer><p>Made by bridge {version}. This file needs no network.</p></footer>
</main>
{data}
<script>{plotly}</script>
<script>{script}</script>
</body>
</html>
"""
