"""Papers are repeated outside the package; their networks are quickest with one thread, of the same bits."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT, ROOT / "tests" / "pool"):  # its hand-made job sets
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch = pytest.importorskip("torch", reason="agents need PyTorch")
    torch.set_num_threads(1)
