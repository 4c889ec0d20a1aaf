# Sourced by the other scripts after they have entered the repository's root. Defines functions only.
# shellcheck shell=bash

logs=build/logs

# Progress goes to stderr, so that stdout carries results only.
say() { printf '%s\n' "$*" >&2; }

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# The comment at the top of the script that runs.
showUsage() { awk 'NR > 1 {if (!/^#/) exit; sub(/^# ?/, ""); print}' "scripts/${0##*/}"; }

# answerHelp ARGUMENT...: where one of them asks for help, gives it and ends the script.
answerHelp() {
  local argument
  for argument in "$@"; do
    case $argument in -h | --help) showUsage && exit 0 ;; esac
  done
}

# refuse MESSAGE: for wrong arguments.
refuse() {
  printf 'error: %s\n\n' "$*" >&2
  showUsage >&2
  exit 2
}

# stage NAME COMMAND...: runs the command with its output in build/logs/NAME.log and says how long it took.
# Where it fails, shows the end of that log and returns its status.
stage() {
  local name=$1 begin=$SECONDS status=0
  shift
  mkdir -p "$logs"
  "$@" >"$logs/$name.log" 2>&1 </dev/null || status=$?
  if ((status == 0)); then
    say "  $name: $((SECONDS - begin)) s"
  else
    tail -n 40 "$logs/$name.log" >&2
    say "  $name: failed after $((SECONDS - begin)) s, see $logs/$name.log"
  fi
  return "$status"
}

# majorVersion COMPILER: its first version number, 0 where it is not installed.
majorVersion() {
  local version
  version=$("$1" -dumpversion 2>/dev/null) || version=0
  printf '%s\n' "${version%%.*}"
}

# Sets CC and CXX, which win where the caller has set them, to compilers that know C++20 well enough.
# Returns 1 where there are none.
pickCompilers() {
  if [[ -n ${CXX:-} ]]; then
    export CXX CC=${CC:-cc}
    return
  fi
  local suffix
  for suffix in '' -14 -13 -12; do
    if (($(majorVersion "g++$suffix") >= 12)); then
      export CXX=g++$suffix CC=gcc$suffix
      return
    fi
  done
  for suffix in '' -18 -17 -16 -15 -14; do
    if (($(majorVersion "clang++$suffix") >= 14)); then
      export CXX=clang++$suffix CC=clang$suffix
      return
    fi
  done
  return 1
}

# Sets CC and CXX to clang 14 or later, unless the caller has set them to a clang. Returns 1 where there is none.
pickClang() {
  if [[ ${CXX:-} == *clang* ]]; then return; fi
  local suffix
  for suffix in -14 '' -18 -17 -16 -15; do
    if (($(majorVersion "clang++$suffix") >= 14)); then
      export CXX=clang++$suffix CC=clang$suffix
      return
    fi
  done
  return 1
}

# Jobs for a build: all cores, but no more than one for each GiB of free memory.
buildJobs() {
  local cores gibibytes
  cores=$(nproc)
  gibibytes=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  printf '%s\n' "${TOPOCCL_JOBS:-$((cores < gibibytes || gibibytes == 0 ? cores : gibibytes))}"
}
