from pathlib import Path

import pytest

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real scans beside the checkout; not part of the repository."""
    if not REAL_DATA.is_dir():
        pytest.skip("no real scans beside the checkout (shared/data)")
    return REAL_DATA
