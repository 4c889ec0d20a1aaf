#!/usr/bin/env python3
"""scripts/packages.txt names everything that is used: no step of an installation is hidden.

Every package that CMake looks for, every foreign header and every program that a script calls is looked up in
the tables below, and the Debian package found there must be listed. What the tables lack is a finding.
"""

import re

import check as c
import shell

# Packages that every Debian and Ubuntu has (priority required, or needed by what the list brings).
ALWAYS_THERE = {"base"}

CMAKE_PACKAGES = {
    "Threads": "base",
    "topoccl": "base",  # this project
    "PkgConfig": "pkg-config",
    "GTest": "libgtest-dev",
    "benchmark": "libbenchmark-dev",
    "HWY": "libhwy-dev",
    "hwy": "libhwy-dev",
    "CLI11": "libcli11-dev",
    "nlohmann_json": "nlohmann-json3-dev",
    "Python3": "python3",
    "libsodium": "libsodium-dev",
    "libhwy": "libhwy-dev",
    "sodium": "libsodium-dev",
}
# Found where present, and nothing is lost without: never needed.
CMAKE_OPTIONAL = {"CUDAToolkit", "MPI", "nvcc"}

HEADERS = {
    "hwy/": "libhwy-dev",
    "sodium": "libsodium-dev",
    "CLI/": "libcli11-dev",
    "nlohmann/": "nlohmann-json3-dev",
    "gtest/": "libgtest-dev",
    "gmock/": "libgtest-dev",
    "benchmark/": "libbenchmark-dev",
    "mpi.h": "libopenmpi-dev",
}
# What a compiler brings: C++ headers have no suffix; C and system headers by name or folder.
SYSTEM_HEADER = re.compile(
    r"\w+$|(?:sys|linux|netinet|arpa|net|bits|asm)/|"
    r"(?:assert|ctype|dirent|dlfcn|elf|errno|execinfo|fcntl|fenv|float|getopt|grp|ifaddrs|immintrin|inttypes|limits"
    r"|link|locale|malloc|math|netdb|poll|pthread|pwd|regex|sched|semaphore|setjmp|signal|spawn|stdarg|stdatomic|stdbool"
    r"|stddef|stdint|stdio|stdlib|string|strings|termios|time|unistd|wchar|x86intrin|arm_neon)\.h$")
CUDA_HEADER = re.compile(r"(?:cuda|nccl|nvml|cub/|cuda/)")

TOOLS = {
    "cmake": "cmake", "ctest": "cmake", "ninja": "ninja-build", "python3": "python3", "ccache": "ccache",
    "git": "git", "debootstrap": "debootstrap", "dot": "graphviz", "mpirun": "openmpi-bin", "mpicxx": "libopenmpi-dev",
    "mpicc": "libopenmpi-dev",
}
BASE_TOOLS = set("""
    apt-cache apt-get awk basename bash cat chmod chroot comm cp cut date dirname dpkg-query env find grep head id
    kill ldd ln ls mkdir mktemp mount mv nproc readlink realpath rm sed seq setarch sleep sort sudo tail
    tar taskset tee timeout touch tr unshare uname uniq wc xargs
""".split())
SHELL_WORDS = set("""
    if then elif else fi for while until do done case esac in function select break cd command continue declare echo
    eval exec exit export false local mapfile printf pwd read readarray return set shift shopt source test trap true
    type ulimit unset wait time let
""".split())

