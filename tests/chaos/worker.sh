#!/bin/sh
# A worker of the chaos test: says who it is in a file named after its process, and waits to be stopped.
printf '%s %s %s %s %s %s %s\n' "$CHAOS_AGENT" "$DRUN_ROUND" "$RANK" "$WORLD_SIZE" "$GROUP_RANK" \
  "$TORCHELASTIC_RESTART_COUNT" "$MASTER_ADDR:$MASTER_PORT" >"$CHAOS_DIR/.$$" && mv "$CHAOS_DIR/.$$" "$CHAOS_DIR/$$"
exec sleep 100000
