#!/usr/bin/env bash
# Our collectives beside Open MPI's, MPICH's and Gloo's, and all-reduce beside two floors: --help, and docs/bench.md.
set -euo pipefail
# Debian's python3-torch and python3-matplotlib are for Debian's Python.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
exec "$python" -B "$(dirname "$0")/compare/main.py" "$@"
