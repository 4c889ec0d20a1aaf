"""What compare.sh tells: a Markdown table, JSON, a plot."""

import json
import sys

import peers

ORDER = (peers.OURS, "ours, threads", "ours, ncclMemAlloc", "Open MPI", "MPICH", "Gloo (PyTorch)", *peers.FLOORS)


def size_text(size):
    for unit, name in ((1 << 20, " Mi"), (1 << 10, " Ki")):
        if size >= unit:
            return f"{size / unit:g}{name}"
    return str(size)


def time_text(entry):
    """Median, with the quartiles where they are apart, and an asterisk where there are two groups."""
    least, low, middle, high, most = entry["spread"]
    text = f"{middle:.3g}" if middle < 1000 else f"{middle:.0f}"
    if high > 1.2 * low:
        text += f" ({low:.3g}..{high:.3g})"
    return text + ("*" if entry["bimodal"] else "")


def text(job, rows):
    names = [name for name in ORDER if any(name in row["series"] for row in rows)]
    lines = [f"{job.collective}, floats, {job.ranks} ranks: microseconds, medians of runs (quartiles where they are more than "
             "20 % apart; *: two groups)", ""]
    for binding in job.bindings:
        for state in ("near", "far", "unknown"):
            some = [row for row in rows if row["binding"] == binding and row["state"] == state]
            if not some:
                continue
            bound = "a core each" if binding == "core" else "not bound"
            lines += [f"{bound}, cores {state}:", "", "| bytes | " + " | ".join(names) + " | ratio | runs | |",
                      "| ---: |" + " ---: |" * (len(names) + 2) + " --- |"]
            for row in some:
                cells = [time_text(row["series"][name]) if name in row["series"] else "" for name in names]
                ratio = f"{row['ratio']:.2f}" if row["ratio"] else ""
                runs = row["series"].get(peers.OURS, {}).get("runs", 0)
                lines.append(f"| {size_text(row['bytes'])} | " + " | ".join(cells) +
                             f" | {ratio} | {runs} | {row['verdict']} |")
            lines.append("")
    for name, why in sorted(job.missing.items()):
        lines.append(f"missing: {name}: {why}")
    for name, counts in sorted(job.discarded.items()):
        lines.append(f"discarded: {name}: " + ", ".join(f"{count} {why}" for why, count in sorted(counts.items())))
    return "\n".join(lines)


def write_json(path, job, rows):
    path.write_text(json.dumps({"collective": job.collective, "ranks": job.ranks, "rows": rows, "runs": job.runs,
                                "missing": job.missing, "discarded": job.discarded}, indent=1), encoding="utf-8")


def plot(path, job, rows):
    try:
        import matplotlib
    except ImportError:
        print("compare.sh: no plot: python3-matplotlib is not installed", file=sys.stderr)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = sorted({(row["binding"], row["state"]) for row in rows})
    if not panels:
        print("compare.sh: no plot: no run counted", file=sys.stderr)
        return
    columns = min(2, len(panels))
    lines = (len(panels) + columns - 1) // columns
    figure, axes = pyplot.subplots(lines, columns, figsize=(6.5 * columns, 4.5 * lines), sharey=True, squeeze=False)
    styles = {name: style for name, style in zip(ORDER, ("C0-o", "C0:", "C0--", "C1-s", "C2-^", "C3-v", "k--", "k:"))}
    for (binding, state), axis in zip(panels, axes.flat):
        some = [row for row in rows if (row["binding"], row["state"]) == (binding, state)]
        for name in ORDER:
            points = [(row["bytes"], row["series"][name]["us"]) for row in some if name in row["series"]]
            if points:
                axis.loglog(*zip(*points), styles[name], label=name, markersize=4, linewidth=1.2, base=2)
        axis.set_yscale("log", base=10)
        axis.set_title(f"{'a core each' if binding == 'core' else 'not bound'}, cores {state}")
        axis.set_xlabel("bytes")
        axis.grid(True, which="major", alpha=0.3)
    axes[0][0].set_ylabel("microseconds")
    axes[0][0].legend(fontsize=8)
    figure.suptitle(f"{job.collective}, floats, {job.ranks} ranks on one host: lower is faster")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
