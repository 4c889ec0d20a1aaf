#!/usr/bin/env python3
"""Each of scripts/*.sh answers --help before it does anything, and refuses options that it does not have."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import check as c

PASS_ON = {"run.sh"}  # hand what they do not know on to a program


def run(copy, script, argument):
    return subprocess.run(["bash", str(copy / "scripts" / script), argument], capture_output=True, text=True, check=False,
                          cwd=copy, env={**os.environ, "TOPOCCL_SKIP_SETUP": "1"})


def check_script(context, path, copy):
    cases = [("--help", 0, "stdout"), ("-h", 0, "stdout")]
    if path.name not in PASS_ON:
        cases.append(("--no-such-option", 2, "stderr"))
    before = set(copy.rglob("*"))
    for argument, code, stream in cases:
        result = run(copy, path.name, argument)
        if result.returncode != code:
            yield f"{path} {argument}: ends with {result.returncode}, not {code}"
        if f"scripts/{path.name}" not in getattr(result, stream):
            yield f"{path} {argument}: does not show the usage on {stream}"
        for made in sorted(set(copy.rglob("*")) - before):
            yield f"{path} {argument}: makes {made.relative_to(copy)}"


def check(context):
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "a copy"
        shutil.copytree(context.root / "scripts", copy / "scripts")
        for path in context.files("scripts", suffixes={".sh"}):
            if "# shellcheck shell=" not in context.read(path):  # that is sourced, not run
                findings += check_script(context, path, copy)
    return findings


if __name__ == "__main__":
    c.main(check)
