#!/usr/bin/env python3
"""Adds up ctest's reports: what was skipped and why, what failed, and last a line "N passed, N failed".

    summary.py NAME=REPORT.xml ...

A GoogleTest program counts by its test cases, anything else as one test. A program that failed without
saying in which test (it crashed, say, or ran into the time limit) counts as one failure more. A report that
is missing, or lists nothing, is a failure.
"""

import re
import sys
import xml.etree.ElementTree as xml

PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.", re.MULTILINE)
FAILED = re.compile(r"^\[  FAILED  \] (\d+) tests?, listed below:", re.MULTILINE)
SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) tests?, listed below:", re.MULTILINE)
REASON = re.compile(r"^SKIPPED: (.*)|^.*: Skipped\n(.+)", re.MULTILINE)


def total(pattern, text):
    return sum(int(number) for number in pattern.findall(text))


def count(case):
    """(passed, failed, skipped) of one entry of a report."""
    text = case.findtext("system-out") or ""
    passed, failed, skipped = (total(p, text) for p in (PASSED, FAILED, SKIPPED))
    status = case.get("status")
    if status == "run":
        return (passed, failed, skipped) if passed or skipped else (1, failed, 0)
    if status == "notrun" and case.find("skipped") is not None and REASON.search(text):
        return 0, 0, 1
    if status == "disabled":
        return 0, 0, 1
    return passed, max(failed, 1), skipped


def read(path):
    try:
        return list(xml.parse(path).getroot().iter("testcase"))
    except (OSError, xml.ParseError):
        return []


def main(arguments):
    passed = failed = skipped = 0
    for argument in arguments:
        name, _, path = argument.partition("=")
        cases = read(path)
        if not cases:
            print(f"{name}: no report of any test")
            failed += 1
        for case in cases:
            counts = count(case)
            if counts[1]:
                print(f"{name}: {case.get('name')} failed")
            if counts[2]:
                reasons = {a or b for a, b in REASON.findall(case.findtext("system-out") or "")}
                print(f"{name}: {case.get('name')} skipped {counts[2]}: {'; '.join(sorted(reasons))}")
            passed, failed, skipped = (a + b for a, b in zip((passed, failed, skipped), counts))
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
