/* What a user's program does first: both ranks of a communicator on this thread, and a sum over them. */
#include <nccl.h>
#include <stdio.h>
#ifdef WITH_TOPOCCL
#include <topoccl.h>
#endif

static int failed(ncclResult_t result) {
  if (result == ncclSuccess) return 0;
  fprintf(stderr, "%s\n", ncclGetLastError(NULL));
  return 1;
}

int main(void) {
  ncclComm_t comms[2];
  float in[2][3] = {{1, 2, 3}, {10, 20, 30}}, out[2][3];
  if (failed(ncclCommInitAll(comms, 2, NULL)) || failed(ncclGroupStart())) return 1;
  for (int rank = 0; rank < 2; ++rank)
    if (failed(ncclAllReduce(in[rank], out[rank], 3, ncclFloat, ncclSum, comms[rank], NULL))) return 1;
  if (failed(ncclGroupEnd())) return 1;
  for (int rank = 0; rank < 2; ++rank)
    if (failed(ncclCommDestroy(comms[rank]))) return 1;
#ifdef WITH_TOPOCCL
  printf("%s\n", topocclGetVersionString());
#endif
  printf("sum %g %g\n", out[0][0], out[1][2]);
  return 0;
}
