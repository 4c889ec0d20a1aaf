"""The Debian packages: what is in them, what they depend on, and that their contents work together."""

import re

from installed import CONSUMER, expect, expect_sum, main, need, run

CONTENTS = {
    "libtopoccl0": [r"/libtopoccl\.so\.0$", r"topoccl/libnccl\.so\.2$"],
    "libtopoccl-dev": [r"include/topoccl/nccl\.h$", r"include/topoccl/topoccl\.h$", r"/libtopoccl\.so$",
                       r"topoccl/libnccl\.so$", r"topoccl-config\.cmake$", r"pkgconfig/topoccl\.pc$"],
    "topoccl-tools": [r"bin/all_reduce_perf$", r"bin/topoccl_devices$"],
}
NVIDIAS = r"(usr/lib/([^/]+-linux-gnu/)?libnccl[^/]*|usr/include/nccl\.h)$"  # where its packages have theirs


def depends_of(version):
    ours = rf"libtopoccl0 \(= {re.escape(version)}\)"
    return {"libtopoccl0": r"libc6 .*libsodium|libsodium.*libc6 ", "libtopoccl-dev": f"^{ours}$", "topoccl-tools": ours}


def test(arguments, folder):
    for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "file"):
        need(tool)
    run("cpack", "-G", "DEB", "--config", arguments.build / "CPackConfig.cmake", "-B", folder / "packages")
    packages = {path.name.split("_")[0]: path for path in (folder / "packages").glob("*.deb")}
    expect(packages.keys() == CONTENTS.keys(), f"packages {sorted(packages)}")
    root = folder / "root"
    cache = (arguments.build / "CMakeCache.txt").read_text(encoding="utf-8")
    wanted_depends = depends_of(re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", cache, re.MULTILINE).group(1))
    for name, path in packages.items():
        listed = [line.split()[5] for line in run("dpkg-deb", "--contents", path).splitlines()]
        for wanted in CONTENTS[name]:
            expect(any(re.search(wanted, file) for file in listed), f"{name}: no {wanted} in {listed}")
        for file in listed:
            if not file.endswith("/"):
                expect(not re.search(NVIDIAS, file), f"{file} in {name} is NVIDIA's")
                owners = [other for other, patterns in CONTENTS.items()
                          if any(re.search(pattern, file) for pattern in patterns)]
                expect(owners in ([], [name]), f"{file} in {name}")
        expect(any(file.endswith(f"share/doc/{name}/copyright") for file in listed), f"{name}: no copyright")
        depends = run("dpkg-deb", "--field", path, "Depends").strip()
        expect(re.search(wanted_depends[name], depends), f"{name} depends on {depends}")
        text = run("dpkg-deb", "--field", path, "Description")
        expect("\n  " not in text, f"{name}: lines of its description are not filled:\n{text}")
        run("dpkg-deb", "--extract", path, root)
    run("cmake", "-S", CONSUMER, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={root}/usr",
        f"-DCMAKE_C_COMPILER={arguments.compiler}")
    run("cmake", "--build", folder / "build")
    expect_sum(run(folder / "build/with_topoccl"))
    expect_sum(run(folder / "build/with_nccl"))
    expect("usage: " in run(root / "usr/bin/all_reduce_perf", "--help"), "all_reduce_perf does not run")


main(test)
