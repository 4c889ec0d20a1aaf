#!/usr/bin/env bash
# Runs fuzz targets that are built: inputs are made up until the time is over or one ends the program.
#
#   scripts/build.sh fuzz                           builds them
#   scripts/fuzz.sh [TARGET ...]                    default: all, one after the other; see tests/fuzz
#   build/fuzz/bin/fuzz_TARGET FILE                 runs one input again
#
# TOPOCCL_FUZZ_SECONDS is the time for each target (default: 60). An input that ends a target is kept in
# build/fuzz/artifacts/TARGET, those that led further in build/fuzz/corpus/TARGET, where the next run begins.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

answerHelp "$@"
targets=("$@")
if ((${#targets[@]} == 0)); then
  for corpus in tests/fuzz/corpus/*/; do targets+=("$(basename "$corpus")"); done
fi
for target in "${targets[@]}"; do
  if [[ ! -f tests/fuzz/$target.cc ]]; then refuse "no option or target '$target'"; fi
done

failed=()
for target in "${targets[@]}"; do
  program=build/fuzz/bin/fuzz_$target artifacts=build/fuzz/artifacts/$target corpus=build/fuzz/corpus/$target
  if [[ ! -x $program ]]; then fail "no $program: run scripts/build.sh fuzz"; fi
  mkdir -p "$artifacts" "$corpus"
  say "fuzz $target for ${TOPOCCL_FUZZ_SECONDS:-60} s"
  # Each input is given 10 s and all of them a gibibyte.
  "$program" -max_total_time="${TOPOCCL_FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$artifacts/" "$corpus" "tests/fuzz/corpus/$target" || failed+=("$target")
done
if ((${#failed[@]} == 0)); then exit 0; fi
for target in "${failed[@]}"; do
  for artifact in "build/fuzz/artifacts/$target"/*; do
    say "$target fails: build/fuzz/bin/fuzz_$target $artifact"
  done
done
exit 1
