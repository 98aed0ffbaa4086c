"""What arrays hold, in one word (shapes stand in the docstrings); columns of text; several arrays as one."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

#: Of any kind of numbers: what it holds stands beside it.
Array = npt.NDArray[Any]
#: An np.recarray: fields are attributes, in Python as in compiled code.
Records = Any
#: Whole numbers: indices, counts, times in µs.
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Small numbers, as networks take them.
Floats32 = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
#: Bytes of an address, or a length, that kernels are given.
WORD = 8


def behind(flags: Flags) -> int:
    """Return the place behind the last True, 0 if there is none."""
    return int(np.flatnonzero(flags).max(initial=-1)) + 1


def text_column(values: Any) -> Any:
    """Return an Arrow array of strings as a pandas column without a copy: objects cost time and memory."""
    import pandas as pd

    dtype: Any = pd.StringDtype("pyarrow", na_value=np.nan)
    return dtype.__from_arrow__(values)


def as_numbers(column: Any) -> Any:
    """Return a column of a table as numbers, NaN where it holds none, or one too large for a float."""
    import pandas as pd

    try:
        return pd.to_numeric(column, errors="coerce")
    except (OverflowError, TypeError, ValueError):
        return pd.Series([_as_float(value) for value in column], index=column.index, dtype=np.float64)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return np.nan


class Bundle:
    """What a named tuple of arrays inherits from, before its fields, to be taken by one address.

    Attributes:
        large: so much is compiled for it that kernels call their parts, see `bridge.base.jit.inner`.
    """

    large = False

    @cached_property
    def _words(self) -> Any:
        arrays: Any = self
        if not all(array.flags.c_contiguous for array in arrays):
            raise ValueError(f"{type(self).__name__}: kernels take contiguous arrays only")
        words = [word for array in arrays for word in (array.__array_interface__["data"][0], *array.shape)]
        return np.array(words, np.int64)

    @cached_property
    def address(self) -> int:
        """Where the kernels find the arrays, as long as this object lives."""
        return int(self._words.ctypes.data)

    def with_arrays(self, changed: dict[str, Any]) -> Any:
        """Return the same with other arrays of the same types in the place of some."""
        arrays: Any = self
        other, words, place = arrays._replace(**changed), self._words.copy(), 0
        for name, array in zip(arrays._fields, arrays, strict=True):
            if name in changed:
                row = (changed[name].__array_interface__["data"][0], *changed[name].shape)
                words[place : place + len(row)] = row
            place += 1 + array.ndim
        other.__dict__["_words"] = words
        return other

    def __reduce__(self) -> Any:
        """Copies have arrays, and so an address, of their own."""
        return type(self)._make, (tuple(self),)  # type: ignore[attr-defined, arg-type]
