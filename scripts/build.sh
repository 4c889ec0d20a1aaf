#!/usr/bin/env bash
# Configures and builds; leaves programs in build/PRESET/bin and libraries in build/PRESET/lib.
#
#   scripts/build.sh [--programs] [PRESET ...]     default: release; others: dev asan tsan clang fuzz
#
#   --programs   leave out the tests
#
# The preset fuzz builds the fuzz targets only, with clang.
# CC and CXX choose the compilers (when a preset is configured first), TOPOCCL_JOBS the parallel jobs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

targets=(all)
estimate="some minutes with tests"
presets=()
for argument in "$@"; do
  case $argument in
    -h | --help) answerHelp "$argument" ;;
    --programs)
      targets=(src/all tools/all bench/all)
      estimate="about 2 minutes"
      ;;
    release | dev | asan | tsan | clang | fuzz) presets+=("$argument") ;;
    *) refuse "no option or preset '$argument'" ;;
  esac
done
if ((${#presets[@]} == 0)); then presets=(release); fi

for tool in cmake ninja; do
  command -v "$tool" >/dev/null || fail "$tool is not installed: run scripts/setup.sh"
done
if [[ " ${presets[*]} " == *" fuzz "* ]]; then
  if ((${#presets[@]} > 1)); then refuse "the preset fuzz needs another compiler: build it by itself"; fi
  targets=(tests/fuzz/all)
  estimate="about a minute"
  pickClang || fail "need clang 14 or later: run scripts/setup.sh test, or set CXX and CC"
fi
pickCompilers || fail "need g++ 12 or later, or clang 14 or later: run scripts/setup.sh, or set CXX and CC"

launcher=
if command -v ccache >/dev/null && [[ -w ${HOME:-/nonexistent} ]]; then launcher=ccache; fi

# A build tree remembers the folder it was made in: one that was moved or copied is configured anew.
forgetOtherFolder() {
  local cache=$1/CMakeCache.txt home
  [[ -f $cache ]] || return 0
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
  if [[ $(realpath -m "$home") == "$(pwd -P)" ]]; then return; fi
  say "  $1 was configured in $home: configuring anew"
  rm -rf "$cache" "$1/CMakeFiles"
}

for preset in "${presets[@]}"; do
  mkdir -p "build/$preset" "$logs" 2>/dev/null && [[ -w build/$preset && -w $logs ]] ||
    fail "cannot write in $PWD/build: build in a copy of the tree that you may write to"
  forgetOtherFolder "build/$preset"
  arguments=("-DCMAKE_C_COMPILER_LAUNCHER=$launcher" "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher")
  stage "$preset-configure" cmake --preset "$preset" "${arguments[@]}" ||
    fail "cannot configure preset $preset"
  say "  building $preset (the first time $estimate on 2 cores; $logs/$preset-build.log shows how far it is)"
  stage "$preset-build" cmake --build "build/$preset" --target "${targets[@]}" --parallel "$(buildJobs)" ||
    fail "cannot build preset $preset"
done
