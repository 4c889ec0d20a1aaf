"""What the checks share: walking the source tree, and a main that prints findings.

A check is a module with `check(context) -> findings`, where a finding is a line of text that starts with the
file's path, relative to the root. It may raise Skip with the reason why it can't run here.
"""

import argparse
import os
import pathlib
import re
import sys
from dataclasses import dataclass

CPP_SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
C_AND_CPP_SUFFIXES = CPP_SUFFIXES | {".c"}
SKIP_EXIT_CODE = 77  # SKIP_RETURN_CODE in CMakeLists.txt
LEFT_OUT = {".git", ".cache", "__pycache__"}


class Skip(Exception):
    pass


@dataclass
class Context:
    root: pathlib.Path
    compiler: str = "c++"
    build: pathlib.Path = None  # of the tree under test; None in proofs

    def files(self, *folders, suffixes=None):
        """Sorted relative paths of files below the folders (default: the root), without build output."""
        found = []
        for folder in folders or (".",):
            for directory, below, names in os.walk(self.root / folder):
                relative = pathlib.Path(directory).relative_to(self.root)
                below[:] = [b for b in below if b not in LEFT_OUT and (relative / b).parts != ("build",)]
                found += [relative / n for n in names if suffixes is None or pathlib.Path(n).suffix in suffixes]
        return sorted(found)

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8")


STRING_OR_COMMENT = re.compile(
    r'"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'" r"|//[^\n]*" r"|/\*.*?\*/", re.DOTALL)


def without_comments(text):
    """C++ text with comments blanked out; lines keep their numbers."""
    def blank(match):
        token = match.group(0)
        return re.sub(r"[^\n]", " ", token) if token.startswith("/") else token
    # A quote inside a number (1'000) starts no character literal.
    return STRING_OR_COMMENT.sub(blank, re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text))


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def main(check):
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--compiler", default="c++")
    arguments = parser.parse_args()
    try:
        findings = check(Context(arguments.root, arguments.compiler, arguments.build))
    except Skip as reason:
        print(f"SKIPPED: {reason}")
        sys.exit(SKIP_EXIT_CODE)
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings")
    sys.exit(1 if findings else 0)
