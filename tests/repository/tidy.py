#!/usr/bin/env python3
"""clang-tidy has nothing to say about src, bench and tools, by the build tree's compile commands."""

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import check as c

VERSION = "14"


def find_clang_tidy():
    for name in (f"clang-tidy-{VERSION}", "clang-tidy"):
        if shutil.which(name):
            return name
    raise c.Skip("clang-tidy is not installed")


def sources(context):
    commands = json.loads((context.build / "compile_commands.json").read_text(encoding="utf-8"))
    files = {os.path.relpath(os.path.join(row["directory"], row["file"]), context.root) for row in commands}
    return sorted(file for file in files if file.split(os.sep)[0] in ("src", "bench", "tools"))


def check(context):
    program = find_clang_tidy()

    def run(source):
        command = [program, "--quiet", "--extra-arg=-Wno-unknown-warning-option", "-p", str(context.build), source]
        result = subprocess.run(command, cwd=context.root, capture_output=True, text=True, check=False)
        return re.findall(r"^(.+:\d+:\d+: (?:warning|error): .*)$", result.stdout, re.MULTILINE)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = {line for lines in pool.map(run, sources(context)) for line in lines}
    return sorted(line.removeprefix(f"{context.root}{os.sep}") for line in findings)


if __name__ == "__main__":
    c.main(check)
