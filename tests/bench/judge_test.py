"""The deciding parts of bench/compare, with made-up runs: which count, what is made of them, and whether bars are met."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench" / "compare"))
import judge  # noqa: E402
import main as driver  # noqa: E402
import peers  # noqa: E402


def run(series, time, size=8, where="near", binding="core", **changes):
    return {"series": series, "binding": binding, "state": where, "foreign": 0.0, "times": {size: time}, **changes}


class Runs(unittest.TestCase):
    def test_a_state_is_what_both_pings_say(self):
        for before, after, expected in ((80, 120, "near"), (380, 420, "far"), (80, 400, "mixed"), (400, 80, "mixed"),
                                        (199.9, 199.9, "near"), (200, 200, "far"), (0, 80, "unknown")):
            self.assertEqual(judge.state(before, after), expected)

    def test_what_does_not_count(self):
        self.assertIsNone(judge.why_discarded(run("ours", 1)))
        self.assertEqual(judge.why_discarded(run("ours", 1, foreign=0.06)), "foreign load")
        self.assertIsNone(judge.why_discarded(run("ours", 1, foreign=0.04)))
        self.assertEqual(judge.why_discarded(run("ours", 1, where="mixed")), "mixed")
        self.assertEqual(judge.why_discarded(run("ours", 1, times={})), "failed")

    def test_bimodal_is_two_groups_of_two_at_least(self):
        for samples, expected in (([1, 1, 1, 1, 9, 9, 9], True), ([1, 1, 1, 1, 1, 1, 9], False),
                                  ([9, 1, 1, 1, 1, 1, 9], True), ([1, 1.4, 1.9, 2.6, 3.6], False), ([1], False),
                                  ([1, 9], False)):
            self.assertEqual(judge.is_bimodal(samples), expected, samples)

    def test_sizes_go_into_groups(self):
        groups = driver.groups_of(8, 64 << 20, 8)
        sizes = []
        for group in groups:
            size = group.first
            while size <= group.last:
                sizes.append(size)
                size *= group.factor
        self.assertEqual(sizes, [8 << (3 * k) for k in range(8)])
        self.assertGreater(groups[0].iterations, groups[-1].iterations)


class Rows(unittest.TestCase):
    def test_states_and_bindings_are_not_mixed(self):
        runs = [run("ours", 1), run("ours", 5, where="far"), run("ours", 3, binding="none"), run("MPI", 2)]
        rows = judge.rows(runs, "ours", ())
        self.assertEqual([(r["binding"], r["state"], r["ratio"]) for r in rows],
                         [("core", "far", None), ("core", "near", 2), ("none", "near", None)])

    def test_the_best_peer_counts_and_no_floor_is_one(self):
        runs = [run("ours", 2), run("A", 3), run("B", 5), run("limit_slots", 1), run("ours, threads", 0.5)]
        row, = judge.rows(runs, "ours", ("limit_slots",))
        self.assertEqual((row["best_peer"], row["ratio"]), ("A", 1.5))

    def test_medians(self):
        row, = judge.rows([run("ours", t) for t in (1, 2, 100)] + [run("A", t) for t in (8, 4, 6)], "ours", ())
        self.assertEqual(row["ratio"], 3)


class Verdicts(unittest.TestCase):
    def verdict(self, ours, peer, size=8, collective="all_reduce", ranks=2, cores=2):
        row, = judge.rows([run("ours", t, size) for t in ours] + [run("A", t, size) for t in peer], "ours", ())
        return judge.verdict(row, collective, ranks, cores, "ours")

    def test_bars(self):
        for size, ranks, collective, bar in ((8, 2, "all_reduce", 0.95), (1 << 20, 2, "all_reduce", 1.6),
                                             (4 << 20, 2, "all_reduce", 2), (512, 4, "all_reduce", 1.5),
                                             (1024, 8, "all_reduce", 2), (1 << 20, 4, "broadcast", 0.95)):
            for peer, expected in ((bar * 1.001, "met"), (bar * 0.999, "missed")):
                self.assertEqual(self.verdict([1] * 7, [peer] * 7, size, collective, ranks), expected, (size, ranks))

    def test_two_groups_are_a_miss_whatever_the_median(self):
        self.assertEqual(self.verdict([1, 1, 1, 1, 1, 9, 9], [50] * 7), "bimodal")

    def test_few_runs_say_nothing(self):
        self.assertEqual(self.verdict([1] * 6, [50] * 7), "few")
        self.assertEqual(self.verdict([1] * 7, [50] * 6), "few")


class Outputs(unittest.TestCase):
    def test_of_ours_the_right_column_is_read(self):
        line = "  64  16  float  sum  -1  4.47  0.01  0.01  0  1.23  0.05  0.05  0\n# Out of bounds values : 0 OK\n"
        self.assertEqual(peers.Ours.times(line), {64: 4.47})
        self.assertEqual(peers.OursInPlace.times(line), {64: 1.23})

    def test_of_others_lines_of_two_numbers(self):
        self.assertEqual(peers.Lines.times("warning: no network\n8 0.5\n64 1.25\n"), {8: 0.5, 64: 1.25})


unittest.main()
