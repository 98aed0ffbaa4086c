#!/bin/sh
# Trains a small agent, judges it, validates it in both worlds, and writes a page. Usage: demo.sh BIN FOLDER
set -eu
bin=$1
runs=$2
mkdir -p "$runs"

echo "The bundled workload:"
"$bin/bridge" workload info bundled-128
echo
folders= quiet=
for policy in fcfs+none fcfs+easy sjf+easy f1+easy; do
    folder="$runs/$(echo "$policy" | tr + -)"
    echo "bridge replay bundled-128 --policy $policy --out $folder"
    # shellcheck disable=SC2086  (-q, or nothing)
    "$bin/bridge" $quiet replay bundled-128 --policy "$policy" --out "$folder" --force --json >/dev/null
    folders="$folders $folder"
    quiet=-q # what the first one says of the log is the same for all
done
echo
# shellcheck disable=SC2086  (a list of folders)
"$bin/bridge" compare $folders
"$bin/bridge" check "$runs/fcfs-easy"

agent="$runs/agent"
rm -rf "$agent" "$runs"/validate-*
echo
echo "An agent learns which waiting job to start next (bridge train --fast rlscheduler, about a minute):"
"$bin/bridge" train --fast rlscheduler --epochs 20 --out "$agent"
echo
echo "What it is worth on sequences that it has never seen, beside rules that do not learn:"
# Sequences of 64 jobs, not 256: of the 1,200 jobs held out these make nine independent blocks, which an interval needs.
"$bin/bridge" -q evaluate "$agent" --length 64 --policy sjf+easy --policy saf+easy --policy f1+easy --json \
    >"$runs/evaluation.json"
"$bin/bridge" explain "$agent" >/dev/null
echo
pages="$runs/fcfs-easy $runs/sjf-easy $agent $runs/evaluation.json"
if "$bin/bridge" simgrid --simgrid-version >/dev/null 2>&1; then
    echo "The same agent deciding for a simulated platform, over ZeroMQ. With delay profiles both worlds must agree (half a minute):"
    "$bin/bridge" -q validate "$agent" --workload bundled-128 --first 500 --platform sp2-128 --out "$runs/validate-delay" \
        >"$runs/validate-delay.txt"
    tail -n 1 "$runs/validate-delay.txt"
    echo "With jobs that read and write a shared file system they cannot:"
    "$bin/bridge" -q validate fcfs+easy "$agent" --workload bundled-128 --first 500 --platform sp2-128 --profile io \
        --out "$runs/validate-io" >"$runs/validate-io.txt"
    tail -n 8 "$runs/validate-io.txt"
    pages="$pages $runs/validate-delay $runs/validate-io"
else
    echo "Not validated on a simulated platform, because SimGrid is not here. On Debian and Ubuntu:"
    echo "  sudo apt install python3-simgrid"
fi
echo
echo "A site of three partitions, whose jobs ask for nodes, cores and GPUs (--cluster):"
"$bin/bridge" workload generate site --cluster teaching-site --jobs 300 --out "$runs/site.csv" --force
echo "bridge replay $runs/site.csv --cluster teaching-site --policy fcfs+easy --by partition --plot --out $runs/site"
"$bin/bridge" replay "$runs/site.csv" --cluster teaching-site --policy fcfs+easy --by partition --plot --out "$runs/site" --force \
    >"$runs/site.txt"
tail -n 13 "$runs/site.txt"
pages="$pages $runs/site/site-gantt.png"
echo
echo "How much is left to win on the bundled workload, and for which unknown (bridge bound):"
"$bin/bridge" -q bound bundled-128 --from 0.6 --sequences 200 --length 64 --json >"$runs/bound.json"
echo "When will the jobs start that wait at a given moment (bridge forecast)?"
echo "bridge forecast $runs/fcfs-easy --at 272136 --plot $runs/forecast.svg"
"$bin/bridge" forecast "$runs/fcfs-easy" --at 272136 --plot "$runs/forecast.svg" --force >"$runs/forecast.txt"
head -n 12 "$runs/forecast.txt"
pages="$pages $runs/bound.json $runs/forecast.svg"
# shellcheck disable=SC2086  (a list of folders)
"$bin/bridge" report $pages --html "$runs/report.html" --title "bridge: the demo"
echo
echo "Look at $runs/report.html"
