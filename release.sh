#!/bin/sh
# Builds the wheel and the source archive from the last commit, and tries both in environments that hold nothing else.
# Usage: release.sh PYTHON FOLDER
set -eu
python=$1
folder=$2
#: A base installation may take so many MB on the disk.
most=600
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/source"
git archive HEAD | tar --extract --directory="$place/source"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
rm -f "$folder"/hpc_bridge-*

echo "release: building $version"
"$python" -m venv "$place/tools"
"$place/tools/bin/python" -m pip install -qq --disable-pip-version-check build twine
"$place/tools/bin/python" -m build --outdir "$folder" "$place/source" >"$place/build.txt" 2>&1 ||
    { tail -n 20 "$place/build.txt" >&2; exit 1; }
"$place/tools/bin/twine" check --strict "$folder"/hpc_bridge-"$version"*

for file in "$folder"/hpc_bridge-"$version"*.whl "$folder"/hpc_bridge-"$version".tar.gz; do
    echo "release: trying $(basename "$file") in an empty environment"
    rm -rf "$place/env"
    "$python" -m venv "$place/env"
    "$place/env/bin/python" -m pip install -qq --disable-pip-version-check "$file"
    (
        cd "$place"
        bridge="$place/env/bin/bridge"
        [ "$("$bridge" --version)" = "bridge, version $version" ]
        "$bridge" replay bundled-128 --policy sjf+easy --first 100 --json >/dev/null
        "$bridge" evaluate bundled-128 --policy fcfs+easy --policy sjf+easy --length 64 --sequences 100 --json >/dev/null
        "$bridge" platform check sp2-128 >/dev/null
        "$bridge" workload generate site --cluster teaching-site --jobs 100 --out site.csv --force >/dev/null
        "$bridge" replay site.csv --cluster teaching-site --by partition --json >/dev/null
        ! "$bridge" replay bundled-128 --first 100 --plot --out plotted --force >plot.txt 2>&1
        grep -q "pip install 'hpc-bridge\[report\]'" plot.txt
    ) || { echo "release: $(basename "$file") does not work as it has to" >&2; exit 1; }
    site=$("$place/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    size=$(du -sm --exclude=pip --exclude='pip-*' --exclude=setuptools --exclude='setuptools-*' "$site" | cut -f 1)
    echo "release: it takes $size MB"
    [ "$size" -le "$most" ] || { echo "release: more than $most MB" >&2; exit 1; }
done
echo "Upload with: twine upload $folder/hpc_bridge-$version*"
