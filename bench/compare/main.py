"""Interleaved runs of one collective by this library, its peers and its floors: compare.sh is the way in."""

import argparse
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field

import judge
import peers
import report

# Sizes that run together, and how often each is called: tens of milliseconds a size, so that the cores stay where
# they are for most runs.
ITERATIONS = ((4 << 10, 2000), (256 << 10, 200), (4 << 20, 30), (1 << 62, 8))


TICKS = 3 / os.sysconf("SC_CLK_TCK")  # by which the kernel's count may be off, at each end of a short run


@dataclass
class Group:
    first: int
    last: int
    factor: int
    iterations: int


@dataclass
class Job:
    collective: str
    ranks: int
    bin: pathlib.Path
    groups: list
    bindings: list
    runs: list = field(default_factory=list)
    missing: dict = field(default_factory=dict)
    discarded: dict = field(default_factory=dict)


def groups_of(first, last, factor):
    """Sizes first, first * factor, ... up to last, by how often they are called."""
    made = []
    size = first
    while size <= last:
        iterations = next(number for most, number in ITERATIONS if size <= most)
        if made and made[-1].iterations == iterations:
            made[-1].last = size
        else:
            made.append(Group(size, size, factor, iterations))
        size *= factor
    return made


def busy_seconds():
    """Of all cores, since the machine began, whoever used them; stolen time too."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = ticks
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))


def core_ping(job):
    done = subprocess.run([job.bin / "core_ping"], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else 0.0


def one_run(job, series, group, binding, limit):
    command = [str(word) for word in series.command(job, group, binding)]
    before, busy, own, begin = core_ping(job), busy_seconds(), own_seconds(), time.monotonic()
    environment = {**os.environ, "OMPI_MCA_btl_base_warn_component_unused": "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit, env=environment)
        times = series.times(done.stdout) if done.returncode == 0 else {}
    except subprocess.TimeoutExpired:
        times = {}
    took = (time.monotonic() - begin) * os.cpu_count()
    foreign = max(0.0, (busy_seconds() - busy - (own_seconds() - own) - TICKS) / took)
    return {"series": series.name, "binding": binding, "state": judge.state(before, core_ping(job)),
            "foreign": round(foreign, 3), "times": times, "command": shlex.join(command)}


def rounds(job, series, number, options):
    for index in range(number):
        for binding in job.bindings:
            for group in job.groups:
                turn = index % len(series)  # who begins changes
                for one in series[turn:] + series[:turn]:
                    print(f"\rround {index + 1} of {number}, {binding}, from {group.first}: {one.name:<24}",
                          end="", file=sys.stderr)
                    try:
                        run = one_run(job, one, group, binding, options.limit)
                    except peers.Missing as reason:
                        job.missing[one.name] = str(reason)
                        continue
                    why = judge.why_discarded(run)
                    if why is None or (options.allow_load and why == "foreign load"):
                        job.runs.append(run)
                    else:
                        job.discarded.setdefault(one.name, {}).setdefault(why, 0)
                        job.discarded[one.name][why] += 1
        series = [one for one in series if one.name not in job.missing]
        if not series:
            break
    print(file=sys.stderr)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/compare.sh", description=__doc__.splitlines()[0] + "\n\n" + """
A run counts where core_ping said the same before and after it (near: below %d ns, or far), and others took less than %d %%
of the machine's time. Rows are by state; a ratio is the best peer's median over ours (above 1: ours is faster).
""" % (judge.NEAR_NS, judge.FOREIGN_SHARE * 100), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collective", default="all_reduce",
                        choices=["all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "gather",
                                 "scatter", "alltoall", "sendrecv"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bind", choices=["core", "none", "both"], default="both",
                        help="ranks bound to a core each, to none, or one after the other [both]")
    parser.add_argument("--rounds", type=int, default=9, help="runs of everything [9]; 7 must count")
    parser.add_argument("-b", "--minbytes", type=int, default=8)
    parser.add_argument("-e", "--maxbytes", type=int, default=128 << 20)
    parser.add_argument("-f", "--factor", type=int, default=4)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="these series [all]")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"),
                        help="where the benches are [build/release/bin]")
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS", help="that a run may take [120]")
    parser.add_argument("--allow-load", action="store_true", help="count runs under foreign load, to try things")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="all runs, and the table")
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE.png", help="needs python3-matplotlib")
    options = parser.parse_args(arguments)
    if options.factor < 2 or options.ranks < 1 or options.rounds < 1 or not 4 <= options.minbytes <= options.maxbytes:
        parser.error("--factor from 2, --ranks and --rounds from 1, 4 <= --minbytes <= --maxbytes")
    return options


def main():
    options = parse(sys.argv[1:])
    cores = len(os.sched_getaffinity(0))
    bindings = ["core", "none"] if options.bind == "both" else [options.bind]
    if options.ranks > cores:
        bindings = ["none"]  # more ranks than cores can't have one each
    job = Job(options.collective, options.ranks, options.bin, groups_of(options.minbytes, options.maxbytes,
                                                                        options.factor), bindings)
    if not (job.bin / f"{job.collective}_perf").exists() or not (job.bin / "core_ping").exists():
        sys.exit(f"compare.sh: no {job.collective}_perf and core_ping in {job.bin}: build them (scripts/build.sh)")
    series = [one for one in peers.all_series(job) if not options.only or one.name in options.only]
    unknown = set(options.only or ()) - {one.name for one in peers.all_series(job)}
    if unknown or not series:
        names = ", ".join(one.name for one in peers.all_series(job))
        sys.exit(f"compare.sh: --only {' '.join(sorted(unknown))}: no such series; there are {names}")
    rounds(job, series, options.rounds, options)
    rows = judge.rows(job.runs, peers.OURS, peers.FLOORS)
    for row in rows:
        row["verdict"] = judge.verdict(row, job.collective, job.ranks, cores, peers.OURS)
    print(report.text(job, rows))
    if options.json:
        report.write_json(options.json, job, rows)
    if options.plot:
        report.plot(options.plot, job, rows)


if __name__ == "__main__":
    main()
