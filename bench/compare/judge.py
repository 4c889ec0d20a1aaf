"""What is made of samples: which runs count, in which state the cores were, medians, spreads, verdicts. Pure."""

import statistics

NEAR_NS = 200  # a round trip between cores below this is near, from this on far
FOREIGN_SHARE = 0.05  # of the machine's time that others may take during a run
GAP = 1.5  # samples that leave such a factor between two groups of two or more are bimodal


def state(before_ns, after_ns):
    """near, far, or mixed: the host moves virtual cores, perhaps in the middle of a run."""
    if before_ns <= 0 or after_ns <= 0:
        return "unknown"
    if before_ns < NEAR_NS and after_ns < NEAR_NS:
        return "near"
    if before_ns >= NEAR_NS and after_ns >= NEAR_NS:
        return "far"
    return "mixed"


def why_discarded(run):
    """Why a run doesn't count, or None. `run` has state, foreign (share of the machine's time) and times."""
    if not run["times"]:
        return "failed"
    if run["foreign"] > FOREIGN_SHARE:
        return "foreign load"
    return "mixed" if run["state"] == "mixed" else None


def spread(samples):
    """(least, lower quartile, median, upper quartile, most)"""
    ordered = sorted(samples)
    if len(ordered) == 1:
        return (ordered[0],) * 5
    low, middle, high = statistics.quantiles(ordered, n=4, method="inclusive")
    return ordered[0], low, middle, high, ordered[-1]


def is_bimodal(samples):
    ordered = sorted(samples)
    return any(ordered[i + 1] > GAP * ordered[i] for i in range(1, len(ordered) - 2))


def wanted_ratio(collective, ranks, cores, size):
    """What the best peer's median over ours has to be at least."""
    if collective != "all_reduce":
        return 0.95 if size <= 64 << 20 else 0.0
    if ranks > cores:
        return 1.5 if size < 1024 else 2.0
    if size >= 4 << 20:
        return 2.0
    return 1.6 if size == 1 << 20 else 0.95


def rows(runs, ours, floors):
    """One row per binding, state and size. `runs`: dictionaries with series, binding, state and times {size: us}, of
    runs that count. `ours` and `floors` name series; every other one is a peer."""
    samples = {}
    for run in runs:
        for size, time in run["times"].items():
            samples.setdefault((run["binding"], run["state"], size), {}).setdefault(run["series"], []).append(time)
    made = []
    for (binding, where, size), series in sorted(samples.items()):
        medians = {name: spread(times)[2] for name, times in series.items()}
        peers = [name for name in medians if name != ours and name not in floors and not name.startswith("ours")]
        best = min(peers, key=medians.get, default=None)
        row = {"binding": binding, "state": where, "bytes": size, "series": {}, "best_peer": best, "ratio": None}
        for name, times in series.items():
            row["series"][name] = {"us": medians[name], "spread": spread(times), "runs": len(times),
                                   "bimodal": is_bimodal(times)}
        if best is not None and medians.get(ours):
            row["ratio"] = medians[best] / medians[ours]
        made.append(row)
    return made


def verdict(row, collective, ranks, cores, ours):
    """met, missed, bimodal (which is a miss), or few: fewer than 7 runs on a side."""
    if row["ratio"] is None:
        return "no peer"
    if row["series"][ours]["bimodal"]:
        return "bimodal"
    if min(row["series"][name]["runs"] for name in (ours, row["best_peer"])) < 7:
        return "few"
    return "met" if row["ratio"] >= wanted_ratio(collective, ranks, cores, row["bytes"]) else "missed"
