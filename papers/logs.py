"""The logs that rows are judged on: files, and MRSch's workloads, which are made of one when needed."""

import functools
from collections.abc import Mapping
from pathlib import Path

from bridge.workload.catalogue import resolve
from bridge.workload.formats import read, write
from bridge.workload.mrsch import SETTINGS, generate_mrsch
from bridge.workload.table import Workload
from papers import store

#: Names in the tables -> the logs' files; MRSch's workloads are made of theta_2022.
TRACES: Mapping[str, str] = {
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "CTC-SP2": "CTC-SP2-1996-3.1-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "Lublin-1": "lublin_256.swf.gz",
    "Lublin-2": "lublin_256_new2.swf.gz",
    "Theta": "theta_2022.swf.gz",
    "Atlas": "LLNL-Atlas-2006-2.1-cln.swf.gz",
    "DataStar": "SDSC-DS-2004-2.1-cln.swf.gz",
    "Curie": "CEA-Curie-2011-2.1-cln.swf.gz",
} | {name: f"runs/papers/workloads/{name}.parquet" for name in SETTINGS}
#: Of the burst buffer and power requests.
SEED = 1


def trace_file(trace: str) -> Path:
    """Return a log's file: in $BRIDGE_TRACES, fetched, or made of theta_2022."""
    if trace not in SETTINGS:
        return resolve(TRACES[trace])
    path = store.ROOT / TRACES[trace]
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(generate_mrsch(read(trace_file("Theta")), trace, seed=SEED), path)
    return path


@functools.lru_cache(maxsize=2)
def log(trace: str) -> Workload:
    return read(trace_file(trace))
