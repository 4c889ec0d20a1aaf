#!/usr/bin/env python3
"""Relative links in Markdown files lead to files that exist, and #anchors to headings that exist."""

import re

import check as c

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|<img[^>]*\bsrc=\"([^\"]+)\"")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def anchors(text):
    """A heading's anchor: lower case, no punctuation, dashes for spaces."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


def check(context):
    findings = []
    for path in context.files(suffixes={".md"}):
        text = CODE.sub(blank, context.read(path))
        for match in LINK.finditer(text):
            link = match.group(1) or match.group(2)
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = context.root / path.parent / name if name else context.root / path
            where = f"{path}:{c.line_of(text, match.start())}"
            if not target.exists():
                findings.append(f"{where}: {link} does not exist")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
                findings.append(f"{where}: {name or path} has no heading for #{anchor}")
    return findings


if __name__ == "__main__":
    c.main(check)
