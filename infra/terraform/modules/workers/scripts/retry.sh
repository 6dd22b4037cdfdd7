# retry COMMAND...: repeats the command until it succeeds, RETRY_TIMES times at most (10), with pauses of 1, 2, 4, ...
# up to 30 seconds.
retry() {
  local attempt pause=1
  for ((attempt = 1; attempt < ${RETRY_TIMES:-10}; attempt++)); do
    "$@" && return 0
    echo "zerofleet: $1 failed, attempt $attempt; the next one in $pause s" >&2
    sleep "$pause"
    pause=$((pause * 2 > 30 ? 30 : pause * 2))
  done
  "$@"
}
