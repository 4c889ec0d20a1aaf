"""Gloo as users have it, through torch.distributed: RANKS BINDING COLLECTIVE MINBYTES MAXBYTES FACTOR ITERATIONS.

Prints "BYTES MICROSECONDS" for each size, averaged over ranks; the time of PyTorch's calls is part of it."""

import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def calls(collective, ranks):
    """call(input, output, floats) for `floats` of the larger buffer."""
    def all_gather(a, b, count):
        dist.all_gather(list(b[:count].chunk(ranks)), a[:count // ranks])
    return {
        "all_reduce": lambda a, b, count: dist.all_reduce(b[:count]),
        "broadcast": lambda a, b, count: dist.broadcast(b[:count], 0),
        "reduce": lambda a, b, count: dist.reduce(b[:count], 0),
        "all_gather": all_gather,
    }.get(collective)


def work(rank, arguments, port):
    ranks, binding, collective, first, last, factor, iterations = arguments
    if binding == "core":
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    call = calls(collective, ranks)
    floats = max(last // 4, ranks)
    a, b = torch.ones(floats), torch.zeros(floats)
    size = first
    while size <= last:
        count = max(size // 4, 1)
        if collective == "all_gather":
            count = max(count // ranks * ranks, ranks)
        for _ in range(3):
            call(a, b, count)
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(iterations):
            call(a, b, count)
        mean = torch.tensor([(time.perf_counter() - begin) / iterations * 1e6 / ranks], dtype=torch.float64)
        dist.all_reduce(mean)
        if rank == 0:
            print(count * 4, f"{mean.item():.3f}", flush=True)
        size *= factor
    dist.destroy_process_group()


def main():
    ranks, binding, collective, *numbers = sys.argv[1:]
    arguments = (int(ranks), binding, collective, *map(int, numbers))
    if calls(collective, int(ranks)) is None:
        sys.exit(f"Gloo has no {collective}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, (arguments, port), nprocs=int(ranks))


if __name__ == "__main__":
    main()
