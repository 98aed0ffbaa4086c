"""Reading logged jobs with predictions: a CSV file of ``job_id, real, para, cores, running``.

``real`` is the true length and ``para`` the one predicted from input parameters, in 5-minute steps;
``running`` holds the total lengths predicted while the job ran, separated by spaces.
"""

from pathlib import Path

import numpy as np

from bridge.errors import BridgeError
from bridge.pool.jobset import WIDTH, JobSet, from_lengths

COLUMNS = ("job_id", "real", "para", "cores", "running")


def read_vasp(path: Path | str) -> JobSet:
    """Read a job file, plain or compressed; rows keep their order, which the generator's seeds refer to.

    Raises:
        BridgeError: no such file, not such a table, or a value that is no length or no number of cores.
    """
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise BridgeError("no such file", where=str(path), remedy="Without a file, use synthetic jobs.")
    try:
        table = pd.read_csv(path, dtype={"running": str})
    except (OSError, EOFError, ValueError) as error:  # ValueError: pandas' parser errors, undecodable text
        raise BridgeError(f"cannot be read as CSV: {error}", where=str(path)) from error
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing or table.empty:
        what = f"column {missing[0]!r} is missing" if missing else "holds no jobs"
        raise BridgeError(what, where=str(path), remedy=f"The columns are {', '.join(COLUMNS)}.")

    def wrong(row: int, what: str) -> BridgeError:
        return BridgeError(what, where=f"{path}:{row + 2}")

    numbers: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
    limits = {"job_id": (0, 2**53), "real": (1, WIDTH + 1), "para": (1, 1e9), "cores": (1, 1e9)}
    for name, (low, high) in limits.items():
        values = pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64)
        bad = ~((values >= low) & (values < high))
        if bad.any():
            row = int(np.argmax(bad))
            raise wrong(row, f"{name} is {table[name].iloc[row]!r}, not a number from {low} to {high:g}")
        numbers[name] = values
    for name in ("job_id", "cores"):
        broken = numbers[name] % 1 != 0
        if broken.any():
            raise wrong(int(np.argmax(broken)), f"{name} is not a whole number")
    series = []
    for row, text in enumerate(table["running"]):
        try:
            values = np.array(str(text).split(), np.float64)
        except ValueError:
            values = np.empty(0)
        if len(values) == 0 or not (values >= 1).all() or not np.isfinite(values).all():
            raise wrong(row, f"running is {str(text)[:40]!r}, not lengths of at least 1 separated by spaces")
        series.append(values)
    return from_lengths(
        path.name.removesuffix(".gz").removesuffix(".csv"),
        numbers["job_id"].astype(np.int64),
        numbers["cores"].astype(np.int64),
        numbers["real"],
        numbers["para"],
        series,
    )
