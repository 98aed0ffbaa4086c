"""What arrays hold, in one word (shapes stand in the docstrings); columns of text."""

from typing import Any

import numpy as np
import numpy.typing as npt

#: Whole numbers: indices, counts, times in µs.
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Small numbers, as networks take them.
Floats32 = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


def text_column(values: Any) -> Any:
    """Return an Arrow array of strings as a pandas column without a copy: objects cost time and memory."""
    import numpy as np
    import pandas as pd

    dtype: Any = pd.StringDtype("pyarrow", na_value=np.nan)
    return dtype.__from_arrow__(values)