CMAKE_LOOKUP = re.compile(r"\b(?:find_package|find_library|find_program|find_path)\s*\(\s*([^)]*)\)", re.IGNORECASE)
PKG_CONFIG = re.compile(r"\bpkg_(?:check|search)_modules?\s*\(\s*([^)]*)\)", re.IGNORECASE)
PKG_CONFIG_KEYWORDS = {"REQUIRED", "QUIET", "IMPORTED_TARGET", "GLOBAL"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


def listed(context):
    """Package -> group."""
    rows = [line.split("#")[0].split() for line in context.read("scripts/packages.txt").splitlines()]
    return {row[1].rstrip("?"): row[0] for row in rows if row}


def cmake_needs(context):
    """(path, line, name looked for) in CMake files."""
    for path in context.files(suffixes={".txt", ".cmake"}):
        if path.suffix == ".txt" and path.name != "CMakeLists.txt":
            continue
        text = re.sub(r"#[^\n]*", "", context.read(path))
        for match in CMAKE_LOOKUP.finditer(text):
            words = match.group(1).split()
            is_package = match.group(0).lower().startswith("find_package")
            name = words[0] if is_package else words[words.index("NAMES") + 1] if "NAMES" in words else words[1]
            yield path, c.line_of(text, match.start()), name
        for match in PKG_CONFIG.finditer(text):
            for word in match.group(1).split()[1:]:
                if word not in PKG_CONFIG_KEYWORDS:
                    yield path, c.line_of(text, match.start()), re.split("[<>=]", word)[0]


def own_headers(context):
    """Names by which the project's own headers may be included."""
    own = set()
    for path in context.files(suffixes=c.C_AND_CPP_SUFFIXES):
        own.add(path.name)
        own.update("/".join(path.parts[i:]) for i in range(len(path.parts)))
    return own


def header_needs(context):
    own = own_headers(context)
    for path in context.files(suffixes=c.C_AND_CPP_SUFFIXES):
        text = c.without_comments(context.read(path))
        for match in INCLUDE.finditer(text):
            header = match.group(1)
            if header not in own and not CUDA_HEADER.match(header) and not SYSTEM_HEADER.match(header):
                yield path, c.line_of(text, match.start()), header


def without_quoted(text):
    """A script without comments, here-documents and quoted text; commands within "$(...)" stay."""
    def keep_commands(match):
        return "QUOTED" + "".join(f"; {command}; " for command in re.findall(r"\$\(([^()]*)\)", match.group(0)))

    text = re.sub(r"<<-?\s*['\"]?(\w+)['\"]?.*?^\s*\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?:(?<=\s)|^)#[^\n]*", "", text, flags=re.MULTILINE)
    text = text.replace("\\\n", " ")
    text = re.sub(r"'[^']*'", "QUOTED", text)
    text = re.sub(r"(?:^|\bin\b)[ \t]*[\w.* |?-]+\)", "; ", text, flags=re.MULTILINE)  # patterns of case
    text = re.sub(r"\b\w+\+?=\((?:[^()]|\$\([^()]*\))*\)", keep_commands, text)  # arrays
    text = re.sub(r"\(\((?:[^()]|\([^()]*\))*\)\)", " QUOTED", text)  # arithmetic
    return re.sub(r'"(?:\\.|\$\([^()]*\)|[^"\\])*"', keep_commands, text)


def tool_needs(context):
    """(path, line, program) for the first word of every command in scripts."""
    paths = shell.scripts(context)
    texts = {path: context.read(path) for path in paths}
    own = set(re.findall(r"^\s*(\w+)\(\)", "\n".join(texts.values()), re.MULTILINE))
    for path, text in texts.items():
        plain = without_quoted(text)
        for command in re.split(r"\|\||&&|[;|\n&(]|\b(?:if|then|else|elif|while|do|exec|command)\b|!", plain):
            words = [w for w in command.split() if not re.match(r"\w+\+?=|[<>]|\d*>", w)]
            word = words[0].strip("`)") if words else ""
            if re.fullmatch(r"[a-z][\w+.-]*", word) and word not in own | SHELL_WORDS | BASE_TOOLS:
                yield path, c.line_of(text, max(text.find(word), 0)), word


def package_of(table, name):
    return next((package for key, package in table.items() if name == key or key.endswith("/") and name.startswith(key)
                 or key == "sodium" and name.startswith("sodium")), None)


def check(context):
    packages = listed(context)
    findings = []

    def need(path, line, name, package):
        if package is None:
            findings.append(f"{path}:{line}: which package brings {name}? Add it to tests/repository/packages.py")
        elif package not in packages and package not in ALWAYS_THERE:
            findings.append(f"{path}:{line}: {name} comes from {package}, which scripts/packages.txt lacks")

    for path, line, name in cmake_needs(context):
        if name not in CMAKE_OPTIONAL and not CUDA_HEADER.match(name):
            need(path, line, name, package_of(CMAKE_PACKAGES, name))
    for path, line, name in header_needs(context):
        need(path, line, f"<{name}>", package_of(HEADERS, name))
    for path, line, name in tool_needs(context):
        need(path, line, f"the program {name}", package_of(TOOLS, name))
    return findings


if __name__ == "__main__":
    c.main(check)
