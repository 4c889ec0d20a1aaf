"""Installs a build and uses what is there: what the tests of this folder share.

    NAME_test.py --root SOURCES --build TREE --compiler CC
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

CONSUMER = pathlib.Path(__file__).parent / "consumer"
SUM = "sum 11 33"


def run(*command, **environment):
    """A command's output; ends the test where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          stdin=subprocess.DEVNULL, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"exit {done.returncode}: {shlex.join(words)}\n{done.stdout}")
    return done.stdout


def expect(condition, text):
    if not condition:
        sys.exit(text)


def expect_sum(output):
    expect(SUM in output, f"expected '{SUM}' in\n{output}")


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def need(tool):
    if shutil.which(tool) is None:
        skip(f"{tool} is not installed")


def main(test):
    parser = argparse.ArgumentParser()
    for option in ("--root", "--build"):
        parser.add_argument(option, type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True)
    arguments = parser.parse_args()
    arguments.root, arguments.build = arguments.root.resolve(), arguments.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        test(arguments, pathlib.Path(folder))
    print("passed")


def library_dir(prefix):
    found = sorted(prefix.rglob("libtopoccl.so.0"))
    expect(len(found) == 1, f"one libtopoccl.so.0 below {prefix}, not {found}")
    return found[0].parent
