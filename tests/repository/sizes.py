#!/usr/bin/env python3
"""Files stay under 400 lines and functions under 100; prints the largest and how the tree stands."""

import re

import check as c

FILE_LINES = 400
# Programs written for NCCL include all of it by that name.
ONE_FILE = {"include/nccl.h"}
FUNCTION_LINES = 100
LONG_FUNCTION = 30

# What stands before a "{" that opens no function.
NO_FUNCTION = re.compile(r"^(?:namespace|struct|class|union|enum|extern|if|else|for|while|do|switch|try|catch)\b")
LABELS_AND_DIRECTIVES = re.compile(r"^\s*(?:#.*|(?:public|private|protected) *:)$", re.MULTILINE)


def opens_function(before):
    """Whether a brace after this text, which reaches back to the last ; { or }, opens a function's body."""
    before = LABELS_AND_DIRECTIVES.sub("", before).strip()
    return "(" in before and not NO_FUNCTION.match(before)


def functions(text):
    """(line of its name, length) of every function in C++ text; those within functions count with them."""
    text = c.without_comments(text)
    found, depth, outer = [], 0, None
    statement = 0
    for match in re.finditer(r"[{};]", text):
        if match.group() == "{":
            before = text[statement:match.start()]
            if outer is None and opens_function(before):
                outer = depth, statement + len(before) - len(before.lstrip())
            depth += 1
        elif match.group() == "}":
            depth -= 1
            if outer is not None and outer[0] == depth:
                found.append((c.line_of(text, outer[1]), text.count("\n", outer[1], match.end()) + 1))
                outer = None
        statement = match.end()
    return found


def check(context):
    findings, file_sizes, function_sizes = [], [], []
    for path in context.files(suffixes=c.C_AND_CPP_SUFFIXES | {".py", ".sh"}):
        text = context.read(path)
        file_lines = text.count("\n")
        file_sizes.append((file_lines, str(path)))
        if file_lines > FILE_LINES and str(path) not in ONE_FILE:
            findings.append(f"{path}: {file_lines} lines, more than {FILE_LINES}: are two things in one file?")
        if path.suffix not in c.C_AND_CPP_SUFFIXES:
            continue
        for line, length in functions(text):
            function_sizes.append((length, f"{path}:{line}"))
            if length > FUNCTION_LINES:
                findings.append(f"{path}:{line}: a function of {length} lines, more than {FUNCTION_LINES}")
    for what, sizes, limit in ("files", file_sizes, 200), ("functions", function_sizes, LONG_FUNCTION):
        sizes.sort(reverse=True)
        if sizes:
            within = sum(size <= limit for size, _ in sizes) / len(sizes)
            print(f"{len(sizes)} {what}: median {sizes[len(sizes) // 2][0]} lines, {within:.0%} up to {limit}; largest:")
            print("\n".join(f"  {size:4} {place}" for size, place in sizes[:5]))
    return findings


if __name__ == "__main__":
    c.main(check)
