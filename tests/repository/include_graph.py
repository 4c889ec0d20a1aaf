#!/usr/bin/env python3
"""Includes between the folders of src go one way only:

    api > communicator > {executor, algorithms, bootstrap, transport, topology} > device > kernels > schedule > base

Left may include right, folders within braces not each other. Some see less than that, and include/ is seen by
two folders only. Files do not include each other in circles either.
"""

import re

import check as c

LEVELS = [
    {"api"},
    {"communicator"},
    {"executor", "algorithms", "bootstrap", "transport", "topology"},
    {"device"},
    {"kernels"},
    {"schedule"},
    {"base"},
]
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}

LAYOUT_AND_STEPS = {"schedule/layout.h", "schedule/step.h", "schedule/builder.h"}
# Rooms that see less than their level allows: whole rooms, and single headers.
SEES_ONLY = {
    "bootstrap": ({"base"}, set()),
    "topology": ({"base"}, LAYOUT_AND_STEPS),
    "algorithms": ({"base"}, LAYOUT_AND_STEPS),
}
PUBLIC_HEADERS_SEEN_BY = {"api", "communicator"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)


def includes(context, path):
    """(line, delimiter, header) of every include of a file."""
    text = context.read(path)
    return [(c.line_of(text, m.start(2)), m.group(1), m.group(2)) for m in INCLUDE.finditer(c.without_comments(text))]


def forbidden(room, header, public):
    """Why files of `room` may not include `header`, or None."""
    target = header.split("/")[0]
    if header in public:
        return None if room in PUBLIC_HEADERS_SEEN_BY else "public headers are for api and communicator"
    if target == room:
        return None
    if room in SEES_ONLY:
        rooms, headers = SEES_ONLY[room]
        if target in rooms or header in headers:
            return None
        return f"{room} sees only {', '.join(sorted(rooms | headers))}"
    if LEVEL[target] <= LEVEL[room]:
        return f"{target} is not below {room}"
    return None


def cycles(graph):
    """One finding for each circle of includes that a depth-first walk closes."""
    found, state = [], {}

    def visit(path, trail):
        state[path] = "open"
        for target in graph.get(path, []):
            if state.get(target) == "open":
                found.append(f"src/{path}: includes in a circle: {' > '.join(trail[trail.index(target):] + [target])}")
            elif target not in state:
                visit(target, trail + [target])
        state[path] = "closed"

    for path in sorted(graph):
        if path not in state:
            visit(path, [path])
    return found


def check(context):
    findings, graph = [], {}
    public = {p.name for p in context.files("include", suffixes={".h"})}
    for path in context.files("src", suffixes=c.CPP_SUFFIXES):
        inside = path.relative_to("src")
        room = inside.parts[0]
        if room not in LEVEL:
            findings.append(f"{path}: src/{room} has no place in the order of folders")
            continue
        graph[str(inside)] = []
        for line, delimiter, header in includes(context, path):
            target = header.split("/")[0]
            if target not in LEVEL and header not in public:
                if delimiter == '"' and (context.root / path).with_name(header).exists():
                    findings.append(f'{path}:{line}: write "{room}/{header}": includes start at src')
                continue
            reason = forbidden(room, header, public)
            if reason:
                findings.append(f"{path}:{line}: may not include {header}: {reason}")
            graph[str(inside)].append(header)
    return findings + cycles(graph)


if __name__ == "__main__":
    c.main(check)
