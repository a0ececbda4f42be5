#!/bin/bash
# Time the installation and the first result of pcreg, and of kiss-matcher with small_gicp, each in a fresh
# environment without a cache:
#     benchmarks/install.sh dist/pcreg-0.1.0-py3-none-any.whl
# Seconds are of the clock and, in brackets, of the CPU. A result is the registration of the demo's scans from .npy
# files, the start of Python included. Off: mean distance of the moved source from its true place.
set -euo pipefail
wheel=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

seconds() { # of a command
    { TIMEFORMAT='%R %U %S'; time "$@" >out 2>&1 || { cat out >&2; exit 1; }; } 2>&1 |
        awk '{ printf "%.1f (%.1f)", $1, $2 + $3 }'
}

row() { # name, script, packages
    local name=$1 script=$2 before installed first
    shift 2
    "${PYTHON:-python3}" -m venv --clear env
    before=$(du -sm env | cut -f1)
    installed=$(seconds env/bin/python -m pip install --no-cache-dir "$@")
    [ -f truth.npy ] || env/bin/python -c "$PREPARE"
    first=$(seconds env/bin/python -c "$LOAD; $script")
    echo "| $name | $installed | $(($(du -sm env | cut -f1) - before)) | $first |" \
        "$(seconds env/bin/python -c "$LOAD; $script") | $(env/bin/python -c "$LOAD; $CHECK") |"
}

PREPARE='import numpy as np; from pcreg.cli import demo
file = np.load(demo.SCANS)
for name, depth in zip(("source", "target"), file["depth"]): np.save(name, demo.points(depth, file["focal"]))
np.save("truth", file["T_target_source"])'
LOAD='import numpy as np; source, target, truth = (np.load(f"{name}.npy") for name in ("source", "target", "truth"))'
CHECK='D = np.load("T.npy") - truth
print(f"{100 * np.linalg.norm(source @ D[:3, :3].T + D[:3, 3], axis=1).mean():.1f}")'
PCREG='import pcreg
np.save("T", pcreg.register(source, target).T_target_source)'
KISS='import kiss_matcher, small_gicp
found = kiss_matcher.KISSMatcher(kiss_matcher.KISSMatcherConfig(0.1)).estimate(source, target)
T = np.eye(4); T[:3, :3], T[:3, 3] = found.rotation, np.ravel(found.translation)
settings = {"downsampling_resolution": 0.05, "max_correspondence_distance": 0.1, "num_threads": 2}
np.save("T", small_gicp.align(target, source, T, **settings).T_target_source)'

echo "| | install s | MB | first result s | second s | off cm |"
echo "|---|---|---|---|---|---|"
row pcreg "$PCREG" "$wheel"
row "kiss-matcher, small_gicp" "$KISS" kiss-matcher small_gicp
