import pytest

from tests.datasets.kitti_tree import write_scene


@pytest.fixture
def tree(tmp_path):
    """A drive of KITTI's layout, and the true motion of its first scan into the second."""
    return write_scene(tmp_path)
