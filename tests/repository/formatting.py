#!/usr/bin/env python3
"""C and C++ files are as clang-format 14 writes them. Other versions format differently: skipped there."""

import collections
import re
import shutil
import subprocess

import check as c

VERSION = "14"


def find_clang_format():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if shutil.which(name):
            text = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
            if re.search(rf"version {VERSION}\.", text):
                return name
    raise c.Skip(f"clang-format {VERSION} is not installed")


def check(context):
    program = find_clang_format()
    files = [str(path) for path in context.files(suffixes=c.C_AND_CPP_SUFFIXES)]
    if not files:
        return []
    result = subprocess.run([program, "--dry-run", *files], cwd=context.root, capture_output=True, text=True,
                            check=False)
    lines = collections.defaultdict(list)
    for file, line in re.findall(r"^([^:\n]+):(\d+):\d+: warning: code should be clang-formatted", result.stderr,
                                 re.MULTILINE):
        lines[file].append(line)
    if result.returncode and not lines:
        return [f"{program}: {result.stderr.strip()}"]
    return [f"{file}:{places[0]}: not as clang-format writes it, here and in {len(places) - 1} more places"
            for file, places in lines.items()]


if __name__ == "__main__":
    c.main(check)
