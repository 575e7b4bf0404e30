#!/bin/bash
# A worker of the chaos test: says who it is in a file named after its process, and from then on every 50 ms in another
# that it is alive, by its own clock and without any process of its own.
LC_ALL=C
began=$EPOCHREALTIME
printf '%s %s %s %s %s %s %s\n' "$CHAOS_AGENT" "$DRUN_ROUND" "$RANK" "$WORLD_SIZE" "$GROUP_RANK" \
  "$TORCHELASTIC_RESTART_COUNT" "$MASTER_ADDR:$MASTER_PORT" >"$CHAOS_DIR/.$$" && mv "$CHAOS_DIR/.$$" "$CHAOS_DIR/$$"
exec 3<>"$CHAOS_DIR/never" 4>>"$CHAOS_DIR/alive.$CHAOS_AGENT.$DRUN_ROUND.$RANK"
printf '%s\n' "$began" >&4
while :; do
  printf '%s\n' "$EPOCHREALTIME" >&4
  read -r -t 0.05 -u 3
done
