#!/usr/bin/env python3
"""Each fuzz target is built, has inputs to begin with that other checks take for no text, and is documented."""

import re

import check as c

FOLDER = "tests/fuzz"
ENTRY = re.compile(r"^extern \"C\" int LLVMFuzzerTestOneInput\(.*\{$", re.MULTILINE)
FILES, BYTES = 200, 300_000


def check(context):
    targets = {path.stem: path for path in context.files(FOLDER, suffixes={".cc"}) if ENTRY.search(context.read(path))}
    built = re.findall(r"^topoccl_fuzz\((\w+)", context.read(f"{FOLDER}/CMakeLists.txt"), re.MULTILINE)
    documented = re.findall(r"^\| `(\w+)` \|", context.read("docs/fuzz.md"), re.MULTILINE)
    inputs = context.files(f"{FOLDER}/corpus")
    findings = []
    for name, path in targets.items():
        if name not in built:
            findings.append(f"{path}: {FOLDER}/CMakeLists.txt lacks it")
        if name not in documented:
            findings.append(f"{path}: docs/fuzz.md lacks it")
        if not any(kept.parent.name == name for kept in inputs):
            findings.append(f"{path}: there are no inputs in {FOLDER}/corpus/{name}")
    for kept in inputs:
        if kept.parent.name not in targets or kept.suffix != ".bin":
            findings.append(f"{kept}: no input of a target, or not called .bin")
    total = sum((context.root / kept).stat().st_size for kept in inputs)
    if len(inputs) > FILES or total > BYTES:
        findings.append(f"{FOLDER}/corpus: {len(inputs)} files with {total} bytes, more than {FILES} or {BYTES}: merge them")
    return findings


if __name__ == "__main__":
    c.main(check)
