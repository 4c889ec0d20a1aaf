// Ways in which a process ends: with calls in flight, without goodbyes, from anywhere. It ends with the
// status it wanted, and peers learn of it.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>

#include "communicator/non_blocking.h"
#include "communicator/ranks.h"
#include "communicator/streams.h"
#include "support/child.h"
#include "support/sanitized.h"

namespace topoccl::test {
namespace {

constexpr int kStatus = 7;
constexpr const char* kEnded = "exit 7";

// Two ranks of this process, with a call of rank 0 in flight on each of: a thread, a stream, the background.
struct Busy {
  ncclComm_t byThread[2] = {}, onStream[2] = {}, background = nullptr, pending = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<float> data = std::vector<float>(1000, 1);

  Busy() {
    for (ncclComm_t* comms : {byThread, onStream})
      EXPECT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess) << lastError();
    EXPECT_EQ(topocclStreamCreate(&stream), ncclSuccess);
    EXPECT_EQ(call(onStream[0], stream), ncclSuccess);
    std::thread([this] { call(byThread[0], nullptr); }).detach();
    ncclConfig_t config = nonBlocking();
    const ncclUniqueId id = newId();
    EXPECT_EQ(ncclCommInitRankConfig(&pending, 2, id, 0, &config), ncclInProgress);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ncclResult_t call(ncclComm_t comm, cudaStream_t on) {
    return ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, on);
  }
};

// Never destroyed: as a program's globals that outlive main's end.
Busy& beBusy() {
  static auto* const busy = new Busy;
  return *busy;
}

TEST(ProcessEnd, ByExitWithCallsInFlight) {
  EXPECT_EQ(runChild([] {
              beBusy();
              std::exit(kStatus);
              return 1;
            }),
            kEnded);
}

TEST(ProcessEnd, ByExitInAnotherThread) {
  EXPECT_EQ(runChild([] {
              beBusy();
              std::thread([] { std::exit(kStatus); }).join();
              return 1;
            }),
            kEnded);
}

TEST(ProcessEnd, ByQuickExitAndByAbort) {
  EXPECT_EQ(runChild([] {
              beBusy();
              std::quick_exit(kStatus);
              return 1;
            }),
            kEnded);
  EXPECT_EQ(runChild([] {
              ::signal(SIGABRT, SIG_DFL);
              beBusy();
              std::abort();
              return 1;
            }),
            "signal " + std::to_string(SIGABRT));
}

// Handlers run when other threads still use the library.
TEST(ProcessEnd, LibraryIsThereForHandlersOfExit) {
  EXPECT_EQ(runChild([] {
              std::atexit([] {
                Busy& busy = beBusy();
                ncclComm_t own = nullptr;
                bool good = ncclCommInitAll(&own, 1, nullptr) == ncclSuccess;
                good = good && busy.call(own, nullptr) == ncclSuccess && ncclCommDestroy(own) == ncclSuccess;
                good = good && ncclCommAbort(busy.onStream[0]) == ncclSuccess;
                good = good && topocclStreamDestroy(busy.stream) == ncclSuccess;
                good = good && ncclCommDestroy(own) == ncclInvalidArgument &&
                       lastError().find("comm was destroyed") != std::string::npos;
                if (!good) ::_exit(1);
              });
              beBusy();
              EXPECT_EQ(ncclCommDestroy(nullptr), ncclInvalidArgument);
              EXPECT_NE(lastError(), "");
              std::exit(kStatus);
              return 1;
            }),
            kEnded);
}

// Main's thread ends by itself; the process when the program says so. Forked by a thread, as the end of one
// unwinds it, and the test's own may not be.
TEST(ProcessEnd, AfterMainsThreadHasEnded) {
  std::string ended;
  std::thread([&] {
    ended = runChild([] {
      std::thread([] {
        Busy& busy = beBusy();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        const bool good = busy.call(busy.onStream[1], nullptr) == ncclSuccess &&
                          topocclStreamSynchronize(busy.stream) == ncclSuccess;
        // The leak sanitizer takes what the stack of main held for lost.
        kSanitized ? ::_exit(good ? kStatus : 1) : std::exit(good ? kStatus : 1);
      }).detach();
      ::pthread_exit(nullptr);
      return 1;
    });
  }).join();
  EXPECT_EQ(ended, kEnded);
}

// Signals of the process find the program's threads, in the library or not, and never the library's.
TEST(ProcessEnd, BySignalsThatTheProgramLeavesOpen) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    SharedValue<std::atomic<bool>> ready;
    const pid_t child = startChild([&] {
      Busy& busy = beBusy();
      *ready = true;
      busy.call(busy.byThread[1], nullptr);
      for (;;) ::pause();
      return 1;
    });
    while (!*ready) ::usleep(1000);
    ::kill(child, number);
    EXPECT_EQ(endOf(child), "signal " + std::to_string(number));
  }
}

