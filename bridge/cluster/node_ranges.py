"""Lists of nodes in Slurm's short form: ``n[1-3,7],gpu2``; `slurm_values.node_names` reads it back."""

import re
from collections import defaultdict
from collections.abc import Iterable

from bridge.base.ranges import ranges_of

#: A name with a number at its end that a list may count.
_NUMBERED = re.compile(r"(.*?)(\d{1,12})", re.ASCII)


def short_list(names: Iterable[str]) -> str:
    """Return these names as one list, those with numbers at their end in ranges."""
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    words: list[str] = []
    for name in sorted({*names}):
        match = _NUMBERED.fullmatch(name)
        if match:
            numbers[match[1], len(match[2])].append(int(match[2]))
        else:
            words.append(name)
    for (stem, width), of in numbers.items():
        spans = ranges_of(sorted(of))
        parts = [f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in spans]
        is_one = len(of) == 1
        words.append(f"{stem}{parts[0]}" if is_one else f"{stem}[{','.join(parts)}]")
    return ",".join(words)
