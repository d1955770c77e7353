#!/bin/sh
# Make the environment: make_env.sh PYTHON VENV wheels|system LOCK SOURCES
# SOURCES is the folder of the three packages.
# wheels: everything from the lock. system: ROS, numpy and pytest come from the sourced ROS 2.
set -eu
python=$1 venv=$2 ros=$3 lock=$4 sources=$5
package=$sources/gp_active_sensing

fail() {
    printf 'make: %s\n' "$@" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 ||
    fail "needs Python 3.10 to 3.13; '$python' is not on the PATH." \
        "Install it (Debian, Ubuntu: apt install python3 python3-venv) or name one: make PYTHON=/path/to/python3"

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') ||
    fail "'$python' does not run. Name another one: make PYTHON=/path/to/python3"
case $version in
    3.10 | 3.11 | 3.12 | 3.13) ;;
    *) fail "needs Python 3.10 to 3.13; '$python' is Python $version." \
        "Name another one, for example: make PYTHON=python3.12" ;;
esac

"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
    fail "'$python' has no venv module, which makes $venv." \
        "Install it (Debian, Ubuntu: apt install python3-venv or python$version-venv)."

if [ "$ros" = system ]; then
    case ${ROS_DISTRO:-} in
        foxy | galactic | humble | iron)
            fail "ROS 2 $ROS_DISTRO is sourced, which is too old; Jazzy or newer is needed." \
                "Start a shell that does not source it: the ROS wheels are used then." ;;
    esac
    system_packages=true
else
    system_packages=false
fi

# An environment of another Python, or for another source of ROS, is of no use.
if [ -e "$venv" ]; then
    found=$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || found=none
    grep -qs "^include-system-site-packages = $system_packages" "$venv/pyvenv.cfg" || found=none
    [ "$found" = "$version" ] || rm -rf "$venv"
fi
if [ ! -e "$venv" ]; then
    echo "Making $venv with Python $version"
    if [ "$ros" = system ]; then
        "$python" -m venv --system-site-packages "$venv"
    else
        "$python" -m venv "$venv"
    fi
fi
# colcon must not take packages inside the environment for ours.
touch "$venv/COLCON_IGNORE"

pip() {
    PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 "$venv/bin/python" -m pip --quiet "$@" ||
        fail "pip could not install the dependencies; its message is above." \
            "Without a network it cannot; after a half-done installation try: make clean"
}

if [ "$ros" = system ]; then
    echo "Installing what the sourced ROS 2 ${ROS_DISTRO:-} does not bring (once)"
    pip install --constraint requirements/system-ros.txt --requirement requirements/dev.in \
        --editable "$package[test,bag,dev]"
else
    echo "Installing the pinned dependencies (once, about 275 MB to download)"
    pip install --requirement "$lock"
    pip install --no-deps --no-build-isolation --editable "$package"
fi
# Without their dependencies: torch is large, and `make heavy` adds it.
pip install --no-deps --no-build-isolation \
    --editable "${package}_learning" --editable "${package}_bench"
