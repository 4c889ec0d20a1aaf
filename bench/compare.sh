#!/usr/bin/env bash
# Our collectives against Open MPI's, in interleaved rounds; medians and ratios.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: bench/compare.sh [options]
Runs our bench of a collective and Open MPI's collective in turn and prints the median time of each size and the ratio
Open MPI / ours (above 1: ours is faster), with each side bound to cores and not.
  --collective C   all_reduce, reduce, broadcast, all_gather, reduce_scatter, gather, scatter, alltoall
                   or sendrecv [all_reduce]
  --bin DIR        where the benches, core_ping and ompi_collective are [build/release/bin]
  --ranks N        processes [2]
  --rounds N       runs of every configuration [5]
  -b, -e BYTES     first and last size, plain numbers [8, 67108864]
  -f N             factor between sizes [8]
  -n N             iterations per size [50]
  --json FILE      results and all samples as JSON
Every run is bracketed by core_ping; the table says which round trips were seen, because a host may move its
virtual cores between near and far places. Progress goes to stderr.
TEXT
}

collective=all_reduce bin=build/release/bin ranks=2 rounds=5 min=8 max=67108864 factor=8 iterations=50 json=
while [ $# -gt 0 ]; do
  case $1 in
    --collective) collective=$2 ;;
    --bin) bin=$2 ;;
    --ranks) ranks=$2 ;;
    --rounds) rounds=$2 ;;
    -b) min=$2 ;;
    -e) max=$2 ;;
    -f) factor=$2 ;;
    -n) iterations=$2 ;;
    --json) json=$2 ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  [ $# -ge 2 ] || { usage >&2 && exit 2; }
  shift 2
done

for program in "${collective}_perf" ompi_collective; do
  if [ ! -x "$bin/$program" ]; then
    echo "compare.sh: $bin/$program is missing; build it (ompi_collective needs Open MPI's mpicc)" >&2
    exit 1
  fi
done

samples=$(mktemp)
trap 'rm -f "$samples"' EXIT

mpi() {
  local options=()
  [ "$(id -u)" -ne 0 ] || options+=(--allow-run-as-root)
  [ "$ranks" -le "$(nproc)" ] || options+=(--oversubscribe)
  mpirun "${options[@]}" -np "$ranks" "$@" "$bin/ompi_collective" "$collective" "$min" "$max" "$factor" "$iterations"
}

ours() {
  "$bin/${collective}_perf" --ranks "$ranks" -b "$min" -e "$max" -f "$factor" -n "$iterations" -c 0 "$@" |
    awk '$1 ~ /^[0-9]+$/ { print $1, $6 }'
}

# More ranks than cores can't be bound to one each.
bindings=none
[ "$ranks" -gt "$(nproc)" ] || bindings="core none"

# "SERIES BINDING PING_BEFORE PING_AFTER BYTES MICROSECONDS", a line per size.
record() {
  local series=$1 binding=$2 before after times
  before=$("$bin/core_ping" 2>/dev/null || echo 0)
  times=$("${@:3}")
  after=$("$bin/core_ping" 2>/dev/null || echo 0)
  while read -r line; do echo "$series $binding $before $after $line"; done <<<"$times" >>"$samples"
}

for ((round = 1; round <= rounds; round++)); do
  for binding in $bindings; do
    echo "round $round of $rounds, bound to: $binding" >&2
    record ompi "$binding" mpi --bind-to "$binding"
    record ours "$binding" ours --bind "$binding"
  done
done

python3 "$(dirname "$0")/compare_table.py" "$samples" "$collective" "$ranks" ${json:+"$json"}
