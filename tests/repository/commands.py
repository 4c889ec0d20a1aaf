#!/usr/bin/env python3
"""Compile commands that documents show work as they stand, from the root of a clone that is built."""

import pathlib
import re
import subprocess
import tempfile

import check as c

SOURCES = ("README.md", "docs/getting_started.md", "examples/all_reduce.c", "examples/launched.c")
COMMAND = re.compile(r"^[ *]*(cc .*)$", re.MULTILINE)
SHOWN_PROGRAM = "program.c"  # the reader's own


def clone(context, folder):
    """The root of a clone whose build is the tree under test. There is a space in its path."""
    root = pathlib.Path(folder) / "a clone"
    (root / "build").mkdir(parents=True)
    for name in ("include", "examples"):
        (root / name).symlink_to(context.root / name)
    (root / "build" / "release").symlink_to(context.build)
    (root / SHOWN_PROGRAM).symlink_to(context.root / "examples" / "all_reduce.c")
    return root


def check_command(path, command, root):
    built = subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, text=True, check=False)
    if built.returncode:
        return [f"{path}: '{command}' fails: {built.stderr.strip()}"]
    name = re.search(r"-o (\S+)", command)
    program = root / (name.group(1) if name else "a.out")
    needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=False).stdout
    if "libtopoccl" not in needed and "libnccl" not in needed:
        return [f"{path}: '{command}' links no library of ours"]
    return []


def check(context):
    if context.build is None or not (context.build / "lib" / "libnccl.so.2").exists():
        raise c.Skip("the libraries are not built")
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        root = clone(context, folder)
        for path in SOURCES:
            commands = COMMAND.findall(context.read(path))
            if not commands:
                findings.append(f"{path}: shows no compile command")
            for command in commands:
                findings += check_command(path, command, root)
    return findings


if __name__ == "__main__":
    c.main(check)
