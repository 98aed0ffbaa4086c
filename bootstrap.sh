#!/bin/sh
# Makes a virtual environment with bridge and its development tools. Usage: bootstrap.sh FOLDER
# Or adds the system packages that only tests and the live world need: bootstrap.sh FOLDER slurm chromium
set -eu
venv=${1:-.venv}
[ $# -eq 0 ] || shift
python=${PYTHON:-python3}
say() { echo "bootstrap: $*"; }

# As root on Debian and Ubuntu, system packages are installed; otherwise their names are told.
apt_install() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "apt-get install $*"
        apt-get update -qq >/dev/null 2>&1 || true
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
    else
        return 1
    fi
}

# The tests of the live world, and its demo, start a Slurm of fake nodes in a folder of their own.
add_slurm() {
    if ! { command -v munged && PATH="$PATH:/usr/sbin:/sbin" command -v slurmctld && PATH="$PATH:/usr/sbin:/sbin" command -v slurmd; } >/dev/null; then
        apt_install --no-install-recommends slurmctld slurmd slurm-client munge ||
            say "Slurm is not here, so its tests are skipped. On Debian and Ubuntu: sudo apt install slurmctld slurmd slurm-client munge"
    fi
}

# The page of `bridge serve` is looked at in a browser, hostile job names and all.
add_chromium() {
    if ! command -v chromium >/dev/null; then
        apt_install --no-install-recommends chromium ||
            say "Chromium is not here, so the page's test in a browser is skipped. On Debian: sudo apt install chromium"
    fi
}

if [ $# -gt 0 ]; then
    for part in "$@"; do
        "add_$part"
    done
    exit 0
fi

command -v "$python" >/dev/null || apt_install python3 || {
    say "no $python on PATH. Install Python 3.11 or later, or run: make PYTHON=/path/to/python3" >&2
    exit 1
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    say "$("$python" --version) is too old, bridge needs Python 3.11 or later: make PYTHON=/path/to/python3.11" >&2
    exit 1
}
"$python" -c 'import venv, ensurepip' 2>/dev/null || apt_install python3-venv || {
    say "$python cannot make virtual environments. On Debian and Ubuntu: sudo apt install python3-venv" >&2
    exit 1
}
say "1 of 4: the virtual environment $venv"
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip() { "$venv/bin/python" -m pip "$@"; }
pip install -qq --disable-pip-version-check --upgrade pip
# One exact PyTorch, so that the same seed gives the same bits. TORCH may hold other words for pip, such as
# TORCH='torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu', a build without CUDA.
case ${TORCH:-} in
    */cpu*) say "2 of 4: PyTorch without CUDA (a minute or two the first time)" ;;
    *) say "2 of 4: PyTorch, with CUDA some gigabytes (minutes the first time; without CUDA: see docs/install.md)" ;;
esac
# shellcheck disable=SC2086
pip install -qq --disable-pip-version-check ${TORCH:-torch==2.13.0}
say "3 of 4: bridge, and the packages of its extras and tests (a minute or two the first time)"
# Whatever else the bounds of pyproject.toml admit is the newest; LOCK=requirements.lock, as in CI, is exactly
# what was tried. The lock has a digest of each file, and all packages but PyTorch and what its CUDA build brings.
if [ -n "${LOCK:-}" ]; then
    pip install -qq --disable-pip-version-check --no-deps --require-hashes --requirement "$LOCK"
    pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
else
    pip install -qq --disable-pip-version-check --editable '.[dev]'
fi

say "4 of 4: SimGrid, for the embedded platform model"
# It runs under the distribution's Python, which alone has SimGrid's bindings.
if ! /usr/bin/python3 -c 'import simgrid' 2>/dev/null; then
    apt_install python3-simgrid ||
        say "SimGrid is not here, so nothing runs on a detailed platform yet. On Debian and Ubuntu: sudo apt install python3-simgrid"
fi
