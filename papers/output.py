"""What long work says: who is told."""

from collections.abc import Callable

#: Told what is being done.
LineWriter = Callable[[str], None]