TEST(ProcessEnd, SignalsThatTheProgramBlocksWaitForIt) {
  EXPECT_EQ(runChild([] {
              sigset_t terminate;
              sigemptyset(&terminate);
              sigaddset(&terminate, SIGTERM);
              ::pthread_sigmask(SIG_BLOCK, &terminate, nullptr);
              beBusy();
              ::kill(::getpid(), SIGTERM);  // would end the process if a thread of the library left it open
              int number = 0;
              ::sigwait(&terminate, &number);
              return number == SIGTERM ? kStatus : 1;
            }),
            kEnded);
}

// Destroy without finalize, in any order, by any thread; ranks of other processes go on.
TEST(ProcessEnd, CommunicatorsAreDestroyedInAnyOrder) {
  constexpr int kComms = 4;
  std::vector<ncclUniqueId> ids;
  for (int i = 0; i < kComms; ++i) ids.push_back(newId());
  onProcesses(2, [&](int rank) {
    ncclComm_t comms[kComms] = {}, parts[kComms] = {};
    for (int i = 0; i < kComms; ++i) {
      EXPECT_EQ(ncclCommInitRank(&comms[i], 2, ids[static_cast<size_t>(i)], rank), ncclSuccess);
      EXPECT_EQ(ncclCommSplit(comms[i], 0, 0, &parts[i], nullptr), ncclSuccess);
      expectSum(comms[i], 2, rank, 100);
    }
    for (int i = 0; i < kComms; ++i) {
      const int which = rank == 0 ? i : kComms - 1 - i;
      ncclComm_t first = (i + rank) % 2 == 0 ? comms[which] : parts[which];
      ncclComm_t second = first == comms[which] ? parts[which] : comms[which];
      EXPECT_EQ(ncclCommDestroy(first), ncclSuccess) << lastError();
      std::thread([&] { EXPECT_EQ(ncclCommDestroy(second), ncclSuccess) << lastError(); }).join();
    }
    return 0;
  });
}

// Who exits without a goodbye is reported, by its rank.
TEST(ProcessEnd, WithoutGoodbyeIsTold) {
  const ncclUniqueId id = newId();
  SharedValue<std::atomic<int>> done;
  onProcesses(
      3,
      [&](int rank) {
        ncclComm_t comm = nullptr;
        EXPECT_EQ(ncclCommInitRank(&comm, 3, id, rank), ncclSuccess) << lastError();
        expectSum(comm, 3, rank, 100);
        ++*done;
        if (rank == 1) {
          while (*done < 3) ::usleep(100);
          std::exit(kStatus);
        }
        std::vector<float> data(100);
        EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 100, ncclFloat, ncclSum, comm, nullptr),
                  ncclRemoteError);
        EXPECT_NE(lastError().find("rank 1"), std::string::npos) << lastError();
        EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
        return 0;
      },
      [](int rank, int status) { return WEXITSTATUS(status) == (rank == 1 ? kStatus : 0); });
}

// Programs that load the library and let it go: its threads need its code for ever.
TEST(ProcessEnd, LibraryThatIsLetGoStays) {
  EXPECT_EQ(runChild([] {
              beBusy();
              void* const library = ::dlopen("libtopoccl.so.0", RTLD_NOW | RTLD_NOLOAD);
              if (library == nullptr) return 1;
              for (int i = 0; i < 10; ++i) ::dlclose(library);
              std::this_thread::sleep_for(std::chrono::milliseconds(50));
              ncclComm_t own = nullptr;
              return ncclCommInitAll(&own, 1, nullptr) == ncclSuccess ? kStatus : 2;
            }),
            kEnded);
}

}  // namespace
}  // namespace topoccl::test
