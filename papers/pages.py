"""Pages of results: those of studies, with what only a paper has, templates filled, and the index."""

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bridge.report import table as tables
from bridge.report.folding import collapsible
from bridge.study import picture, report
from bridge.study.results import document_of
from bridge.study.spec import Study
from bridge.study.store import Store
from papers import bounds, curves, headlines, insample, pictures, ranking, store, studies
from papers.lines import PAPERS as HEADLINES
from papers.lines import Headline
from papers.mrsch import goals, sizes
from papers.rlschert import sweeps
from papers.sem import convergence


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(studies.HERE),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.globals["table"] = lambda heads, rows: tables.Table(heads, rows).markdown().rstrip()
    environment.filters["fold"] = lambda text, title: "\n\n".join(collapsible(title, [text.strip()]))
    environment.globals["bullets"] = lambda sentences: "\n".join(f"- {sentence}" for sentence in sentences)
    return environment


def render(template: str, **values: Any) -> str:
    return _templates().get_template(template).render(values)


def block(template: str, name: str, **values: Any) -> str:
    """Return one block of a template: a section of a page."""
    page_template = _templates().get_template(template)
    return "".join(page_template.blocks[name](page_template.new_context(values)))


#: Tables whose agents are in the zoo: what they choose.
_EXPLAINED = {
    "rlbackfilling-4-fcfs": "rlbackfilling-*[!f]-explained.svg",  # not those on SJF
    "rlbackfilling-4-sjf": "rlbackfilling-*-sjf-explained.svg",
    "schedinspector-4": "schedinspector-*-explained.svg",
    "mrsch-s1-s5": "mrsch-*-explained.svg",
    "sem-theta": "sem-theta-explained.svg",
    "sem-datastar": "sem-datastar-explained.svg",
}


#: Tables with box plots of all sequences: by which test, of which rows (SchedInspector, Figure 8).
_BOXES = {
    "schedinspector-4": (
        "paper",
        (
            *("SJF, the paper's rules", "inspector, as the paper"),
            *("F1, the paper's rules", "inspector on F1, as the paper"),
        ),
    )
}
#: Tables whose inspectors' shares of rejected picks are told (SchedInspector, Figure 7).
REJECTIONS = ("schedinspector-code",)


def _more(paper: str, study: Study) -> list[str]:
    """Return what a page folds behind its tables: how agents learnt, charts of the paper's own kind."""
    picture_files = [pictures.curves(study.name)]
    sections: list[str] = []
    of_figures = study.name in convergence.PUBLISHED
    if paper == "mrsch" or of_figures:
        picture_files.append(pictures.kiviat(study, studies.findings(paper, study.name)))
    if of_figures:
        picture_files.append(pictures.convergence(study.name))
        sections += ["Figure 8:", "", *(f"- {one}" for one in convergence.sentences(study.name))]
    if study.name in goals.TABLES:
        picture_files.append(goals.draw(paper, study))
        sections += [
            "The goal of each decision, all jobs in one go:",
            *(f"- {one}" for one in goals.sentences(study)),
        ]
    if study.name in _BOXES:
        picture_files.append(pictures.boxes(study, studies.findings(paper, study.name), *_BOXES[study.name]))
    if study.name in REJECTIONS:
        sections += curves.rejections(study.name)
    if study.name == "rlschert-9":
        shares = sweeps.shares(studies.findings(paper, study.name))
        sections += ["Where fewer jobs are predicted:", "", *(f"- {one}" for one in shares)]
    if study.name in _EXPLAINED:
        picture_files += sorted(store.RESULTS.glob(_EXPLAINED[study.name]))
    return [f"![{path.stem}]({path.name})" for path in picture_files if path is not None] + [
        "\n".join(sections)
    ]


def page(paper: str, study: Study, document: report.Document) -> str:
    """Return a table's page as Markdown; its picture is drawn."""
    path, table = store.RESULTS / f"{study.name}.svg", None
    if study.name == "ranking":
        picture_file: Path | None = ranking.draw(document, path)
        table = ranking.winners(document)
    elif study.name in sweeps.TABLES:
        picture_file, table = sweeps.draw(document, study.name), sweeps.table(document)
    else:
        picture_file = picture.draw(document, report.tests_of(document)[0], path)
    file = studies.file_of_table(paper, study.name)
    command = f"python -m papers study run papers/{paper}/{file.name} --table {study.name}"
    more = [part for part in _more(paper, study) if part]
    text = report.markdown(document, study.name if picture_file else "", command, more, table)
    if study.name in insample.TABLES and (section := insample.section(study.name)):
        text += "\n" + "\n\n".join(collapsible(insample.TITLE, section)) + "\n"
    if section := sizes.section(studies.findings(paper, study.name)):
        text += "\n" + "\n\n".join(collapsible(sizes.TITLE, section)) + "\n"
    left = bounds.format_bound(row["log"] for row in document["rows"])
    return text.replace(f"`{command}`", f"{left}\n\n`{command}`", 1) if left else text


#: Pages that are no tables of agents on logs.
MORE = {
    "generalist": "One agent on logs that it never saw",
    "bounds": "How much could still be gained, and from which knowledge",
    "actions": "What an action gains, and what it costs",
    "fidelity": "Does the replay say what happened?",
    "slurm-gain": "Gains under Slurm's own rules",
    "sem-encoding": "SEM: running jobs in place of nodes",
    "both-worlds": "The same agents in both worlds",
    "mrsch-both-worlds": "Many resources in both worlds: staging and power",
}


def headline(paper: str) -> str:
    """Return how a paper's page opens: its table, its picture, what they say, what cannot be repeated."""
    one = headlines.of(paper)
    return render("headline.md", one=one, **_headline(one))


def _headline(one: Headline) -> dict[str, Any]:
    picture_file = headlines.draw(one)
    return {
        "table": headlines.table(one).markdown().rstrip(),
        "picture": picture_file.name if picture_file else "",
        "sentence": headlines.sentence(one),
    }


#: Papers whose page is made elsewhere, of more than tables.
_PAGE_ELSEWHERE = ("rlschert",)


def _paper_page(one: Headline) -> str:
    lines = [f"[{study.title}]({study.name}.md)" for study, _ in studies.studies(one.paper)]
    return render("paper.md", one=one, headline=headline(one.paper), lines=lines)


def write(papers: Collection[str] = ()) -> list[Path]:
    """Write the pages of studies from what was measured, of some papers or of all, and the index."""
    written, kept = [], Store(studies.CELLS)
    headlines.forget()
    for paper, study, cells in [(p, *one) for p in studies.PAPERS for one in studies.studies(p)]:
        if not papers or paper in papers:
            curves.keep_all(study, cells, kept)
            document = document_of(study, cells, kept)
            written.append(store.written(study.name, page(paper, study, document)))
    for one in HEADLINES:
        if (not papers or one.paper in papers) and one.paper not in _PAGE_ELSEWHERE:
            written.append(store.written(one.paper, _paper_page(one)))
    own = {one.paper for one in HEADLINES}
    lines = [
        f"[{study.title}]({study.name}.md)"
        for paper in studies.PAPERS
        if paper not in own
        for study, _ in studies.studies(paper)
    ]
    lines += [f"[{MORE[name]}]({name}.md)" for name in MORE if (store.RESULTS / f"{name}.md").exists()]
    sections = [{"one": one, **_headline(one)} for one in HEADLINES]
    cannot = [text for one in HEADLINES for text in one.cannot]
    return [
        *written,
        store.written("README", render("index.md", sections=sections, lines=lines, cannot=cannot)),
    ]
