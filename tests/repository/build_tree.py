#!/usr/bin/env python3
"""scripts/build.sh copes with a tree that was moved, and says at once where it can't build."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import check as c

SCRIPT = "scripts/build.sh"


def build(copy):
    """Runs the script with a CMake and a compiler that do nothing."""
    tools = copy / "tools"
    tools.mkdir()
    for name in ("cmake", "ninja", "c++"):
        (tools / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CXX": "c++"}
    return subprocess.run(["bash", str(copy / SCRIPT)], capture_output=True, text=True, check=False, env=environment)


def moved_tree(copy, home):
    """Whether a build tree that was configured in `home` is kept, and what was said."""
    cache = copy / "build" / "release" / "CMakeCache.txt"
    cache.parent.mkdir(parents=True)
    cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n", encoding="utf-8")
    result = build(copy)
    return result.returncode == 0 and cache.exists(), result.stderr


def blocked_tree(copy):
    (copy / "build").write_text("no folder\n", encoding="utf-8")
    return build(copy)


def findings_of(copies):
    kept, said = moved_tree(copies[0], "/usr/elsewhere")
    if kept or "was configured in /usr/elsewhere: configuring anew" not in said:
        yield f"{SCRIPT}: keeps a build tree of another folder: {said}"
    kept, said = moved_tree(copies[1], copies[1])
    if not kept:
        yield f"{SCRIPT}: forgets its own build tree: {said}"
    blocked = blocked_tree(copies[2])
    if blocked.returncode != 1 or not blocked.stderr.startswith("error: cannot write in"):
        yield f"{SCRIPT}: says nothing clear where it can't write: {blocked.stderr}"


def check(context):
    with tempfile.TemporaryDirectory() as folder:
        copies = [pathlib.Path(folder).resolve() / name for name in ("a moved tree", "an old tree", "a blocked tree")]
        for copy in copies:
            shutil.copytree(context.root / "scripts", copy / "scripts")
        return list(findings_of(copies))


if __name__ == "__main__":
    c.main(check)
