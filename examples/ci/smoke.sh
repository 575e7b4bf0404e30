#!/bin/sh
# A smoke test of a multi-node job for continuous integration: two nodes of two workers each, on
# this machine alone. The exit code is the job's own; nothing is left running, whatever happens.
#
#   smoke.sh PROGRAM [ARGS...]        DRUN: the launcher, default "drun"
set -eu
[ $# -gt 0 ] || {
  echo "usage: $0 PROGRAM [ARGS...]" >&2
  exit 2
}
exec "${DRUN:-drun}" --local-nodes 2 --nproc-per-node 2 "$@"
