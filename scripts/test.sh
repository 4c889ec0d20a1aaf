#!/usr/bin/env bash
# Set-up, build and all tests. Ends with a line "N passed, N failed" and exits 1 if anything failed.
#
#   scripts/test.sh            release: everything; asan and tsan: all but tests labelled `long`, with
#                              TOPOCCL_TEST_REDUCED=1, at which tests shrink their ranges of parameters; a minute
#                              of made-up inputs for each fuzz target (TOPOCCL_FUZZ_SECONDS is another time)
#   scripts/test.sh --quick    release only, without tests labelled `long`
#   scripts/test.sh --full     everything under every sanitizer, TOPOCCL_TEST_FULL=1 (longer, larger), ten minutes
#                              for each fuzz target, the second compiler, clang-tidy
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

answerHelp "$@"
mode=${1:-default}
if (($# > 1)); then refuse "one option at most, not $*"; fi
case $mode in
  default | --quick | --full) ;;
  *) refuse "no option '$mode'" ;;
esac

export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=second_deadlock_stack=1:halt_on_error=1
export GTEST_BRIEF=1 CTEST_OUTPUT_ON_FAILURE=1

# Kernels that randomise more than 28 bits of addresses put mappings where the sanitizers' shadow memory has
# to be ("unexpected memory mapping"): there, sanitized programs run without randomisation.
fixedAddresses() {
  local bits
  bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null) || return 0
  if ((bits <= 28)); then return; fi
  if setarch "$(uname -m)" -R true 2>/dev/null; then
    printf 'setarch\n%s\n-R\n' "$(uname -m)"
  else
    say "  vm.mmap_rnd_bits is $bits: if sanitized programs die at start, set it to 28 (sysctl)"
  fi
}

# runTests NAME DIRECTORY CTEST-OPTION...: runs a build's tests; scripts/summary.py judges by the report.
runTests() {
  local name=$1 directory=$2 prefix=()
  shift 2
  case $name in asan | tsan | fuzz) mapfile -t prefix < <(fixedAddresses) ;; esac
  rm -f "build/reports/$name.xml"
  mkdir -p build/reports
  stage "$name-test" "${prefix[@]}" ctest --test-dir "$directory" --output-junit "$PWD/build/reports/$name.xml" \
    --timeout "${TOPOCCL_TEST_TIMEOUT:-900}" --parallel "$((($(nproc) + 1) / 2))" --no-tests=error \
    --test-output-size-passed 4000000 --test-output-size-failed 4000000 "$@" || true
  reports+=("$name=build/reports/$name.xml")
}

# runFuzz SECONDS: for each target, as many at a time as there are cores. docs/fuzz.md.
runFuzz() {
  local artifact
  say "fuzz"
  if ! (pickClang); then
    mkdir -p build/reports
    printf '%s\n' '<testsuite><testcase name="fuzz" status="notrun"><skipped/>' \
      '<system-out>SKIPPED: clang 14 or later is not installed</system-out></testcase></testsuite>' >build/reports/fuzz.xml
    reports+=("fuzz=build/reports/fuzz.xml")
    return
  fi
  scripts/build.sh fuzz
  rm -rf build/fuzz/artifacts
  TOPOCCL_FUZZ_SECONDS=${TOPOCCL_FUZZ_SECONDS:-$1} runTests fuzz build/fuzz --parallel "$(nproc)"
  for artifact in build/fuzz/artifacts/*/*; do
    if [[ -f $artifact ]]; then say "  found $artifact"; fi
  done
}

reports=()
say "set-up"
if [[ $mode == --full ]]; then scripts/setup.sh build test full; else scripts/setup.sh build test; fi

say "release"
scripts/build.sh release
case $mode in
  --quick) runTests release build/release --label-exclude '^(long|tidy)$' ;;
  --full) TOPOCCL_TEST_FULL=1 runTests release build/release ;;
  *) runTests release build/release --label-exclude '^tidy$' ;;
esac

if [[ $mode != --quick ]]; then
  for preset in asan tsan; do
    say "$preset"
    scripts/build.sh "$preset"
    if [[ $mode == --full ]]; then
      TOPOCCL_TEST_FULL=1 runTests "$preset" "build/$preset" --label-exclude '^(repository|tidy)$'
    else
      TOPOCCL_TEST_REDUCED=1 runTests "$preset" "build/$preset" --label-exclude '^(long|repository|tidy)$'
    fi
  done
fi

case $mode in
  --quick) ;;
  --full) runFuzz 600 ;;
  *) runFuzz 60 ;;
esac

if [[ $mode == --full ]] && (pickClang); then
  say "clang"
  (pickClang && scripts/build.sh clang)
  runTests clang build/clang --label-exclude '^(repository|tidy)$'
fi

say "total: $SECONDS s"
exec python3 scripts/summary.py "${reports[@]}"
