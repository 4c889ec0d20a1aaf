#!/usr/bin/env python3
"""Proves the checks: each rule is broken in a copy of the tree, and its check must say so, and where."""

import argparse
import contextlib
import importlib
import io
import json
import pathlib
import shutil
import sys
import tempfile

import check as c

# check, file, text that is appended to it, words of the finding. A file that does not exist is made.
FAULTS = [
    ("include_graph", "src/schedule/step.h", '#include "kernels/types.h"', "kernels is not below schedule"),
    ("include_graph", "src/base/error.h", '#include "schedule/step.h"', "schedule is not below base"),
    ("include_graph", "src/executor/fault.h", '#include "transport/shared.h"', "transport is not below executor"),
    ("include_graph", "src/algorithms/fault.h", '#include "schedule/stepper.h"', "algorithms sees only"),
    ("include_graph", "src/topology/fault.h", '#  include "kernels/types.h"', "topology sees only"),
    ("include_graph", "src/bootstrap/fault.h", '#include "schedule/layout.h"', "bootstrap sees only base"),
    ("include_graph", "src/device/fault.h", "#include <communicator/fault.h>", "communicator is not below device"),
    ("include_graph", "src/attic/fault.h", "", "no place in the order"),
    ("include_graph", "src/base/fault.h", '#include "error.h"', "includes start at src"),
    ("include_graph", "src/base/error.h", '#include "base/portable.h"\n#include "base/error.h"', "in a circle"),
    ("atomics", "src/executor/fault.h", "inline std::atomic<bool> stop;", "std::atomic"),
    ("atomics", "src/kernels/types.h", "int x = __atomic_load_n(&y, 0);", "__atomic_load_n"),
    ("atomics", "src/base/fault.h", "auto o = std::memory_order_relaxed;", "memory_order_relaxed"),
    ("atomics", "src/bootstrap/fault.h", "std::atomic<long> x;", "std::atomic"),
    ("headers", "src/base/fault.h", "#pragma once\nstd::string x();", "src/base/fault.h: as c++"),
    ("headers", "include/fault.h", "#pragma once\nnamespace x {}", "include/fault.h: as c"),
    ("sizes", "src/base/fault.h", "\n" * 400, "401 lines"),
    ("sizes", "src/base/fault.cc", "int x(int y) {\n" + "  ++y;\n" * 100 + "}", "a function of 102 lines"),
    ("formatting", "src/base/fault.h", "int   x;", "src/base/fault.h:1"),
    ("packages", "src/base/CMakeLists.txt", "find_package(Boost REQUIRED)", "which package brings Boost"),
    ("packages", "src/base/CMakeLists.txt", "find_library(x NAMES hidden)", "which package brings hidden"),
    ("packages", "src/base/CMakeLists.txt", "pkg_check_modules(X REQUIRED hidden>=1)", "which package brings hidden"),
    ("packages", "src/base/fault.h", "#include <boost/any.hpp>", "which package brings <boost/any.hpp>"),
    ("packages", "scripts/fault.sh", "#!/bin/bash\ntrue && x=$(hidden --now)", "the program hidden"),
    ("packages", "scripts/fault.sh", "#!/bin/bash\nx=(legal $(hidden))", "the program hidden"),
    ("shell", "scripts/fault.sh", "#!/bin/bash\nset -euo pipefail", "not executable"),
    ("shell", "scripts/fault.sh", "#!/bin/bash\ntrue", "lacks"),
    ("shell", "scripts/fault", "#!/bin/sh\nif true", "does not parse"),
    ("usage", "scripts/fault.sh", "#!/bin/bash\n# Does things.\ntrue", "--help: does not show"),
    ("usage", "scripts/fault.sh", "#!/bin/bash\necho scripts/fault.sh >&2; exit 2", "--help: ends with 2"),
    ("usage", "scripts/fault.sh", "#!/bin/bash\ntouch made; echo scripts/fault.sh", "--help: makes made"),
    ("usage", "scripts/fault.sh", "#!/bin/bash\necho scripts/fault.sh", "--no-such-option: ends with 0"),
    ("build_tree", "scripts/common.sh", "realpath() { pwd -P; }", "keeps a build tree of another folder"),
    ("build_tree", "scripts/common.sh", "realpath() { echo x; }", "forgets its own build tree"),
    ("build_tree", "scripts/common.sh", "fail() { exit 1; }", "says nothing clear"),
    ("tidy", "src/base/fault.cc", "int Bad_name() { return 0; }", "readability-identifier-naming"),
    ("links", "docs/fault.md", "[x](nowhere.md)", "nowhere.md does not exist"),
    ("links", "docs/fault.md", "# A title\n[x](#a-title) [y](#another)", "no heading for #another"),
    ("fuzz", "tests/fuzz/fault.cc", 'extern "C" int LLVMFuzzerTestOneInput(const uint8_t*, size_t) {', "CMakeLists.txt lacks it"),
    ("fuzz", "tests/fuzz/fault.cc", 'extern "C" int LLVMFuzzerTestOneInput(const uint8_t*, size_t) {', "no inputs"),
    ("fuzz", "tests/fuzz/corpus/session/fault", "x", "not called .bin"),
    ("words", "docs/fault.md", "see /home/somebody/notes", "absolute path /home"),
    ("words", "src/base/fault.h", '"/tmp/x"', "absolute path /tmp"),
    ("words", "docs/fault.md", "http" + "://mirror.example/x", "host mirror.example"),
    ("words", "scripts/fault.sh", "ping 10.1.2.3", "address 10.1.2.3"),
    ("messages", "src/base/fault.cc", 'throw Error(c, concat("the moon is ", phase, " tonight"));', "has: the moon is ... tonight"),
    ("messages", "src/base/fault.cc", 'throw Error(c, concat("moon is ", x, "; it must be at least 1"));', "has: moon is ... ; it"),
    ("messages", "src/base/fault.cc", 'std::string why() { return "the moon is "\n"full"; }', "has: the moon is full"),
    ("messages", "src/base/fault.cc", 'fail(x ? "the moon is full" : "");', "has: the moon is full"),
    ("messages", "src/base/fault.cc", 'log(Level::Warn, Subsystem::Init, "the moon is full");', "has: the moon is full"),
    ("messages", "bench/common/fault.cc", 'std::fprintf(stderr, "moon %d is full\\n", x);', "has: moon ... is full"),
    ("messages", "scripts/fault.sh", 'fail "the moon $1 is full"', "has: the moon ... is full"),
    ("messages", "docs/troubleshooting.md", "```\nout of memory | the moon is full\n```", "no source has: the moon is full"),
]
# Legal lines that look like faults: check, file, text.
LEGAL = [
    ("include_graph", "src/executor/legal.h", '#include "kernels/types.h"\n// #include "transport/shared.h"'),
    ("include_graph", "src/algorithms/legal.h", '#include "schedule/layout.h"\n#include "base/error.h"'),
    ("include_graph", "src/kernels/legal.h", "#include <hwy/highway.h>\n#include <vector>"),
    ("atomics", "src/executor/legal.h", "// std::atomic is not for here"),
    ("atomics", "src/bootstrap/legal.h", "#include <atomic>\nstd::atomic<bool> aborted_;"),
    ("packages", "scripts/legal.sh", "x=(hidden); case $x in a | hidden) echo 'hidden' \"hidden\" ;; esac # hidden"),
    ("messages", "src/base/legal.cc", '// fail("the moon is full")\nlog(Level::Info, Subsystem::Init, "the moon is full");'),
    ("messages", "src/base/legal.cc", 'throw Error(Code::InProgress, "the moon is full"); static_assert(x, "the moon is full");'),
    ("messages", "src/base/legal.cc", 'reject(concat("nranks is ", count, "; it must be at least 1"));'),
    ("links", "docs/legal.md", "`[x](nowhere.md)` [y](https://doi.org/1)"),
    ("words", "tests/legal.cc", 'char name[] = "/tmp/legal.XXXXXX";'),
    ("words", "docs/legal.md", "in/out/scratch 127.0.0.1 192.0.2.7 ${HOME}/x /proc/self/maps"),
]
COPIED = ("src", "include", "scripts", "cmake", "tests", "docs")
REPORTED_FOR = {"build_tree": "scripts/build.sh"}  # whatever file is at fault
COPIED_FOR = {"headers": ("src/base", "include"), "tidy": (),  # compiling every header for each proof would take minutes
              "messages": ("docs",)}


