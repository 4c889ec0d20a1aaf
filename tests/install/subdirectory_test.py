"""A program whose tree contains the library's: it gets the targets, without tests, benches and installation."""

from installed import CONSUMER, expect, main, need, run


def test(arguments, folder):
    need("cmake")
    need("ninja")
    run("cmake", "-G", "Ninja", "-S", CONSUMER, "-B", folder / "build", f"-DSOURCE={arguments.root}",
        f"-DCMAKE_C_COMPILER={arguments.compiler}")
    targets = run("ninja", "-C", folder / "build", "-t", "targets", "all")
    for wanted in ("with_topoccl", "with_nccl", "topoccl_library", "topoccl_nccl"):
        expect(wanted in targets, f"no target {wanted}")
    for unwanted in ("all_reduce_perf", "base_test"):
        expect(unwanted not in targets, f"target {unwanted}")
    # CPack writes at the top of the build tree, whichever project asked for it.
    expect(not list((folder / "build").rglob("CPack*Config.cmake")), "it would be packed")


main(test)
