#!/usr/bin/env bash
# From a fresh machine to a checked all-reduce over all of its devices: packages, build, devices, run.
#
#   scripts/run.sh [all_reduce_perf's options]     for example: scripts/run.sh --ranks 4 -e 1G
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

# given SHORT LONG ARGUMENT...: whether one of the arguments is that option.
given() {
  local short=$1 long=$2 argument
  shift 2
  for argument in "$@"; do
    if [[ $argument == "$short"* || $argument == "$long" || $argument == "$long="* ]]; then return 0; fi
  done
  return 1
}

say "set-up"
scripts/setup.sh build
say "build"
scripts/build.sh --programs release

options=()
given -b --minbytes "$@" || options+=(-b 8)
given -e --maxbytes "$@" || options+=(-e 128M)
given -f --stepfactor "$@" || given -i --stepbytes "$@" || options+=(-f 2)
given --explain --explain "$@" || options+=(--explain)

say "devices"
build/release/bin/topoccl-devices
say "all_reduce_perf ${options[*]} $*"
exec build/release/bin/all_reduce_perf "${options[@]}" "$@"
