"""ROS 2 node: register clouds to those of another topic, or to a map, and broadcast the transform.

python ros2_node.py --ros-args -r source:=/left/points -r target:=/right/points
python ros2_node.py map.ply --ros-args -r source:=/lidar/points
"""

import numpy as np
import rclpy
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.utilities import remove_ros_args
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import PointCloud2
from tf2_ros import TransformBroadcaster

import pcreg

TYPES = dict(
    enumerate(("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8"), start=1)
)  # of sensor_msgs/PointField


class Register(Node):
    """Register each cloud of the topic `source` to the last one of `target`, or to the map in a file."""

    def __init__(self, map_file: str | None = None) -> None:
        super().__init__("pcreg")
        self.registrar, self.broadcaster = pcreg.Registrar(), TransformBroadcaster(self)
        self.target, self.frame = None, "map"
        newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        if map_file:
            self.target = self.registrar.prepare(map_file, is_map=True)
        else:
            self.create_subscription(PointCloud2, "target", self.receive_target, newest)
        self.create_subscription(PointCloud2, "source", self.receive_source, newest)

    def receive_target(self, message: PointCloud2) -> None:
        self.target, self.frame = points(message), message.header.frame_id

    def receive_source(self, message: PointCloud2) -> None:
        if self.target is None:
            return
        try:
            if isinstance(self.target, np.ndarray):  # described once, for all sources until the next target
                self.target = self.registrar.prepare(self.target, name="target", viewpoint="sensor")
            source = self.registrar.prepare(points(message), name="source", viewpoint="sensor")
            found = self.registrar.register(source, self.target)
        except pcreg.InputError as error:
            self.get_logger().warning(str(error))
            return
        self.get_logger().info(f"registered: {found.registered}, {found.confidence:.2f}: {found.reason}")
        if found.registered:
            self.broadcaster.sendTransform(stamped(found.T_target_source, self.frame, message.header))


def points(message: PointCloud2) -> np.ndarray:
    """The points (N, 3) float64 of a message, in its frame, NaN where the sensor saw nothing."""
    order = ">" if message.is_bigendian else "<"
    fields = {field.name: (order + TYPES[field.datatype], field.offset) for field in message.fields}
    formats, offsets = zip(*(fields[axis] for axis in "xyz"), strict=True)
    layout = {"names": list("xyz"), "formats": formats, "offsets": offsets, "itemsize": message.point_step}
    strides = message.row_step, message.point_step
    rows = np.ndarray((message.height, message.width), np.dtype(layout), message.data, strides=strides)
    return np.stack([rows[axis].ravel() for axis in "xyz"], axis=1).astype(np.float64)


def stamped(T_target_source: np.ndarray, frame: str, header: object) -> TransformStamped:
    """Transform from the frame of the source's header to that of the target."""
    made = TransformStamped()
    made.header.stamp, made.header.frame_id, made.child_frame_id = header.stamp, frame, header.frame_id
    shift, turn = made.transform.translation, made.transform.rotation
    shift.x, shift.y, shift.z = T_target_source[:3, 3].tolist()
    turn.x, turn.y, turn.z, turn.w = Rotation.from_matrix(T_target_source[:3, :3]).as_quat().tolist()
    return made


if __name__ == "__main__":
    rclpy.init()
    rclpy.spin(Register(*remove_ros_args()[1:]))
