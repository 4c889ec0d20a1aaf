"""Prints compare.sh's table: SAMPLES COLLECTIVE RANKS [JSON_FILE]."""

import json
import statistics
import sys
from collections import defaultdict


def read_samples(path):
    """Lines "SERIES BINDING PING_BEFORE PING_AFTER BYTES MICROSECONDS" as dictionaries."""
    samples = []
    with open(path) as lines:
        for line in lines:
            series, binding, before, after, size, time = line.split()
            samples.append(
                {
                    "series": series,
                    "binding": binding,
                    "ping_ns": [float(before), float(after)],
                    "bytes": int(size),
                    "us": float(time),
                }
            )
    return samples


def medians(samples):
    """One row per binding and size: medians of both series and their ratio."""
    times = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        times[sample["binding"], sample["bytes"]][sample["series"]].append(sample["us"])
    rows = []
    for (binding, size), series in times.items():
        ours, ompi = (statistics.median(series[name]) for name in ("ours", "ompi"))
        ratio = ompi / ours if ours > 0 else None
        runs = min(len(series["ours"]), len(series["ompi"]))
        rows.append({"binding": binding, "bytes": size, "ours_us": ours, "ompi_us": ompi, "ratio": ratio, "runs": runs})
    return rows


def main():
    samples = read_samples(sys.argv[1])
    collective = sys.argv[2]
    ranks = int(sys.argv[3])
    rows = medians(samples)
    pings = [ping for sample in samples for ping in sample["ping_ns"] if ping > 0]
    seen = f"core round trips {min(pings):.0f}..{max(pings):.0f} ns" if pings else "core round trips unknown"
    print(f"# {collective}, floats, {ranks} processes; medians; {seen}")
    print(f"# {'bound':>6} {'bytes':>12} {'ours us':>12} {'Open MPI us':>12} {'ratio':>7} {'runs':>5}")
    for row in rows:
        ratio = f"{row['ratio']:.2f}" if row["ratio"] is not None else "-"
        print(
            f"  {row['binding']:>6} {row['bytes']:>12} {row['ours_us']:>12.2f} {row['ompi_us']:>12.2f}"
            f" {ratio:>7} {row['runs']:>5}"
        )
    if len(sys.argv) > 4:
        with open(sys.argv[4], "w") as file:
            json.dump({"collective": collective, "ranks": ranks, "medians": rows, "samples": samples}, file, indent=1)


if __name__ == "__main__":
    main()
