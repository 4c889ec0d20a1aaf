/* MPI_Allreduce, timed as all_reduce_perf times ncclAllReduce: a barrier, then a loop of calls whose buffers
 * move through memory, averaged over ranks. One line per size: "BYTES MICROSECONDS".
 *
 *   mpirun -np 2 ompi_all_reduce MINBYTES MAXBYTES FACTOR ITERATIONS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static float* input;
static float* output;
static size_t maxBytes;

static void call(size_t bytes, int number) {
  const size_t places = bytes > 0 && maxBytes / bytes > 0 ? maxBytes / bytes : 1;
  const size_t shift = bytes / sizeof(float) * ((size_t)number % places);
  MPI_Allreduce(input + shift, output + shift, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM,
                MPI_COMM_WORLD);
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
  int ranks = 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
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

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) {
    fprintf(stderr, "usage: %s MINBYTES MAXBYTES FACTOR ITERATIONS\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const size_t minBytes = strtoull(argv[1], NULL, 10);
  maxBytes = strtoull(argv[2], NULL, 10);
  const size_t factor = strtoull(argv[3], NULL, 10);
  const int iterations = (int)strtol(argv[4], NULL, 10);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  input = allocate();
  output = allocate();
  for (size_t bytes = minBytes; bytes <= maxBytes; bytes *= factor) call(bytes, 0);
  for (size_t bytes = minBytes; bytes <= maxBytes; bytes *= factor) {
    const double microseconds = timeCalls(bytes, iterations);
    if (rank == 0) printf("%zu %.3f\n", bytes, microseconds);
  }
  free(input);
  free(output);
  MPI_Finalize();
  return 0;
}
