"""The page itself: sections in order, a table of contents, and everything it needs inside of it."""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import bridge
from bridge.errors import BridgeError
from bridge.files import replacing
from bridge.report.html import render
from bridge.report.page.charts import Sheet
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
    # As a browser reads it, so that the hashes hold: with \n for every end of line.
    scripts = [s.replace("\r\n", "\n").replace("\r", "\n") for s in (get_plotlyjs(), _asset("page.js"))]
    if any("</script" in script.lower() for script in scripts):
        raise BridgeError("plotly.js cannot be put into a page: it holds an end of script")
    return render(
        "page.html.j2",
        hashes=_hashes(scripts),
        title=title,
        style=_asset("page.css"),
        sources=material.sources,
        sections=[section for section in found if section is not None],
        charts=sheet.data(),
        scripts=scripts,
        version=bridge.__version__,
    )


def _asset(name: str) -> str:
    return resources.files("bridge.report.page").joinpath(name).read_text(encoding="utf-8")


def _hashes(scripts: Sequence[str]) -> str:
    """Return what a content security policy says of our scripts: these run, and no other."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
