"""Work that makes many objects and no cycles, without looks for garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_looks_for_garbage() -> Iterator[None]:
    """Look for no garbage meanwhile: what nothing refers to is freed all the same, but cycles are not."""
    looks = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looks:
            gc.enable()
