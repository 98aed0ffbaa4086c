"""The papers' studies: their files, what is there of them, and the agents that have learnt here."""

from functools import cache
from pathlib import Path

from bridge.study import archive
from bridge.study.cells import Cell, cells_of, prefer_shorter_trainings
from bridge.study.reading import read_studies
from bridge.study.results import StudyResults
from bridge.study.spec import Study
from bridge.study.store import Store
from papers import store

HERE = Path(__file__).resolve().parent
#: Papers whose tables hold agents on logs, and the page that ranks everybody, in the order of the index.
PAPERS = ("rlbackfilling", "schedinspector", "mrsch", "sem", "rlschert", "ranking", "sites", "acting")
#: Study files beside `study.toml`, each with a record of its own.
FURTHER = {"mrsch": ("crossing",), "sem": ("unseen", "methods"), "rlschert": ("code",)}
#: Where `bridge study run` keeps what has been done, agents too.
CELLS = store.ROOT / "runs" / "studies"


def file_of(paper: str) -> Path:
    return HERE / paper / "study.toml"


def files_of(paper: str) -> tuple[Path, ...]:
    first = file_of(paper)
    return (first, *(first.with_name(f"{name}.toml") for name in FURTHER.get(paper, ())))


@cache
def file_of_table(paper: str, table: str) -> Path:
    return next(file for file in files_of(paper) if any(study.name == table for study in read_studies(file)))


@cache
def studies(paper: str) -> tuple[tuple[Study, tuple[Cell, ...]], ...]:
    """Return the tables of a paper with their cells; logs need not be here if they are in the record."""
    kept, tables = Store(CELLS), []
    for file in files_of(paper):
        studies_read = read_studies(file)
        digests = archive.unpack_all(studies_read, file, kept)
        tables += [
            (study, tuple(prefer_shorter_trainings(cells_of(study, digests), kept, for_now=True)))
            for study in studies_read
        ]
    return tuple(tables)


def table(paper: str, name: str) -> tuple[Study, tuple[Cell, ...]]:
    (match,) = (one for one in studies(paper) if one[0].name == name)
    return match


def findings(paper: str, name: str) -> StudyResults:
    return StudyResults(*table(paper, name), Store(CELLS))


def agent(paper: str, name: str, row: str, log: str, seed: int) -> Path | None:
    """Return the folder of an agent of a table; None if it has not learnt here."""
    _, cells = table(paper, name)
    keys = [cell.agent_key for cell in cells if (cell.row, cell.log, cell.seed) == (row, log, seed)]
    folders = [Store(CELLS).agent(key) for key in keys]
    return next((folder for folder in folders if folder.exists()), None)
