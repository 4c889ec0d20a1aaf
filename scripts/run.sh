#!/usr/bin/env bash
# From a fresh machine to a checked all-reduce over all of its devices: packages, build, devices, run.
#
#   scripts/run.sh [OPTION ...]     for example: scripts/run.sh --ranks 4 -e 1G
#
# Options are passed on to all_reduce_perf, after -b 8 -e 128M -f 2 --explain; where one is given twice, the
# later counts. build/release/bin/all_reduce_perf --help lists them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

answerHelp "$@"

say "set-up"
scripts/setup.sh build
say "build"
scripts/build.sh --programs release

say "devices"
build/release/bin/topoccl_devices
set -- -b 8 -e 128M -f 2 --explain "$@"
say "all_reduce_perf $*"
exec build/release/bin/all_reduce_perf "$@"
