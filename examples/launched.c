/* Sums one array per rank, where a launcher starts the ranks: one process each, on one host. A plain NCCL
 * program in C99 that includes no launcher's header. From the root of a clone that is built:
 *
 *   cc -std=c99 examples/launched.c -I include -L build/release/lib -lnccl -o launched
 *   export LD_LIBRARY_PATH=build/release/lib NCCL_COMM_ID=127.0.0.1:29501
 *   mpirun -np 4 ./launched
 *   srun -n 4 ./launched
 *   torchrun --no-python --nproc-per-node 4 ./launched
 *   for rank in 0 1 2 3; do RANK=$rank WORLD_SIZE=4 ./launched & done; wait
 */
#include <stdio.h>
#include <stdlib.h>

#include <nccl.h>

enum { kCount = 100000 };

static void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "%s: %s (%s)\n", what, ncclGetErrorString(result), ncclGetLastError(NULL));
  exit(1);
}

static int numberOf(const char* variable) {
  const char* text = getenv(variable);
  char* end = NULL;
  const long number = text != NULL ? strtol(text, &end, 10) : -1;
  if (end == text || *end != '\0' || number < 0 || number > 65536) {
    fprintf(stderr, "%s=%s is not valid: must be a number from 0 to 65536\n", variable, text ? text : "");
    exit(2);
  }
  return (int)number;
}

/* Which rank this process is, of how many, by the first launcher whose variables are set. */
static void findRank(int* rank, int* ranks) {
  static const char* const kLaunchers[][2] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, /* mpirun of Open MPI */
      {"PMI_RANK", "PMI_SIZE"},                         /* mpirun of MPICH */
      {"RANK", "WORLD_SIZE"},                           /* torchrun */
      {"SLURM_PROCID", "SLURM_NTASKS"},                 /* srun */
  };
  for (size_t i = 0; i < sizeof kLaunchers / sizeof *kLaunchers; i++) {
    if (getenv(kLaunchers[i][0]) == NULL) continue;
    *rank = numberOf(kLaunchers[i][0]);
    *ranks = numberOf(kLaunchers[i][1]);
    return;
  }
  fprintf(stderr, "no launcher's variables are set: start this by mpirun, srun or torchrun\n");
  exit(2);
}

int main(void) {
  int rank = 0, ranks = 0;
  findRank(&rank, &ranks);
  if (getenv("NCCL_COMM_ID") == NULL) {
    fprintf(stderr, "NCCL_COMM_ID is not set: export NCCL_COMM_ID=127.0.0.1:PORT, with a free port\n");
    return 2;
  }
  float* data = malloc(kCount * sizeof(float));
  if (data == NULL) return 1;
  for (int i = 0; i < kCount; i++) data[i] = (float)(i % 1000 + rank);

  /* With NCCL_COMM_ID every process gets the same id. Without, rank 0 would have to send its id to the
   * others: by MPI_Bcast, a file, a store. */
  ncclUniqueId id;
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  ncclComm_t comm;
  check(ncclCommInitRank(&comm, ranks, id, rank), "ncclCommInitRank");
  check(ncclAllReduce(data, data, kCount, ncclFloat, ncclSum, comm, NULL), "ncclAllReduce");
  check(ncclCommDestroy(comm), "ncclCommDestroy");

  int wrong = 0;
  for (int i = 0; i < kCount; i++) {
    wrong += data[i] != (float)(i % 1000 * ranks + ranks * (ranks - 1) / 2);
  }
  free(data);
  printf("rank %d of %d: %s\n", rank, ranks, wrong == 0 ? "all sums are right" : "WRONG SUMS");
  return wrong == 0 ? 0 : 1;
}
