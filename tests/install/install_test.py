"""`cmake --install` into a prefix, which is then moved: programs are built against it by find_package and by
pkg-config, those that load libnccl.so.2 find it, and the library's own programs run."""

import shlex
import shutil

from installed import CONSUMER, expect, expect_sum, library_dir, main, need, run


def by_find_package(arguments, prefix, folder):
    run("cmake", "-S", CONSUMER, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={arguments.compiler}")
    run("cmake", "--build", folder)
    expect_sum(run(folder / "with_nccl"))
    output = run(folder / "with_topoccl")
    expect_sum(output)
    expect(output.startswith("TopoCCL "), output)


def by_pkg_config(arguments, prefix, folder):
    folder.mkdir()
    path = library_dir(prefix) / "pkgconfig"
    for name, define in (("topoccl", "-DWITH_TOPOCCL"), ("topoccl-nccl", "-DWITH_NCCL")):
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", name, PKG_CONFIG_PATH=str(path)))
        program = folder / name
        run(arguments.compiler, define, CONSUMER / "consumer.c", "-o", program, *flags)
        needed = run("readelf", "-d", program)
        expect(("libnccl.so.2" in needed) == (name == "topoccl-nccl"), needed)
        # topoccl-nccl.pc says where its library is at run time, as nobody looks there.
        where = {} if name == "topoccl-nccl" else {"LD_LIBRARY_PATH": str(library_dir(prefix))}
        expect_sum(run(program, **where))


def without_prefix(arguments, prefix, folder):
    """A program built elsewhere finds the drop-in where LD_LIBRARY_PATH says."""
    program = folder / "elsewhere"
    run(arguments.compiler, f"-I{prefix}/include/topoccl", CONSUMER / "consumer.c", "-o", program,
        f"-L{library_dir(prefix)}/topoccl", "-lnccl", f"-Wl,-rpath-link,{library_dir(prefix)}")
    expect_sum(run(program, LD_LIBRARY_PATH=str(library_dir(prefix) / "topoccl")))


def test(arguments, folder):
    for tool in ("cmake", "pkg-config", "readelf"):
        need(tool)
    staged = folder / "stage"
    run("cmake", "--install", arguments.build, "--prefix", "/opt/topoccl", DESTDIR=str(staged))
    moved = folder / "a moved prefix"
    shutil.move(staged / "opt/topoccl", moved)
    expect(not list(staged.rglob("*.*")), "files outside the prefix")
    expect(not list((moved / "include").glob("*.h")), "a header in include itself: NVIDIA's nccl.h is there")
    expect(not list(library_dir(moved).glob("libnccl*")), "a libnccl among the libraries: NVIDIA's is there")
    by_find_package(arguments, moved, folder / "cmake")
    by_pkg_config(arguments, moved, folder / "pkg config")
    without_prefix(arguments, moved, folder)
    written = {path.stem for path in (arguments.root / "bench").glob("*_perf.cc")}
    installed = {path.name for path in (moved / "bin").glob("*_perf")}
    expect(written == installed, f"benches written or installed, but not both: {sorted(written ^ installed)}")
    for program in ("topoccl_devices", "all_reduce_perf"):
        expect(f"usage: {program}" in run(moved / "bin" / program, "--help"), program)
    output = run(moved / "bin/all_reduce_perf", "-b", "8", "-e", "1K", "--ranks", "2")
    expect("Out of bounds values : 0 OK" in output, output)


main(test)
