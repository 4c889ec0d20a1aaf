#!/usr/bin/env python3
"""Times every algorithm and protocol of every collective, and says which is the fastest at each size.

    bench/survey.py --ranks 2 4 8 --collectives broadcast all_gather --rounds 3

Variants run in turn, several rounds; a figure is the median of its rounds' times (out of place, in
microseconds). The last column compares the fastest with what the range table takes by itself. Nothing is
written but the output: the built-in range table (src/algorithms/range_table.cc) is decided by people who read
this.
"""

import argparse
import csv
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = {
    "all_reduce": "all_reduce_perf", "broadcast": "broadcast_perf", "reduce": "reduce_perf",
    "all_gather": "all_gather_perf", "reduce_scatter": "reduce_scatter_perf", "gather": "gather_perf",
    "scatter": "scatter_perf", "all_to_all": "alltoall_perf",
}
ALGORITHMS = ["ring", "tree", "mesh_oneshot", "mesh_twoshot", "halving_doubling"]
PROTOCOLS = ["packet", "bulk"]
DEFAULT = ("default", "")


def run(program, ranks, sizes, variant, iterations):
    """Times by bytes, and the variant that ran by bytes; nothing where the collective lacks the algorithm."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("NCCL_ALGO", "NCCL_PROTO", "TOPOCCL_RANGE_TABLE")}
    if variant != DEFAULT:
        environment.update(NCCL_ALGO=variant[0], NCCL_PROTO=variant[1])
    with tempfile.TemporaryDirectory() as directory:
        report = os.path.join(directory, "rows.csv")
        command = [program, "--ranks", str(ranks), "-b", sizes[0], "-e", sizes[1], "-f", sizes[2], "-n",
                   str(iterations), "-w", "3", "-c", "0", "--explain", "--csv", report]
        try:
            outcome = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            sys.exit(f"{' '.join(command)} as {variant}: not done in 300 s")
        if outcome.returncode != 0:
            sys.exit(f"{' '.join(command)} as {variant}: exit {outcome.returncode}\n{outcome.stderr}")
        with open(report, newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["direction"] == "out_of_place"]
    times = {int(row["size"]): float(row["time_us"]) for row in rows}
    ran = {int(row["size"]): (row["algorithm"], row["protocol"]) for row in rows}
    return times, ran


def variants(program, ranks):
    """Those that run as they are called: a name that a collective lacks falls back to another."""
    found = [DEFAULT]
    for algorithm in ALGORITHMS:
        for protocol in PROTOCOLS:
            _, ran = run(program, ranks, ("4096", "4096", "2"), (algorithm, protocol), 1)
            if set(ran.values()) == {(algorithm, protocol)}:
                found.append((algorithm, protocol))
    return found


def survey(program, ranks, sizes, rounds, iterations):
    samples, chosen = {}, {}
    known = variants(program, ranks)
    for _ in range(rounds):
        for variant in known:
            times, ran = run(program, ranks, sizes, variant, iterations)
            for size, time in times.items():
                samples.setdefault(size, {}).setdefault(variant, []).append(time)
            if variant == DEFAULT:
                chosen = ran
    return known, samples, chosen


def show(collective, ranks, known, samples, chosen):
    print(f"\n{collective}, {ranks} ranks")
    names = ["/".join(variant) for variant in known[1:]]
    print(f"{'bytes':>10} " + " ".join(f"{name:>24}" for name in names) + f" {'fastest':>24} {'default/fastest':>16}")
    for size, times in sorted(samples.items()):
        medians = {variant: statistics.median(values) for variant, values in times.items()}
        fastest = min(known[1:], key=lambda variant: medians[variant])
        ratio = medians[DEFAULT] / medians[fastest]
        print(f"{size:>10} " + " ".join(f"{medians[variant]:>24.2f}" for variant in known[1:]) +
              f" {'/'.join(fastest):>24} {ratio:>8.2f} {chosen[size][0]}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--collectives", nargs="+", choices=sorted(PROGRAMS), default=sorted(PROGRAMS))
    parser.add_argument("--sizes", nargs=3, metavar=("FIRST", "LAST", "FACTOR"), default=["64", "4M", "8"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--programs", type=pathlib.Path, help="directory of the benches",
                        default=pathlib.Path(__file__).resolve().parent.parent / "build/release/bin")
    options = parser.parse_args()
    for collective in options.collectives:
        program = str(options.programs / PROGRAMS[collective])
        for ranks in options.ranks:
            show(collective, ranks, *survey(program, ranks, options.sizes, options.rounds, options.iterations))


if __name__ == "__main__":
    main()
