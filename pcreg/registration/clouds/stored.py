"""Clouds of files, whose descriptions worker processes share in a folder."""

import hashlib
import logging
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from pcreg.features.base import Descriptor
from pcreg.geometry.viewpoint import Viewpoint
from pcreg.io.cloud import Cloud
from pcreg.registration.clouds.inputs import ViewpointOption, as_cloud
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.runtime import cached_property
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import DAMAGED_NPZ, replacing
from pcreg.runtime.records import REGISTERING, code_fingerprint

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CloudFile:
    """A file of a cloud, how to read it, and its content when it was first read."""

    path: str
    units: str
    columns: int | None
    viewpoint: ViewpointOption
    state: tuple[int, ...] = (0, 0)  # as by `state_of`, when it was read without an error
    frame: LocalFrame | None = None
    stated: np.ndarray | None = None  # viewpoint, as by `PreparedCloud.stated`
    voxel: float | None = None  # metres, the size that suits the cloud; None: not computed
    extent: float | None = None  # metres; None: not computed
    notes: tuple[str, ...] = ()
    error: str = ""  # why it cannot be used

    def read(self) -> Cloud:
        return as_cloud(self.path, self.path, self.units, self.columns)

    def examined(self, device: str, *, sized: bool) -> "CloudFile":
        """Read the cloud and add its frame or the error; if `sized`, its voxel size and extent, too."""
        state = state_of(self.path)  # before the file is read, so that a later change is noticed
        try:
            cloud = PreparedCloud(self.read(), self.viewpoint, self.path, device=device)
            size = {"voxel": cloud.voxel, "extent": cloud.extent} if sized else {}
            shown = {"frame": cloud.frame, "stated": cloud.stated, "notes": cloud.notes}
            return replace(self, state=state, **size, **shown)
        except InputError as error:
            sentence = str(error)
            named = sentence.startswith(self.path)
            return replace(self, error=sentence if named else f"{self.path}: {sentence}")


def state_of(path: str) -> tuple[int, int]:
    """Size in bytes and time of change in ns of a file; zeros if it is not there."""
    path = os.path.expanduser(path)
    if not os.path.isfile(path):
        return 0, 0
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


STORED = [field.name for field in fields(DescribedCloud)]


class StoredCloud(PreparedCloud):
    """A cloud of a file, read when its points are needed, with descriptions in a folder."""

    def __init__(self, file: CloudFile, folder: Path, device: str) -> None:
        self.file, self.name, self.option = file, file.path, file.viewpoint
        self.folder, self.device = folder, device
        self._described = {}
        # From the first reading, so that the points need not be read for these
        self.frame, self.stated, self.notes, self.units = file.frame, file.stated, file.notes, file.units
        if file.voxel is not None:
            self.voxel, self.extent = file.voxel, file.extent

    @cached_property
    def cloud(self) -> Cloud:
        return self.file.read()

    def _describe(
        self, descriptor: Descriptor, estimated: Viewpoint | None, twice: bool, around: bool
    ) -> DescribedCloud:
        """Read or compute the description; OutputError if a new one cannot be written."""
        path = self._path(descriptor, estimated, twice, around)
        if (kept := _read(path)) is not None:
            return kept.on(self.device)
        described = super()._describe(descriptor, estimated, twice, around)
        on_host = described.on("cpu")
        with replacing(path) as temporary:
            np.savez(temporary, **{name: getattr(on_host, name) for name in STORED})
        return described

    def _path(self, descriptor: Descriptor, estimated: Viewpoint | None, twice: bool, around: bool) -> Path:
        """Path named by a checksum of the file's name and state, of all settings, and of the code."""
        file = self.file
        option = file.viewpoint if isinstance(file.viewpoint, str) else np.asarray(file.viewpoint).tolist()
        depends = [
            *(os.path.abspath(file.path), file.state, file.units, file.columns),
            *(option, estimated and (*estimated.position.tolist(), estimated.known)),
            *(descriptor.fingerprint, descriptor.device, descriptor.voxel, twice, around),
            code_fingerprint(*REGISTERING),
        ]
        digest = hashlib.sha256(repr(depends).encode("utf-8", "surrogateescape")).hexdigest()
        return self.folder / descriptor.name / f"{digest[:24]}.npz"


def _read(path: Path) -> DescribedCloud | None:
    """Read the description in a file; None if there is none, or it is damaged."""
    try:
        with np.load(path) as arrays:
            kept = DescribedCloud(**{name: arrays[name] for name in STORED})
            return replace(kept, viewpoint_known=bool(kept.viewpoint_known))
    except FileNotFoundError:
        return None
    except DAMAGED_NPZ as error:
        log.warning("%s: is damaged and computed again (%s)", path, error)
        return None
