// A communicator of one rank, groups and memory, as the C boundary (src/api) sees them. Functions throw
// topoccl::Error; nothing here checks for NULL outputs, the boundary did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "kernels/types.h"

namespace topoccl {

struct CommConfig {
  int blocking = 1;
  std::string name;     // for logs; may be empty
  int minChannels = 0;  // 0: not set
  int maxChannels = 0;  // 0: not set
};

// How a collective of a given size runs; becomes topocclPlan_t.
struct Plan {
  std::string algorithm;
  std::string protocol;
  std::string transport;
  int channels = 0;
  int slots = 0;
  size_t slotBytes = 0;
};

class Communicator {
 public:
  // Inside a group both are queued, and `out` is written by groupEnd.
  static void initRank(Communicator** out, int ranks, const void* id128, int rank, const CommConfig& config);
  static void initAll(Communicator** out, int count, const int* devices);

  int rank() const;
  int ranks() const;
  int device() const;
  void finalize();
  void destroy();  // ends the handle's life, as abort does
  void abort();
  Code asyncError() const;
  void allReduce(const void* send, void* receive, uint64_t count, DataType type, Operator op, void* stream);
  Plan explain(const std::string& collective, uint64_t count, DataType type) const;
};

// The communicator behind a C handle. Throws InvalidArgument for NULL and for dead handles.
Communicator* checkedCommunicator(const void* handle);

void makeUniqueId(void* bytes128);
void groupStart();
void groupEnd();
void* memAlloc(size_t bytes);
void memFree(void* memory);

// The process's last error text; any thread.
std::string lastError();
void setLastError(std::string text);

}  // namespace topoccl
