"""Hunt for inputs that a reader does not survive: ``python tests/fuzz/hunt.py FIRST LAST [TARGET…]``.

What is found is reduced and written to ``failing/``, one input for each kind of fault.
"""

import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from fuzz_judge import complaint, reduced
from fuzz_targets import TARGETS, seeds, warm_up
from mutators import mutate

FAILING = Path(__file__).resolve().parent / "failing"


def hunt(name: str, first: int, last: int, folder: Path) -> None:
    """Try the inputs of these numbers; write down the first of each kind of fault."""
    target, kinds, slowest = TARGETS[name], set[str](), 0.0
    warm_up(name, folder)
    started_at = time.process_time()
    for number in range(first, last):
        data = mutate(random.Random(f"{name} {number}"), seeds(name), target.form)
        before = time.process_time()
        fault = complaint(target.read, data, folder)
        slowest = max(slowest, time.process_time() - before)
        if fault and fault not in kinds:
            kinds.add(fault)
            path = FAILING / f"{name}--{re.sub(r'[^A-Za-z0-9]+', '-', fault).strip('-')[:80]}"
            path.write_bytes(reduced(target.read, data, folder))
            print(f"{name} {number}: {fault}: {path.read_bytes()[:200]!r}", flush=True)
    seconds = time.process_time() - started_at
    print(f"{name}: {last - first} inputs, {seconds:.1f} s, slowest {slowest:.2f} s", flush=True)


def main(first: str, last: str, *names: str) -> None:
    """Hunt in some targets, or all."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in names or TARGETS:
            hunt(name, int(first), int(last), Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
