#!/usr/bin/env python3
"""Every header compiles alone, without warnings; public headers as C99 too."""

import os
import pathlib
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import check as c

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]


def compiles(context, header, language):
    """The compiler's first complaint about a file that includes only this header, or None."""
    flags = {"c++": ["-x", "c++", "-std=c++20"], "c": ["-x", "c", "-std=c99"]}[language]
    root = header.parts[0]  # src or include
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder) / "unit"
        unit.write_text(f'#include "{header.relative_to(root).as_posix()}"\n')
        result = subprocess.run(
            [context.compiler, "-fsyntax-only", *flags, *WARNINGS, f"-I{context.root / 'src'}",
             f"-I{context.root / 'include'}", str(unit)],
            capture_output=True, text=True, check=False)
    complaints = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()
    return complaints[0] if result.returncode else None


def check(context):
    jobs = [(h, "c++") for h in context.files("src", "include", suffixes={".h"})]
    jobs += [(h, "c") for h in context.files("include", suffixes={".h"})]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = pool.map(lambda job: compiles(context, *job), jobs)
    return [f"{header}: as {language}: {text}" for (header, language), text in zip(jobs, complaints) if text]


if __name__ == "__main__":
    c.main(check)
