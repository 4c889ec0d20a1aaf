#!/usr/bin/env python3
"""Shell scripts parse, are strict and executable, and please shellcheck where it is installed."""

import os
import re
import shutil
import subprocess

import check as c

STRICT = "set -euo pipefail"


def scripts(context):
    """Relative paths of all shell scripts: by suffix or by first line."""
    def is_script(path):
        if path.suffix:
            return path.suffix == ".sh"
        with open(context.root / path, "rb") as file:
            return re.match(rb"#!.*\b(?:ba)?sh\b", file.readline()) is not None
    return [path for path in context.files() if is_script(path)]


def check(context):
    findings = []
    for path in scripts(context):
        text = context.read(path)
        parsed = subprocess.run(["bash", "-n", context.root / path], capture_output=True, text=True, check=False)
        if parsed.returncode:
            findings.append(f"{path}: does not parse: {parsed.stderr.strip()}")
        if "# shellcheck shell=" in text.split("\n\n")[0]:
            continue  # sourced, not run
        if STRICT not in text:
            findings.append(f"{path}: lacks '{STRICT}'")
        if not os.access(context.root / path, os.X_OK):
            findings.append(f"{path}: not executable")
    if not shutil.which("shellcheck"):
        print("shellcheck is not installed: scripts were only parsed")
        return findings
    result = subprocess.run(["shellcheck", "-x", "--severity=warning", "--format=gcc", *map(str, scripts(context))],
                            cwd=context.root, capture_output=True, text=True, check=False)
    return findings + result.stdout.splitlines()


if __name__ == "__main__":
    c.main(check)
