"""Hunt for inputs that a reader does not survive: ``python tests/fuzz/hunt.py FIRST LAST [TARGET…]``.

What is found is reduced and written to ``failing/``, one input for each kind of fault.
"""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

from fuzz_judge import in_child
from fuzz_targets import TARGETS, generated, outcomes, warm_up

FAILING = Path(__file__).resolve().parent / "failing"


def hunt(name: str, first: int, last: int, folder: Path) -> None:
    """Try the inputs of these numbers; write down the first of each kind of fault."""
    warm_up(name, folder)
    started_at, begin, kinds = time.monotonic(), first, set[str]()
    while first < last:
        for number, fault in in_child(outcomes(name, first, last, folder), first):
            first = number + 1
            kind = re.sub(r"[^A-Za-z0-9]+", "-", fault.partition(": b")[0]).strip("-")[:80]
            if fault and kind not in kinds:
                kinds.add(kind)
                is_reduced = ": b" in fault
                data = (folder / "reduced").read_bytes() if is_reduced else generated(name, number)
                (FAILING / f"{name}--{kind}").write_bytes(data)
                print(f"{name} {number}: {fault}", flush=True)
    print(f"{name}: {last - begin} inputs, {time.monotonic() - started_at:.1f} s", flush=True)


def main(first: str, last: str, *names: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in names or TARGETS:
            hunt(name, int(first), int(last), Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
