"""What arrays hold, in one word; their shapes stand in the docstrings."""

import numpy as np
import numpy.typing as npt

#: Whole numbers: indices, counts, times in µs.
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Small numbers, as networks take them.
Floats32 = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
