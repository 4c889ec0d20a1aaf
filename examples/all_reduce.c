/* Sums one array per rank, over all ranks of this process. A plain NCCL program in C99: it compiles with
 * this library's nccl.h or with NVIDIA's, and needs no GPU. From the root of a clone that is built:
 *
 *   cc -std=c99 examples/all_reduce.c -I include -L build/release/lib -lnccl -o all_reduce
 *   LD_LIBRARY_PATH=build/release/lib ./all_reduce 4
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

static float* newArray(void) {
  float* array = malloc(kCount * sizeof(float));
  if (array == NULL) {
    perror("malloc");
    exit(1);
  }
  return array;
}

/* Rank r contributes i + r at index i: small integers, so the sums are exact. */
static int countWrong(const float* sums, int ranks) {
  int wrong = 0;
  for (int i = 0; i < kCount; i++) {
    const float expected = (float)(i % 1000 * ranks + ranks * (ranks - 1) / 2);
    wrong += sums[i] != expected;
  }
  return wrong;
}

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? atoi(argv[1]) : 2;
  if (ranks < 1) {
    fprintf(stderr, "usage: %s [RANKS]\n", argv[0]);
    return 2;
  }
  ncclComm_t* comms = malloc((size_t)ranks * sizeof(ncclComm_t));
  float** inputs = malloc((size_t)ranks * sizeof(float*));
  float** sums = malloc((size_t)ranks * sizeof(float*));
  if (comms == NULL || inputs == NULL || sums == NULL) return 1;
  for (int rank = 0; rank < ranks; rank++) {
    inputs[rank] = newArray();
    sums[rank] = newArray();
    for (int i = 0; i < kCount; i++) inputs[rank][i] = (float)(i % 1000 + rank);
  }

  check(ncclCommInitAll(comms, ranks, NULL), "ncclCommInitAll");
  /* One thread serves all ranks, so their calls form a group. */
  check(ncclGroupStart(), "ncclGroupStart");
  for (int rank = 0; rank < ranks; rank++) {
    check(ncclAllReduce(inputs[rank], sums[rank], kCount, ncclFloat, ncclSum, comms[rank], NULL),
          "ncclAllReduce");
  }
  check(ncclGroupEnd(), "ncclGroupEnd");

  int wrong = 0;
  for (int rank = 0; rank < ranks; rank++) {
    wrong += countWrong(sums[rank], ranks);
    check(ncclCommDestroy(comms[rank]), "ncclCommDestroy");
    free(inputs[rank]);
    free(sums[rank]);
  }
  free(comms);
  free(inputs);
  free(sums);
  printf("%d ranks, %d elements each: %s\n", ranks, kCount, wrong == 0 ? "all sums are right" : "WRONG SUMS");
  return wrong == 0 ? 0 : 1;
}
