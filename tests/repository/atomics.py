#!/usr/bin/env python3
"""Atomics and memory orders occur only where the protocol between producer and reader is written down.

Elsewhere only the plain flags of FLAGS_ALLOWED_IN, without memory orders: a flag says stop, it hands no data
over.
"""

import re

import check as c

PROTOCOL_FILES = {"src/kernels/sync.h", "src/kernels/slot_ring.h"}
FLAGS_ALLOWED_IN = {"base", "bootstrap", "communicator", "transport"}

ATOMICS = re.compile(
    r"std::atomic\w*|<atomic>|\bmemory_order\w*|\b__atomic_\w+|\b__sync_\w+|\bcuda::atomic\w*|<cuda/atomic>"
    r"|\batomic_(?:thread_fence|ref|flag)\b")
FLAG = re.compile(r"std::atomic<(?:bool|int)>|<atomic>")


def check(context):
    findings = []
    for path in context.files("src", suffixes=c.CPP_SUFFIXES):
        if path.as_posix() in PROTOCOL_FILES:
            continue
        text = c.without_comments(context.read(path))
        if path.parts[1] in FLAGS_ALLOWED_IN:
            text = FLAG.sub(lambda flag: " " * len(flag.group(0)), text)
        for match in ATOMICS.finditer(text):
            findings.append(f"{path}:{c.line_of(text, match.start())}: {match.group(0)} belongs into "
                            + " or ".join(sorted(PROTOCOL_FILES)))
    return findings


if __name__ == "__main__":
    c.main(check)
