#!/usr/bin/env python3
"""Every text by which the library, its programs and scripts tell of an error stands in docs/troubleshooting.md, and
nothing else does.

An error's text is what is quoted within a call that raises or joins it, `throw Error(code, concat("count is ", n))`, and
any other quoted text of some words in src. It is documented where one entry of the document has all its quoted parts in
their order; what stands for the rest is free. Entries are the lines of fenced blocks; an indented line goes on with the
one before.
"""

import re

import check as c

DOCUMENT = "docs/troubleshooting.md"
# Quoted texts that are no errors: what stands word by word in the tables of settings and of ranges, and these.
ELSEWHERE = ("docs/base.md", "docs/algorithms.md")
NO_ERRORS = {
    "messages to server", "messages to client",  # names of keys
    "out_of_place", "in_place",  # a column of a report
}
# The text form of schedules, and the checker that tests run over them: no call of a program gets there.
NOT_FOR_USERS = "src/schedule/"

RAISERS = re.compile(
    r"\b(?:concat|\w*Error|\w*Failure|throw\w+|reject\w*|refuse\w*|fail\w*|perror|log)\s*\(|\bfprintf\s*\(\s*stderr\b")
# These set no last-error text, or are logged on request only.
UNHEARD = re.compile(r"\s*(?:Code::InProgress|Level::(?:Info|Trace))\b")
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')  # neighbours are one
CONVERSION = re.compile(r"%[-0-9.]*(?:ll|l|z)?[a-z]")
SHELL_CALL = re.compile(r'\b(?:fail|refuse) "((?:\\.|[^"\\])*)"')
SHELL_VALUE = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$[\w*@?]+")
FENCE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def source_text(context, path):
    """Without what can't be an error's text. Lines keep their numbers."""
    text = c.without_comments(context.read(path))
    text = re.sub(r"^[ \t]*#[^\n]*", "", text, flags=re.MULTILINE)
    return re.sub(r"\bstatic_assert\s*\([^;]*;", lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def closing(text, begin):
    """Where the parenthesis that opens just before `begin` closes."""
    depth = 1
    for token in re.finditer(r'"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'" r"|[()]", text[begin:]):
        depth += {"(": 1, ")": -1}.get(token.group(0), 0)
        if depth == 0:
            return begin + token.start()
    return len(text)


def parts(literal):
    """What a literal says word by word, between the conversions of printf."""
    quoted = re.sub(r'(?<!\\)"\s*"', "", literal.group(0)[1:-1])
    plain = quoted.replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")
    return [" ".join(part.split()) for part in CONVERSION.split(plain)]


def is_wordy(fragments, words):
    return sum(1 for part in fragments for word in part.split() if re.search(r"[A-Za-z]{2}", word)) >= words


def is_alternative(text, literal):
    """One side of `a ? "x" : "y"`: the text may have it, or not."""
    before = text[:literal.start()].rstrip(" \n(")
    return before.endswith("?") or (before.endswith(":") and not before.endswith("::"))


def calls(text):
    """(begin, end) of the arguments of outermost calls that raise or join texts, in order."""
    end = 0
    for match in RAISERS.finditer(text):
        if match.start() >= end:
            end = closing(text, match.end())
            yield match.end(), end


def messages(context, path, only_calls):
    """(line, parts that belong together, whether they need an entry) of all texts of a C++ file."""
    text = source_text(context, path)
    seen = []
    for begin, end in calls(text):
        seen.append((begin, end))
        if UNHEARD.match(text, begin):
            continue
        fixed = []
        for literal in LITERAL.finditer(text, begin, end):
            if not is_alternative(text, literal):
                fixed += parts(literal)
            else:
                yield c.line_of(text, literal.start()), parts(literal), is_wordy(parts(literal), 3)
        yield c.line_of(text, begin), fixed, is_wordy(fixed, 2)
    for literal in LITERAL.finditer(text):
        inside = any(begin <= literal.start() < end for begin, end in seen)
        if not inside and not only_calls:
            yield c.line_of(text, literal.start()), parts(literal), is_wordy(parts(literal), 3)


def shell_messages(context, path):
    text = context.read(path)
    for match in SHELL_CALL.finditer(text):
        fragments = [" ".join(part.split()) for part in SHELL_VALUE.split(match.group(1))]
        yield c.line_of(text, match.start()), fragments, True


def all_messages(context):
    for path in context.files("src", suffixes=c.CPP_SUFFIXES):
        if not str(path).startswith(NOT_FOR_USERS):
            for message in messages(context, path, only_calls=False):
                yield path, *message
    for path in context.files("bench/common", "tools", suffixes=c.CPP_SUFFIXES):
        for message in messages(context, path, only_calls=True):
            yield path, *message
    for path in context.files("scripts", suffixes={".sh"}):
        for message in shell_messages(context, path):
            yield path, *message


def entries(context):
    """Text -> line of the document's entries. One line may have several, with bars between them."""
    text = context.read(DOCUMENT)
    found = {}
    for block in FENCE.finditer(text):
        for match in re.finditer(r"^\S.*(?:\n[ \t]+\S.*)*", block.group(1), re.MULTILINE):
            for entry in " ".join(match.group(0).split()).split(" | "):
                found[entry] = c.line_of(text, block.start(1) + match.start())
    return found


def says(entry, fragments):
    return re.search(".*?".join(map(re.escape, fragments)), entry)


def check(context):
    documented = entries(context)
    elsewhere = " ".join(" ".join(context.read(path) for path in ELSEWHERE).split())
    elsewhere = CONVERSION.sub("...", elsewhere)
    findings, used = [], set()
    for path, line, fragments, needs_entry in all_messages(context):
        fragments = [part for part in fragments if re.search(r"\w", part)]
        text = " ... ".join(fragments)
        if not needs_entry:
            used.add(text)
            continue
        saying = {entry for entry in documented if says(entry, fragments)}
        used |= saying
        if not saying and text not in elsewhere and text not in NO_ERRORS:
            findings.append(f"{path}:{line}: no entry of {DOCUMENT} has: {text}")
    findings += [f"{DOCUMENT}:{line}: no source has: {entry}"
                 for entry, line in documented.items() if entry not in used]
    return findings


if __name__ == "__main__":
    c.main(check)
