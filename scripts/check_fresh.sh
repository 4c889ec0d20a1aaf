#!/usr/bin/env bash
# Proves that scripts/packages.txt is complete: makes a minimal installation of this machine's distribution
# in a new folder, clones the last commit into it and runs a command there.
#
#   scripts/check_fresh.sh [COMMAND ...]     default: scripts/test.sh; runs in the clone's root
#
# Needs root, debootstrap and git. Uses the package sources of this machine. The folder is below
# TOPOCCL_FRESH (default: build/fresh), takes some GiB, and is removed unless TOPOCCL_KEEP=1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh

answerHelp "${1:-}"
if [[ ${1:-} == -* ]]; then refuse "no option '$1'"; fi
if (($# == 0)); then set -- scripts/test.sh; fi
if (($(id -u) != 0)); then fail "needs root"; fi
for tool in debootstrap git; do
  command -v "$tool" >/dev/null || fail "$tool is not installed"
done

codename=$(source /etc/os-release && printf '%s' "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
  awk -v codename="$codename" '$1 == codename && $2 == "main" {print $3; exit}')
if [[ -z $mirror ]]; then fail "apt has no lists of $codename here: run apt-get update"; fi

mkdir -p "${TOPOCCL_FRESH:-build/fresh}"
system=$(mktemp -d -p "$(realpath "${TOPOCCL_FRESH:-build/fresh}")")
# A space in the path, on purpose.
clone="/opt/a clone"

cleanUp() {
  if [[ ${TOPOCCL_KEEP:-0} == 1 ]]; then say "kept $system"; else rm -rf --one-file-system "$system"; fi
}
trap cleanUp EXIT

say "a fresh $codename"
stage fresh-system debootstrap --variant=minbase "$codename" "$system" "$mirror" || fail "debootstrap failed"
# The same sources, keys and proxies as here, and no package lists yet: as on a machine just installed.
for kind in etc/apt/sources.list etc/apt/sources.list.d etc/apt/apt.conf etc/apt/apt.conf.d etc/apt/trusted.gpg.d \
  etc/apt/keyrings usr/share/keyrings etc/ssl/certs etc/resolv.conf etc/hosts; do
  if [[ -e /$kind ]]; then
    rm -rf "${system:?}/$kind"
    mkdir -p "$system/${kind%/*}"
    cp -rL "/$kind" "$system/$kind"
  fi
done
rm -rf "$system"/var/lib/apt/lists/*
git clone --quiet . "$system$clone"

say "$* in it"
status=0
# In a mount namespace of its own, so that nothing stays mounted and nothing here changes.
unshare --mount bash -euo pipefail -c '
  system=$1 clone=$2
  shift 2
  mount -t proc proc "$system/proc"
  mount --rbind /dev "$system/dev"
  chroot "$system" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
    bash -c "cd \"\$1\" && shift && \"\$@\"" fresh "$clone" "$@"
' unshare "$system" "$clone" "$@" || status=$?
rm -rf build/fresh-logs
if [[ -d $system$clone/build/logs ]]; then cp -r "$system$clone/build/logs" build/fresh-logs; fi
exit "$status"
