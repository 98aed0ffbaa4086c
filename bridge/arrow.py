"""Text columns from Arrow to pandas without a copy; a Python object per cell costs time and memory."""

from typing import Any


def text_column(values: Any) -> Any:
    """Return an Arrow array of strings as a pandas column of its string type."""
    import numpy as np
    import pandas as pd

    dtype: Any = pd.StringDtype("pyarrow", na_value=np.nan)
    return dtype.__from_arrow__(values)
