"""The node of docs/ros2.md on messages of the layout of sensor_msgs, with stand-ins for ROS."""

import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pcreg.geometry.se3 import rotation_error, se3, translation_error
from pcreg.io.cloud import write_ply
from tests.processes import CHECKOUT

FLOAT32, FLOAT64 = 7, 8


def record() -> SimpleNamespace:
    """An empty TransformStamped."""
    header, parts = SimpleNamespace(), {name: SimpleNamespace() for name in ("translation", "rotation")}
    return SimpleNamespace(header=header, transform=SimpleNamespace(**parts))


class Node:
    def __init__(self, _name):
        self.callbacks, self.logged, self.sent = {}, [], []

    def create_subscription(self, _kind, topic, callback, _quality):
        self.callbacks[topic] = callback

    def get_logger(self):
        return SimpleNamespace(info=self.logged.append, warning=self.logged.append)


@pytest.fixture
def example(monkeypatch):
    """The names of the listing, which imports stand-ins."""
    names = {
        "rclpy": {},
        "rclpy.node": {"Node": Node},
        "rclpy.qos": {"QoSProfile": dict, "ReliabilityPolicy": SimpleNamespace(BEST_EFFORT=2)},
        "rclpy.utilities": {"remove_ros_args": list},
        "geometry_msgs.msg": {"TransformStamped": record},
        "sensor_msgs.msg": {"PointCloud2": SimpleNamespace},
        "tf2_ros": {"TransformBroadcaster": lambda node: SimpleNamespace(sendTransform=node.sent.append)},
    }
    for name, content in names.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    (listing,) = re.findall(r"```python\n(.*?)```", (CHECKOUT / "docs" / "ros2.md").read_text(), re.DOTALL)
    defined = {"__name__": "node"}
    exec(listing, defined)
    return defined


def message(points, frame="lidar", *, datatype=FLOAT32, bigendian=False, height=1, padding=0):
    """A PointCloud2 of these points, with an intensity before them and `padding` bytes after each row."""
    kind = (">" if bigendian else "<") + {FLOAT32: "f4", FLOAT64: "f8"}[datatype]
    layout = np.dtype([("intensity", kind), ("x", kind), ("y", kind), ("z", kind), ("ring", "u2")])
    rows = np.zeros((height, len(points) // height), layout)
    for axis, column in zip("xyz", points.T, strict=True):
        rows[axis] = column.reshape(rows.shape)
    fields = [
        SimpleNamespace(name=name, offset=layout.fields[name][1], datatype=datatype, count=1)
        for name in ("intensity", "x", "y", "z")
    ]
    return SimpleNamespace(
        header=SimpleNamespace(stamp="now", frame_id=frame),
        **{"height": height, "width": rows.shape[1], "fields": fields, "is_bigendian": bigendian},
        **{"point_step": layout.itemsize, "row_step": rows.shape[1] * layout.itemsize + padding},
        data=b"".join(row.tobytes() + bytes(padding) for row in rows),
    )


@pytest.mark.parametrize("datatype", [FLOAT32, FLOAT64])
@pytest.mark.parametrize("bigendian", [False, True])
@pytest.mark.parametrize(("height", "padding"), [(1, 0), (4, 0), (4, 6)])
def test_points_come_out_of_any_layout(example, datatype, bigendian, height, padding):
    points = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32).astype(np.float64)
    points[3] = np.nan
    made = message(points, datatype=datatype, bigendian=bigendian, height=height, padding=padding)
    np.testing.assert_array_equal(example["points"](made), points)


def assert_sent(sent, frame, T):
    assert (sent.header.frame_id, sent.child_frame_id, sent.header.stamp) == (frame, "lidar", "now")
    turn, shift = vars(sent.transform.rotation), vars(sent.transform.translation)
    R = Rotation.from_quat([turn[axis] for axis in "xyzw"]).as_matrix()
    found = se3(R, np.array([shift[axis] for axis in "xyz"]))
    assert rotation_error(found, T) < 0.5
    assert translation_error(found, T) < 0.05


def test_it_broadcasts_the_transform_between_two_topics(example, room):
    node = example["Register"]()
    node.callbacks["source"](message(room.source))  # nothing to register to
    node.callbacks["target"](message(room.target, "camera"))
    node.callbacks["source"](message(room.source[:5]))
    node.callbacks["source"](message(room.source))
    (sent,) = node.sent
    assert_sent(sent, "camera", room.T_target_source)
    assert len(node.logged) == 2


def test_it_broadcasts_the_transform_into_a_map(example, room, tmp_path):
    write_ply(tmp_path / "map.ply", room.target)
    node = example["Register"](str(tmp_path / "map.ply"))
    node.callbacks["source"](message(room.source))
    assert "target" not in node.callbacks
    assert_sent(node.sent[0], "map", room.T_target_source)
