#!/bin/sh
# Runs bridge. As root (docker-compose.yml) it first becomes the owner of the mounted checkout, so that results
# belong to the user; no bridge runs as root.
set -e
run='export HOME=/tmp BRIDGE_CACHE="$(mktemp -d)"; cp -r /opt/bridge/cache/. "$BRIDGE_CACHE"; exec bridge "$@"'
if [ "$(id -u)" = 0 ]; then
  if [ -d /exchange ]; then
    rm -rf /exchange/*
    chown --reference=. /exchange
  fi
  exec setpriv --reuid="$(stat -c %u .)" --regid="$(stat -c %g .)" --clear-groups sh -c "$run" bridge "$@"
fi
exec sh -c "$run" bridge "$@"
