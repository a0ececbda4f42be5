from pathlib import Path

import pytest
import torch

# The tests' tensors are small: threads that wait for one another at every operator cost more than they
# save, and on a busy machine a hundred times more.
torch.set_num_threads(1)

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real scans beside the checkout; not part of the repository."""
    if not REAL_DATA.is_dir():
        pytest.skip("no real scans beside the checkout (shared/data)")
    return REAL_DATA
