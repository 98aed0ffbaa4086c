"""Kernels that passes call often: once compiled, without Numba's look at each array's type."""

from collections.abc import Callable
from typing import Any

from bridge.base.jit import entry


class Quick:
    """A kernel that is always called with the same types."""

    __slots__ = ("_code", "_kernel")

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self._kernel = kernel
        self._code: Callable[..., Any] | None = None

    def __call__(self, *arrays: Any) -> Any:
        if self._code is not None:
            return self._code(*arrays)
        answer = self._kernel(*arrays)
        code = entry(self._kernel, arrays[0])  # of kernels for several kinds of state, this one's
        if code is not self._kernel:
            self._code = code
        return answer
