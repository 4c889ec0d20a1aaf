/* MPI's collectives, timed as our benches time NCCL's: a barrier, then a loop of calls whose buffers move
 * through memory, averaged over ranks. Floats, sum, root 0. One line per size: "BYTES MICROSECONDS", where
 * BYTES is the larger buffer, rounded down to equal blocks.
 *
 *   mpirun -np 2 mpi_collective COLLECTIVE MINBYTES MAXBYTES FACTOR ITERATIONS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank;
static int ranks;

static void allReduce(const float* in, float* out, int count) {
  MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce(const float* in, float* out, int count) {
  MPI_Reduce(in, out, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* MPI has only this one in place. */
static void broadcast(const float* in, float* out, int count) {
  MPI_Bcast(rank == 0 ? (float*)in : out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void allGather(const float* in, float* out, int block) {
  MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
}

static void reduceScatter(const float* in, float* out, int block) {
  MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void gather(const float* in, float* out, int block) {
  MPI_Gather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void scatter(const float* in, float* out, int block) {
  MPI_Scatter(in, block, MPI_FLOAT, out, block, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void allToAll(const float* in, float* out, int block) {
  MPI_Alltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
}

static void sendReceive(const float* in, float* out, int count) {
  MPI_Sendrecv(in, count, MPI_FLOAT, (rank + 1) % ranks, 0, out, count, MPI_FLOAT, (rank + ranks - 1) % ranks,
               0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* By the names of our benches; whether `count` is that of a block per rank. */
static const struct {
  const char* name;
  void (*call)(const float* in, float* out, int count);
  int hasBlocks;
} kCollectives[] = {
    {"all_reduce", allReduce, 0}, {"reduce", reduce, 0},        {"broadcast", broadcast, 0},
    {"sendrecv", sendReceive, 0}, {"all_gather", allGather, 1}, {"reduce_scatter", reduceScatter, 1},
    {"gather", gather, 1},        {"scatter", scatter, 1},      {"alltoall", allToAll, 1},
};
static const int kCount = (int)(sizeof kCollectives / sizeof kCollectives[0]);

static int collective; /* of kCollectives */
static float* input;
static float* output;
static size_t maxBytes;

static size_t blocks(void) {
  return kCollectives[collective].hasBlocks ? (size_t)ranks : 1;
}

static void call(size_t bytes, int number) {
  const size_t places = bytes > 0 && maxBytes / bytes > 0 ? maxBytes / bytes : 1;
  const size_t shift = bytes / sizeof(float) * ((size_t)number % places);
  kCollectives[collective].call(input + shift, output + shift, (int)(bytes / sizeof(float) / blocks()));
}

/* Average over ranks, in microseconds per call. */
static double timeCalls(size_t bytes, int iterations) {
  call(bytes, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < iterations; i++) call(bytes, i);
  const double mine = (MPI_Wtime() - start) / iterations * 1e6;
  double sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / ranks;
}

static float* allocate(void) {
  float* const buffer = malloc(maxBytes + sizeof(float));
  if (buffer == NULL) {
    perror("malloc");
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
  }
  for (size_t i = 0; i <= maxBytes / sizeof(float); i++) buffer[i] = (float)(i % 100);
  return buffer;
}

static void printUsage(FILE* file) {
  fprintf(file, "usage: mpi_collective COLLECTIVE MINBYTES MAXBYTES FACTOR ITERATIONS\nCOLLECTIVE:");
  for (int i = 0; i < kCount; i++) fprintf(file, " %s", kCollectives[i].name);
  fprintf(file, "\nPrints \"BYTES MICROSECONDS\" for each size, by the MPI that it was built with.\n");
}

int main(int argc, char** argv) {
  /* Before MPI is there: after, only MPI_Abort would end what is wrong, with its own text. */
  if (argc == 2 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
    printUsage(stdout);
    return 0;
  }
  while (argc == 6 && collective < kCount && strcmp(argv[1], kCollectives[collective].name) != 0)
    collective++;
  if (argc != 6 || collective == kCount) {
    printUsage(stderr);
    return 2;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t minBytes = strtoull(argv[2], NULL, 10);
  maxBytes = strtoull(argv[3], NULL, 10);
  const size_t factor = strtoull(argv[4], NULL, 10);
  const int iterations = (int)strtol(argv[5], NULL, 10);
  input = allocate();
  output = allocate();
  for (size_t bytes = minBytes; bytes <= maxBytes; bytes *= factor) call(bytes, 0);
  for (size_t bytes = minBytes; bytes <= maxBytes; bytes *= factor) {
    const double microseconds = timeCalls(bytes, iterations);
    const size_t unit = blocks() * sizeof(float);
    if (rank == 0) printf("%zu %.3f\n", bytes / unit * unit, microseconds);
  }
  free(input);
  free(output);
  MPI_Finalize();
  return 0;
}
