#include "bootstrap/local_exchange.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/error.h"
#include "base/unix_socket.h"
#include "processes.h"
#include "support/sanitized.h"

namespace topoccl {
namespace {

using namespace topoccl::testing;

Wait soon() {
  return {Deadline::in(std::chrono::seconds(20)), nullptr};
}

MemoryFile makeFile() {
  return MemoryFile::create(65536, "exchange-test");
}

class ProcessExchange : public ::testing::TestWithParam<int> {};

TEST_P(ProcessExchange, GivesEveryProcessTheSameMemory) {
  const int ranks = GetParam();
  const Settings settings = settingsWithTimeout(20'000);
  SharedValue<IdBox> box;
  Processes processes(ranks, [&](int rank) {
    const UniqueId id = rank == 0 ? box->make(settings) : box->take();
    const auto mine = connectBootstrap(id, ranks, rank, settings);
    // Two nodes: even and odd ranks.
    NodeShare share{rank % 2, {}};
    for (int other = rank % 2 + 2; other < ranks; other += 2) share.receivers.push_back(other);
    const MemoryFile memory = shareOnNode(*mine, share, makeFile, soon());
    memory.data()[rank] = std::byte{7};
    mine->barrier();
    for (int other = rank % 2; other < ranks; other += 2)
      if (memory.data()[other] != std::byte{7}) throw std::runtime_error("not shared");
    for (int other = 1 - rank % 2; other < ranks; other += 2)
      if (memory.data()[other] != std::byte{0}) throw std::runtime_error("shared across nodes");
    mine->barrier();
    mine->leave();
  });
  for (const std::string& error : processes.wait()) EXPECT_EQ(error, "");
}

INSTANTIATE_TEST_SUITE_P(All, ProcessExchange, ::testing::Values(1, 2, 3, 5, 8, 13));

TEST(Exchange, WorksWithStrangersAtTheLeadersSocket) {
  const Settings settings = settingsWithTimeout(20'000);
  SharedValue<IdBox> box;
  Processes processes(2, [&](int rank) {
    const UniqueId id = rank == 0 ? box->make(settings) : box->take();
    const auto mine = connectBootstrap(id, 2, rank, settings);
    std::vector<Descriptor> strangers;
    std::atomic<bool> stop{false};
    std::thread attacker;
    if (rank == 0)
      // Finds the leader's socket as any local process can, and is silent or sends garbage.
      attacker = std::thread([&] {
        while (!stop) {
          std::ifstream sockets("/proc/net/unix");
          for (std::string line; std::getline(sockets, line);) {
            const size_t at = line.find("@topoccl-");
            if (at == std::string::npos || strangers.size() >= 300) continue;
            try {
              strangers.push_back(connectAbstract(line.substr(at + 1, 40), soon()));
              if (strangers.size() % 2)
                (void)!::send(strangers.back().get(), std::string(64, 'x').data(), 64, MSG_NOSIGNAL);
            } catch (const Error&) {
            }
          }
        }
      });
    if (rank == 1) ::usleep(100'000);
    bool shared = false;
    try {
      shared = bool(shareOnNode(*mine, {0, {1}}, makeFile, soon()));
    } catch (...) {
      stop = true;
      if (attacker.joinable()) attacker.join();
      throw;
    }
    stop = true;
    if (attacker.joinable()) attacker.join();
    mine->barrier();
    mine->leave();
    if (!shared) throw std::runtime_error("no memory");
  });
  for (const std::string& error : processes.wait()) EXPECT_EQ(error, "");
}

// With two cores, hundreds of ranks had asked before the first could answer: the leader sent the oldest away,
// and these gave up.
TEST(Exchange, ServesMoreReceiversThanItHasPlaces) {
  const int ranks = std::getenv("TOPOCCL_TEST_REDUCED") ? 24 : 100;
  const Settings settings = settingsWithTimeout(100'000);
  const Wait patiently{Deadline::in(settings.initTimeout), nullptr};
  std::vector<int> receivers;
  for (int rank = 1; rank < ranks; ++rank) receivers.push_back(rank);
  SharedValue<IdBox> box;
  SharedValue<std::atomic<int>> ended;
  // The last process is no rank: it has the root, which needs a descriptor per rank.
  Processes processes(ranks + 1, [&](int rank) {
    if (rank == ranks) {
      box->make(settings);
      while (*ended < ranks) ::usleep(1000);
      return;
    }
    const std::shared_ptr<void> end(nullptr, [&](void*) { ++*ended; });
    const auto mine = connectBootstrap(box->take(), ranks, rank, settings);
    const rlimit few{40, 40};
    if (rank == 0 && ::setrlimit(RLIMIT_NOFILE, &few) != 0) throw std::runtime_error("setrlimit");
    if (!shareOnNode(*mine, {0, receivers}, makeFile, patiently)) throw std::runtime_error("no memory");
    mine->barrier();
    mine->leave();
  });
  for (const std::string& error : processes.wait()) EXPECT_EQ(error, "");
}

TEST(Exchange, TellsEverybodyWhyThereIsNoMemory) {
  const Settings settings = settingsWithTimeout(20'000);
  SharedValue<IdBox> box;
  Processes processes(3, [&](int rank) {
    const UniqueId id = rank == 0 ? box->make(settings) : box->take();
    const auto mine = connectBootstrap(id, 3, rank, settings);
    std::string why;
    try {
      shareOnNode(
          *mine, {0, {1, 2}}, []() -> MemoryFile { throw Error(Code::SystemError, "too little"); }, soon());
    } catch (const Error& error) {
      why = error.what();
    }
    mine->barrier();
    mine->leave();
    throw std::runtime_error(why);
  });
  for (const std::string& error : processes.wait())
    EXPECT_EQ(error, "rank 0 has no memory to share: too little");
}

TEST(Exchange, WithoutADescriptorLeftNamesTheLimitToAll) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers need descriptors to look at objects";
  const Settings settings = settingsWithTimeout(60'000);
  SharedValue<IdBox> box;
  Processes processes(3, [&](int rank) {
    const UniqueId id = rank == 2 ? box->make(settings) : box->take();
    const auto mine = connectBootstrap(id, 3, rank, settings);
    rlimit before{};
    if (::getrlimit(RLIMIT_NOFILE, &before) != 0) throw std::runtime_error("getrlimit");
    const auto makeLast = [&] {
      MemoryFile file = makeFile();
      const int next = ::dup(0);  // which the listener takes
      ::close(next);
      const rlimit few{static_cast<rlim_t>(next) + 1, before.rlim_max};
      if (::setrlimit(RLIMIT_NOFILE, &few) != 0) throw std::runtime_error("setrlimit");
      return file;
    };
    // What ends a process may need descriptors.
    const std::shared_ptr<void> end(nullptr, [&](void*) { ::setrlimit(RLIMIT_NOFILE, &before); });
    shareOnNode(*mine, {0, {1, 2}}, makeLast, Wait{Deadline::in(settings.initTimeout), nullptr});
  });
  for (const std::string& error : processes.wait())
    EXPECT_TRUE(contains(error, "rank 0 handing memory to rank 1: Too many open files") &&
                contains(error, "ulimit -n"))
        << error;
}

TEST(Exchange, WithAReceiverThatDiesFailsForTheLeader) {
  const Settings settings = settingsWithTimeout(20'000);
  SharedValue<IdBox> box;
  Processes processes(2, [&](int rank) {
    const UniqueId id = rank == 0 ? box->make(settings) : box->take();
    const auto mine = connectBootstrap(id, 2, rank, settings);
    if (rank == 0) shareOnNode(*mine, {0, {1}}, makeFile, soon());
    if (rank == 1) {
      mine->allGather("");  // shareOnNode's, then death instead of fetching
      ::raise(SIGKILL);
    }
  });
  const auto errors = processes.wait();
  EXPECT_TRUE(contains(errors[0], "rank 1")) << errors[0];
  EXPECT_EQ(errors[1], "killed");
}

TEST(Exchange, NeedsNobodyElse) {
  // Last in this program: it makes threads.
  auto all = localBootstrap(3);
  const auto errors = onThreads(3, [&](int rank) {
    const MemoryFile memory = shareOnNode(
        *all[static_cast<size_t>(rank)], {0, {}}, [] { return MemoryFile::anonymous(4096); }, soon());
    if (bool(memory) != (rank == 0)) throw std::runtime_error("wrong rank holds the memory");
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace topoccl
