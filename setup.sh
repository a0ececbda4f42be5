#!/bin/sh
# Make .venv and install the `core` into it or, by default, everything, at the versions of constraints.txt.
set -eu
what=${1:-complete}
PYTHON=${PYTHON:-python3}

stop() {
    echo "error: $1" >&2
    exit 1
}

# Install a missing system package if we are root, else print the command that does.
need() { # test, Debian package
    if ! eval "$1" >/dev/null 2>&1; then
        command -v apt-get >/dev/null || stop "$2 is missing; install it with your system's package manager"
        [ "$(id -u)" = 0 ] || stop "$2 is missing; type: sudo apt-get install -y $2"
        echo "installing the system package $2"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$2" >/dev/null
        eval "$1" >/dev/null 2>&1 || stop "$2 is installed and still cannot be used"
    fi
}

command -v "$PYTHON" >/dev/null || stop "no $PYTHON; install Python 3.10 to 3.13, or name one: make PYTHON=/path/to/python3"
"$PYTHON" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' ||
    stop "$("$PYTHON" --version) is not supported; name a Python from 3.10 to 3.13: make PYTHON=/path/to/python3"
version=$("$PYTHON" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
need '"$PYTHON" -c "import ensurepip"' "$version-venv"
if [ $what = complete ] && [ "$(uname -s)" = Linux ]; then # libraries that Open3D loads and its wheel lacks
    for pair in libusb-1.0.so.0:libusb-1.0-0 libEGL.so.1:libegl1 libGL.so.1:libgl1 libX11.so.6:libx11-6 \
        libudev.so.1:libudev1 libidn2.so.0:libidn2-0; do
        need "\"$PYTHON\" -c \"import ctypes; ctypes.CDLL('${pair%%:*}')\"" "${pair#*:}"
    done
fi

.venv/bin/python -m pip --version >/dev/null 2>&1 || "$PYTHON" -m venv --clear .venv
[ $what = core ] && package=. || package='.[dev]'
.venv/bin/python -m pip install --disable-pip-version-check --editable "$package" --constraint constraints.txt
touch .venv/core ".venv/$what"
