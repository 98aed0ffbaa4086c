"""Networks this small are quickest with one thread, and the same bits need the same number of threads."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
