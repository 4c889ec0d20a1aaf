// A flood of connections from another process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <deque>

#include "base/socket.h"
#include "processes.h"

namespace topoccl {
namespace {

using namespace topoccl::testing;

// As many connects as the machine can make, at a job that may open few descriptors.
TEST(Flood, LeavesTheJobItsDescriptors) {
  SharedValue<IdBox> box;
  SharedValue<std::atomic<bool>> over;
  Processes attacker(1, [&](int) {
    const SocketAddress address = decodeUniqueId(box->take()).address;
    std::deque<Descriptor> sockets;
    while (!*over) {
      int error = 0;
      sockets.push_back(tryConnect(address, {Deadline::in(std::chrono::seconds(1)), nullptr}, error));
      if (sockets.size() > 500) sockets.pop_front();
    }
  });
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{40, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const Settings settings = settingsWithTimeout(20'000);
  const UniqueId id = box->make(settings);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const auto errors = onThreads(3, [&](int rank) {
    const auto mine = connectBootstrap(id, 3, rank, settings);
    if (!areAllBlobs(mine->allGather(blobOf(rank)), 3)) throw std::runtime_error("wrong blobs");
    mine->leave();
  });
  *over = true;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_EQ(attacker.wait().front(), "");
}

}  // namespace
}  // namespace topoccl
