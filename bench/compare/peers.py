"""Who is compared: how each is called. A series has a name and command(sizes, binding) -> words, or says why it is
missing."""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PEER_SOURCE = HERE.parent / "mpi_collective.c"


class Missing(Exception):
    pass


class Ours:
    def __init__(self, name, options):
        self.name = name
        self.options = options

    def command(self, job, group, binding):
        program = job.bin / f"{job.collective}_perf"
        if not program.exists():
            raise Missing(f"{program.name} is not built")
        ranks = ["-t", str(job.ranks)] if "threads" in self.name else ["--ranks", str(job.ranks)]
        return [program, *ranks, "-b", group.first, "-e", group.last, "-f", group.factor, "-n", group.iterations, "-w",
                20, "-c", 0, "--bind", binding, *self.options]

    @staticmethod
    def times(output):
        """From nccl-tests' table: out of place, as a broadcast in place is MPI's only one: in place."""
        lines = [line.split() for line in output.splitlines()]
        lines = [words for words in lines if len(words) > 9 and words[0].isdigit()]
        return {int(words[0]): float(words[5]) for words in lines}


class OursInPlace(Ours):
    @staticmethod
    def times(output):
        lines = [line.split() for line in output.splitlines()]
        lines = [words for words in lines if len(words) > 9 and words[0].isdigit()]
        return {int(words[0]): float(words[9]) for words in lines}


class Lines:
    """A program that prints "BYTES MICROSECONDS" lines."""

    @staticmethod
    def times(output):
        pairs = [line.split() for line in output.splitlines()]
        return {int(size): float(time) for size, time in (p for p in pairs if len(p) == 2 and p[0].isdigit())}


class Mpi(Lines):
    def __init__(self, name, flavour, mpicc, mpirun, options, binds):
        self.name, self.flavour, self.options, self.binds = name, flavour, options, binds
        self.mpicc, self.mpirun = mpicc, mpirun

    def build(self, job):
        mpicc, mpirun = (next(filter(shutil.which, names), None) for names in (self.mpicc, self.mpirun))
        if mpicc is None or mpirun is None:
            raise Missing(f"no {self.mpicc[0] if mpicc is None else self.mpirun[0]} here")
        program = job.bin / f"mpi_collective_{self.flavour}"
        if not program.exists() or program.stat().st_mtime < PEER_SOURCE.stat().st_mtime:
            done = subprocess.run([mpicc, "-O2", PEER_SOURCE, "-o", program], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Missing(f"{mpicc} fails: {done.stderr.strip().splitlines()[-1]}")
        return mpirun, program

    def command(self, job, group, binding):
        mpirun, program = self.build(job)
        return [mpirun, *self.options, "-np", job.ranks, *self.binds[binding], program, job.collective, group.first,
                group.last, group.factor, group.iterations]


class Gloo(Lines):
    name = "Gloo (PyTorch)"

    def command(self, job, group, binding):
        python = os.environ.get("COMPARE_PYTHON", "/usr/bin/python3")
        done = subprocess.run([python, "-c", "import torch.distributed"], capture_output=True, check=False)
        if done.returncode != 0:
            raise Missing(f"{python} has no torch.distributed (python3-torch)")
        return [python, HERE / "gloo_collective.py", job.ranks, binding, job.collective, group.first, group.last,
                group.factor, group.iterations]


class Floor(Lines):
    def __init__(self, name):
        self.name = name

    def command(self, job, group, binding):
        if job.collective != "all_reduce" or job.ranks != 2:
            raise Missing("for all_reduce of 2 ranks only")
        if not (job.bin / self.name).exists():
            raise Missing(f"{self.name} is not built")
        return [job.bin / self.name, group.first, group.last, group.factor, group.iterations]


ROOT = ["--allow-run-as-root"] if os.geteuid() == 0 else []
OURS = "ours"
FLOORS = ("limit_slots", "limit_memory")


def all_series(job):
    ours = OursInPlace if job.collective == "broadcast" else Ours
    return [
        ours(OURS, []),
        ours("ours, threads", []),
        ours("ours, ncclMemAlloc", ["--buffers", "nccl"]),
        Mpi("Open MPI", "openmpi", ["mpicc.openmpi"], ["mpirun.openmpi"], [*ROOT, "--oversubscribe"],
            {"core": ["--bind-to", "core"], "none": ["--bind-to", "none"]}),
        Mpi("MPICH", "mpich", ["mpicc.mpich"], ["mpirun.mpich"], [],
            {"core": ["-bind-to", "core"], "none": ["-bind-to", "none"]}),
        Gloo(),
        *map(Floor, FLOORS),
    ]
