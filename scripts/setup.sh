#!/usr/bin/env bash
# Installs the packages of scripts/packages.txt that this machine lacks.
#
#   scripts/setup.sh [GROUP ...]     default: build; scripts/packages.txt has the others
#
# Does nothing, quickly, where all are there. Needs root or sudo only where something is missing.
# TOPOCCL_SKIP_SETUP=1 turns it off, for machines whose packages come from elsewhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

listed() { awk -v group="$1" '$1 == group {print $2}' scripts/packages.txt; }

# Those of the arguments that are not installed, one a line; a trailing ? stays.
missing() {
  local package
  declare -A installed=()
  while read -r package; do installed[${package%%:*}]=1; done < <(
    dpkg-query --show --showformat='${db:Status-Status} ${binary:Package}\n' "${@%\?}" 2>/dev/null |
      awk '$1 == "installed" {print $2}'
  )
  for package in "$@"; do
    [[ -n ${installed[${package%\?}]:-} ]] || printf '%s\n' "$package"
  done
}

# The arguments without those that end in ? and that the distribution does not have.
obtainable() {
  local package
  for package in "$@"; do
    if [[ $package != *\? ]] || apt-cache show "${package%\?}" >/dev/null 2>&1; then
      printf '%s\n' "${package%\?}"
    else
      say "this distribution has no ${package%\?}: going on without"
    fi
  done
}

aptGet() {
  local command=(env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300 "$@")
  if (($(id -u) != 0)); then command=(sudo -n "${command[@]}"); fi
  "${command[@]}"
}

install() {
  local packages=("$@")
  # Where only such packages are missing as were not to be had the last time either, leave apt alone.
  if [[ ! " $* " =~ [^?]" " ]] && [[ -z $(obtainable "$@") ]]; then return; fi
  say "missing packages: ${packages[*]%\?}"
  if (($(id -u) != 0)); then
    command -v sudo >/dev/null || fail "run as root: apt-get install ${packages[*]%\?}"
    if [[ -t 0 ]]; then sudo true; fi
  fi
  stage apt-update aptGet update || say "the package lists could not be renewed: trying with those at hand"
  mapfile -t packages < <(obtainable "${packages[@]}")
  if ((${#packages[@]} == 0)); then return; fi
  stage apt-install aptGet --no-install-recommends install "${packages[@]}" ||
    fail "could not install ${packages[*]}: do it by hand, or set TOPOCCL_SKIP_SETUP=1 if they are there"
}

setUp() {
  local packages=() group found
  for group in "$@"; do
    mapfile -t found < <(listed "$group")
    packages+=("${found[@]}")
  done
  mapfile -t packages < <(missing "${packages[@]}")
  if ((${#packages[@]} > 0)); then install "${packages[@]}"; fi
}

answerHelp "$@"
for group in "$@"; do
  if [[ -z $(listed "$group") ]]; then refuse "no group '$group' in scripts/packages.txt"; fi
done
if [[ ${TOPOCCL_SKIP_SETUP:-0} == 1 ]]; then exit 0; fi
for tool in apt-get dpkg-query; do
  command -v "$tool" >/dev/null ||
    fail "no $tool here: install the equivalents of scripts/packages.txt, then set TOPOCCL_SKIP_SETUP=1"
done
if (($# == 0)); then set -- build; fi
setUp "$@"
pickCompilers || setUp compiler
