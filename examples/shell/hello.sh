#!/bin/sh
# Any program can be a worker: what it needs to know is in its environment.
#
#   drun --nproc-per-node 4 ./hello.sh
echo "hello from rank $RANK of $WORLD_SIZE (local rank $LOCAL_RANK on node $GROUP_RANK)"