def findings(name, root, compiler):
    return importlib.import_module(name).check(c.Context(root, compiler, root / "build"))


def copy_with(root, folders, destination, file, text):
    """A copy of these folders in which `file` has `text` at its end. There is a space in its path."""
    copy = pathlib.Path(destination) / "a copy"
    for name in folders:
        if (root / name).is_dir():
            shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    target = copy / file
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "a", encoding="utf-8") as out:
        out.write(text + "\n")
    if (root / ".clang-tidy").exists():
        shutil.copy(root / ".clang-tidy", copy)
    (copy / "build").mkdir()
    command = {"directory": str(copy), "file": file, "arguments": ["c++", "-std=c++20", "-Isrc", "-c", file]}
    (copy / "build" / "compile_commands.json").write_text(json.dumps([command]), encoding="utf-8")
    return copy


def proof(root, compiler, name, file, text, words):
    """What is wrong with the check, or None. Without `words` the check must stay silent about the file."""
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_with(root, COPIED_FOR.get(name, COPIED), folder, file, text)
        with contextlib.redirect_stdout(io.StringIO()):
            found = findings(name, copy, compiler)
    found = [finding for finding in found if finding.startswith((file, REPORTED_FOR.get(name, file)))]
    if words is None:
        return f"{name} complains about legal text: {found[0]}" if found else None
    if not any(words in finding for finding in found):
        return f"{name} misses {text.strip()[:60]!r} in {file}; it found {found}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--compiler", default="c++")
    arguments = parser.parse_args()
    failures = []
    proved = 0
    for case in FAULTS + [(*legal, None) for legal in LEGAL]:
        try:
            complaint = proof(arguments.root, arguments.compiler, *case)
        except c.Skip as reason:
            print(f"{case[0]} not proved: {reason}")
            continue
        proved += 1
        if complaint:
            failures.append(complaint)
    for failure in failures:
        print(failure)
    print(f"{proved} proofs, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
