#!/usr/bin/env python3
"""The repository names no machine: no absolute paths outside the system's folders, no hosts, no addresses."""

import ipaddress
import pathlib
import re

import check as c

SYSTEM_FOLDERS = {"usr", "etc", "proc", "sys", "dev", "bin", "sbin", "lib", "opt", "run", "var"} | {"self", "thread-self"}  # of /proc
PUBLIC_HOSTS = {"www.apache.org", "www.w3.org", "doi.org", "arxiv.org", "github.com"}
TEXT_SUFFIXES = c.C_AND_CPP_SUFFIXES | {
    "", ".md", ".txt", ".cmake", ".json", ".py", ".sh", ".dot", ".svg", ".xml", ".in"}

# A path starts after white space, a quote or "=", so that "in/out" and "${root}/x" are none.
ABSOLUTE_PATH = re.compile(r"""(?:^|[\s"'`=(<\[])/([A-Za-z][\w.-]*)/[\w.${]""", re.MULTILINE)
TEMPORARY_NAME = re.compile(r"/tmp/[\w.-]*XXXXXX")  # for mkdtemp: the same on every machine
URL = re.compile(r"\b(?:https?|ftp|git|ssh)://([^\s/\"'<>)`]+)")
ADDRESS = re.compile(r"(?<![\w.-])(\d{1,3}(?:\.\d{1,3}){3})(?![\w.-])")


def names_a_machine(text, path):
    """Whether an address is more than loopback, unspecified, a mask, reserved for documentation (RFC 5737) or,
    in a test, private."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    documentation = ("192.0.2.", "198.51.100.", "203.0.113.")
    return not (address.is_loopback or address.is_unspecified or text.startswith((*documentation, "255."))
                or address.is_private and path.parts[0] == "tests")


def findings_in(path, text):
    for match in ABSOLUTE_PATH.finditer(TEMPORARY_NAME.sub(lambda name: " " * len(name.group(0)), text)):
        if match.group(1) not in SYSTEM_FOLDERS:
            yield match.start(1), f"absolute path /{match.group(1)}/..."
    for match in URL.finditer(text):
        if not match.group(1).startswith(("$", "localhost", "127.")) and match.group(1) not in PUBLIC_HOSTS:
            yield match.start(), f"host {match.group(1)}"
    for match in ADDRESS.finditer(text):
        if names_a_machine(match.group(1), path):
            yield match.start(), f"address {match.group(1)}"


def check(context):
    findings = []
    this = pathlib.Path("tests/repository")
    for path in context.files(suffixes=TEXT_SUFFIXES):
        if path in (this / "words.py", this / "proofs.py") or path.name == ".git":
            continue
        text = context.read(path)
        findings += [f"{path}:{c.line_of(text, offset)}: {what}" for offset, what in findings_in(path, text)]
    return findings


if __name__ == "__main__":
    c.main(check)
