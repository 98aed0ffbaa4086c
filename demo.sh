#!/bin/sh
# Replays the bundled workload under several policies and compares them. Usage: demo.sh BIN FOLDER
set -eu
bin=$1
runs=$2
mkdir -p "$runs"

echo "The bundled workload:"
"$bin/bridge" workload info bundled-128
echo
folders=
for policy in fcfs:none fcfs:easy fcfs:conservative sjf:easy wfp3:easy f1:easy; do
    order=${policy%:*}
    backfill=${policy#*:}
    folder="$runs/$order-$backfill"
    echo "bridge replay bundled-128 --order $order --backfill $backfill --out $folder"
    "$bin/bridge" replay bundled-128 --order "$order" --backfill "$backfill" --out "$folder" --force --json >/dev/null
    folders="$folders $folder"
done
"$bin/bridge" replay bundled-128 --out "$runs/fcfs-easy" --force --plot --json >/dev/null
echo
# shellcheck disable=SC2086  (a list of folders)
"$bin/bridge" compare $folders --plot "$runs/distributions.png"
"$bin/bridge" check "$runs/fcfs-easy"
echo
if "$bin/bridge" simgrid --simgrid-version >/dev/null 2>&1; then
    rm -rf "$runs/validate-delay" "$runs/validate-io"
    echo "The same policy deciding for a simulated platform, over ZeroMQ. With delay profiles both worlds must agree:"
    "$bin/bridge" validate fcfs+easy --workload bundled-128 --first 500 --platform sp2-128 --out "$runs/validate-delay" |
        tail -n 1
    echo "With jobs that read and write a shared file system they cannot:"
    "$bin/bridge" validate fcfs+easy sjf+easy --workload bundled-128 --first 500 --platform sp2-128 --profile io \
        --out "$runs/validate-io"
else
    echo "Not validated on a simulated platform, because SimGrid is not here. On Debian and Ubuntu:"
    echo "  sudo apt install python3-simgrid python3-zmq"
fi
echo
echo "Pictures: $runs/fcfs-easy/bundled-128-timeline.png (nodes over time), $runs/distributions.png (waits)"
