// The process is the program's: no function leaves anything of it changed, whether it succeeds or fails, and
// what the program has set up does not change what functions say.
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <locale>

#include "communicator/functions.h"
#include "communicator/non_blocking.h"
#include "communicator/ranks.h"
#include "communicator/streams.h"
#include "support/child.h"
#include "topoccl.h"

extern char** environ;

namespace topoccl::test {
namespace {

constexpr int kErrno = 4242;

template <class T>
std::string bytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string signals() {
  sigset_t mask;
  sigemptyset(&mask);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  std::string all;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    all += sigismember(&mask, number) == 1 ? 'b' : '-';
    all += bytesOf(action.sa_handler) + bytesOf(action.sa_flags);
  }
  return all;
}

// Rounding and denormals, without the flags of what was computed.
std::string controlRegister() {
#ifdef __x86_64__
  constexpr unsigned kControlBits = 0xffc0;
  return std::to_string(__builtin_ia32_stmxcsr() & kControlBits);
#else
  return "";
#endif
}

std::string environment() {
  std::string all;
  for (char** each = environ; *each != nullptr; ++each) all += std::string(*each) + '\n';
  return all;
}

std::string limits() {
  std::string all;
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_CORE, RLIMIT_STACK, RLIMIT_AS, RLIMIT_MEMLOCK}) {
    rlimit both{};
    ::getrlimit(resource, &both);
    all += bytesOf(both);
  }
  return all;
}

// What a function must leave as it is, by name.
using State = std::vector<std::pair<const char*, std::string>>;

State stateNow() {
  const int error = errno;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof(cores), &cores);
  char name[16] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  std::array<char, 4096> folder{};
  const bool known = ::getcwd(folder.data(), folder.size()) != nullptr;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  struct stat output {};
  ::fstat(STDOUT_FILENO, &output);
  return {{"errno", std::to_string(error)},
          {"allowed cores", bytesOf(cores)},
          {"signals", signals()},
          {"locale", std::setlocale(LC_ALL, nullptr)},
          {"C++ locale", std::locale().name()},
          {"thread's name", name},
          {"current folder", known ? folder.data() : ""},
          {"umask", std::to_string(mask)},
          {"rounding", std::to_string(::fegetround())},
          {"control register", controlRegister()},
          {"environment", environment()},
          {"limits", limits()},
          {"bytes written to standard output", std::to_string(output.st_size)}};
}

// A call, with everything set as a program might have it.
ncclResult_t watched(const char* what, const std::function<ncclResult_t()>& call) {
  errno = kErrno;
  const State before = stateNow();
  errno = kErrno;
  const ncclResult_t result = call();
  const State after = stateNow();
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(before[i].second, after[i].second)
        << what << " (" << result << ") changed: " << before[i].first;
  return result;
}

#define WATCH(call) watched(#call, [&] { return call; })
#define WATCH_SUCCESS(call) EXPECT_EQ(WATCH(call), ncclSuccess)
#define WATCH_FAILURE(call) EXPECT_NE(WATCH(call), ncclSuccess)

// Unusual, and none the default.
void beUnusual() {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int each : {SIGUSR1, SIGTERM, SIGCHLD}) sigaddset(&blocked, each);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  ::signal(SIGPIPE, [](int) {});
  ::signal(SIGBUS, [](int) {});
  ::umask(0137);
  ::fesetround(FE_UPWARD);
  ::pthread_setname_np(::pthread_self(), "program");
}

// Runs `body` in a process whose standard output is a file; nothing may be written there, gtest's messages
// but for.
void inGuestedProcess(const std::function<void()>& body) {
  EXPECT_EQ(runChild([&] {
              FILE* const output = std::tmpfile();
              const int before = ::dup(STDOUT_FILENO);
              ::dup2(::fileno(output), STDOUT_FILENO);
              beUnusual();
              body();
              std::fflush(nullptr);
              ::dup2(before, STDOUT_FILENO);
              std::rewind(output);
              std::array<char, 1024> part{};
              for (size_t count; (count = std::fread(part.data(), 1, part.size(), output)) > 0;)
                std::fwrite(part.data(), 1, count, stdout);
              return testing::Test::HasFailure() ? 1 : 0;
            }),
            "");
}

TEST(Manners, OfFunctionsThatMakeAndEndCommunicators) {
  inGuestedProcess([] {
    ncclComm_t comms[2] = {}, parts[2] = {}, unset = nullptr;
    ncclUniqueId id, ids[2];
    WATCH_SUCCESS(ncclGetUniqueId(&id));
    WATCH_FAILURE(ncclGetUniqueId(nullptr));
    WATCH_SUCCESS(ncclCommInitRank(&comms[0], 1, id, 0));
    WATCH_FAILURE(ncclCommInitRank(&unset, 1, id, 0));  // used
    WATCH_FAILURE(ncclCommInitRank(&unset, 0, id, 0));
    WATCH_SUCCESS(ncclCommAbort(comms[0]));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    WATCH_SUCCESS(ncclGetUniqueId(&ids[0]));
    WATCH_SUCCESS(ncclCommInitRankScalable(&comms[0], 1, 0, 1, ids, &config));
    WATCH_FAILURE(ncclCommInitRankScalable(&unset, 1, 0, 2, ids, &config));
    WATCH_SUCCESS(ncclCommDestroy(comms[0]));
    WATCH_SUCCESS(ncclGetUniqueId(&id));
    WATCH_SUCCESS(ncclCommInitRankConfig(&comms[0], 1, id, 0, &config));
    config.blocking = 77;
    WATCH_FAILURE(ncclCommInitRankConfig(&unset, 1, id, 0, &config));
    WATCH_SUCCESS(ncclCommFinalize(comms[0]));
    WATCH_FAILURE(ncclCommFinalize(comms[0]));
    WATCH_SUCCESS(ncclCommDestroy(comms[0]));
    WATCH_FAILURE(ncclCommDestroy(comms[0]));
    WATCH_FAILURE(ncclCommAbort(comms[0]));
    WATCH_SUCCESS(ncclCommInitAll(comms, 2, nullptr));
    WATCH_FAILURE(ncclCommInitAll(&unset, -1, nullptr));
    WATCH_SUCCESS(ncclGroupStart());
    for (int rank = 0; rank < 2; ++rank)
      WATCH_SUCCESS(ncclCommSplit(comms[rank], 0, 0, &parts[rank], nullptr));
    WATCH_SUCCESS(ncclGroupEnd());
    WATCH_FAILURE(ncclGroupEnd());
    WATCH_FAILURE(ncclCommSplit(nullptr, 0, 0, &unset, nullptr));
    for (ncclComm_t comm : parts) WATCH_SUCCESS(ncclCommDestroy(comm));
    for (ncclComm_t comm : comms) WATCH_SUCCESS(ncclCommDestroy(comm));
  });
}

// With itself alone: a send and a receive need each other.
void callAsOnlyRank(const Function& function, const Arguments& arguments) {
  const std::string name = function.name;
  const auto call = [&] { return watched(function.name, [&] { return function.call(arguments); }); };
  WATCH_SUCCESS(ncclGroupStart());
  EXPECT_EQ(call(), ncclSuccess) << lastError();
  if (name == "ncclSend") {
    EXPECT_EQ(ncclRecv(arguments.receive, arguments.count, ncclFloat, 0, arguments.comm, arguments.stream),
              ncclSuccess);
  }
  if (name == "ncclRecv") {
    EXPECT_EQ(ncclSend(arguments.send, arguments.count, ncclFloat, 0, arguments.comm, arguments.stream),
              ncclSuccess);
  }
  WATCH_SUCCESS(ncclGroupEnd());
  if (name != "ncclSend" && name != "ncclRecv") {
    EXPECT_EQ(call(), ncclSuccess) << lastError();
  }
}

TEST(Manners, OfFunctionsThatMoveData) {
  inGuestedProcess([] {
    const Comms alone(1);
    cudaStream_t stream = nullptr;
    WATCH_SUCCESS(topocclStreamCreate(&stream));
    WATCH_FAILURE(topocclStreamCreate(nullptr));
    std::vector<float> in(20'000, 1), out(20'000);
    for (const Function& function : kFunctions) {
      Arguments arguments{in.data(), out.data(), in.size(), ncclFloat, ncclSum, 0, alone[0], nullptr};
      callAsOnlyRank(function, arguments);
      arguments.stream = stream;
      callAsOnlyRank(function, arguments);
      WATCH_SUCCESS(topocclStreamSynchronize(stream));
      arguments.comm = nullptr;
      EXPECT_EQ(watched(function.name, [&] { return function.call(arguments); }), ncclInvalidArgument);
    }
    WATCH_SUCCESS(topocclStreamQuery(stream));
    WATCH_SUCCESS(topocclStreamDestroy(stream));
    WATCH_FAILURE(topocclStreamSynchronize(stream));
    WATCH_FAILURE(topocclStreamQuery(stream));
    WATCH_FAILURE(topocclStreamDestroy(stream));
  });
}

// Many times, so that it waits in all ways.
TEST(Manners, OfCallsThatWaitForOthers) {
  inGuestedProcess([] {
    const Comms comms(2);
    std::vector<float> data(10'000, 1), other(10'000, 1);
    const auto call = [&](int rank) {
      std::vector<float>& mine = rank == 0 ? data : other;
      return ncclAllReduce(mine.data(), mine.data(), mine.size(), ncclFloat, ncclMax, comms[rank], nullptr);
    };
    std::thread peer([&] {
      for (int i = 0; i < 20; ++i) {
        if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
        EXPECT_EQ(call(1), ncclSuccess);
      }
    });
    for (int i = 0; i < 20; ++i) WATCH_SUCCESS(call(0));
    peer.join();
    WATCH_SUCCESS(ncclGroupStart());
    for (int rank = 0; rank < 2; ++rank) WATCH_SUCCESS(call(rank));
    WATCH_SUCCESS(ncclGroupEnd());
  });
}

TEST(Manners, OfQueriesAndSmallThings) {
  inGuestedProcess([] {
    const Comms comms(1);
    int number = 0;
    ncclResult_t error = ncclSuccess;
    WATCH_SUCCESS(ncclGetVersion(&number));
    WATCH_FAILURE(ncclGetVersion(nullptr));
    WATCH_SUCCESS((ncclGetErrorString(ncclSystemError), topocclGetVersionString(), ncclSuccess));
    WATCH_SUCCESS((ncclGetLastError(comms[0]), ncclSuccess));
    WATCH_SUCCESS(ncclCommCount(comms[0], &number));
    WATCH_FAILURE(ncclCommCount(comms[0], nullptr));
    WATCH_SUCCESS(ncclCommUserRank(comms[0], &number));
    WATCH_FAILURE(ncclCommUserRank(nullptr, &number));
    WATCH_SUCCESS(ncclCommCuDevice(comms[0], &number));
    WATCH_FAILURE(ncclCommCuDevice(nullptr, &number));
    WATCH_SUCCESS(ncclCommGetAsyncError(comms[0], &error));
    WATCH_FAILURE(ncclCommGetAsyncError(nullptr, &error));
    float scalar = 2;
    ncclRedOp_t op = ncclSum;
    WATCH_SUCCESS(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate, comms[0]));
    WATCH_FAILURE(ncclRedOpCreatePreMulSum(nullptr, &scalar, ncclFloat, ncclScalarHostImmediate, comms[0]));
    WATCH_SUCCESS(ncclRedOpDestroy(op, comms[0]));
    WATCH_FAILURE(ncclRedOpDestroy(op, comms[0]));
    void* memory = nullptr;
    void* handle = nullptr;
    WATCH_SUCCESS(ncclMemAlloc(&memory, 1 << 20));
    WATCH_FAILURE(ncclMemAlloc(&handle, SIZE_MAX / 2));
    WATCH_SUCCESS(ncclCommRegister(comms[0], memory, 100, &handle));
    WATCH_FAILURE(ncclCommRegister(comms[0], nullptr, 100, &handle));
    WATCH_SUCCESS(ncclCommDeregister(comms[0], handle));
    WATCH_FAILURE(ncclCommDeregister(comms[0], handle));
    WATCH_SUCCESS(ncclMemFree(memory));
    WATCH_FAILURE(ncclMemFree(&number));
    topocclDevice_t devices[2];
    topocclPlan_t plan;
    WATCH_SUCCESS(topocclGetDevices(devices, 2, &number));
    WATCH_FAILURE(topocclGetDevices(nullptr, 2, &number));
    WATCH_SUCCESS(topocclCommExplain(comms[0], "all_reduce", 100, ncclFloat, &plan));
    WATCH_FAILURE(topocclCommExplain(comms[0], "nothing", 100, ncclFloat, &plan));
    WATCH_SUCCESS(topocclBarrier(comms[0], nullptr));
    WATCH_FAILURE(topocclBarrier(nullptr, nullptr));
    const size_t one[] = {1}, none[] = {0};
    float out = 0;
    WATCH_SUCCESS(topocclAllToAllV(&scalar, one, none, &out, one, none, ncclFloat, comms[0], nullptr));
    WATCH_FAILURE(topocclAllToAllV(&scalar, nullptr, none, &out, one, none, ncclFloat, comms[0], nullptr));
  });
}

// Ends of waits: failures that another rank causes, and what is done without blocking.
TEST(Manners, OfCallsThatFailLater) {
  inGuestedProcess([] {
    const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "0.1"}, {"TOPOCCL_COLLECTIVE_TIMEOUT", "0.1"}};
    ncclComm_t comms[2] = {}, pending = nullptr;
    ncclUniqueId id;
    WATCH_SUCCESS(ncclGetUniqueId(&id));
    WATCH_FAILURE(ncclCommInitRank(&pending, 2, id, 0));
    ncclConfig_t config = nonBlocking();
    WATCH_SUCCESS(ncclGetUniqueId(&id));
    EXPECT_EQ(WATCH(ncclCommInitRankConfig(&pending, 2, id, 0, &config)), ncclInProgress);
    EXPECT_EQ(awaitState(pending), ncclRemoteError) << lastError();
    WATCH_SUCCESS(ncclCommAbort(pending));
    ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess) << lastError();
    float x = 1;
    WATCH_FAILURE(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comms[0], nullptr));
    for (ncclComm_t comm : comms) WATCH_SUCCESS(ncclCommAbort(comm));
  });
}

// ---- numbers ----

class CommaNumbers : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// A C locale with decimal commas, made where the system has none; false if it can't be.
bool useCommaLocale() {
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
    if (std::setlocale(LC_ALL, name) != nullptr) return true;
  char folder[] = "/tmp/topoccl-locale-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return false;
  const std::string make = "localedef -i de_DE -f UTF-8 " + std::string(folder) + "/de_DE.UTF-8 2>/dev/null";
  const bool made = std::system(make.c_str()) == 0;
  ::setenv("LOCPATH", folder, 1);
  const bool used = made && std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  static_cast<void>(std::system(("rm -rf " + std::string(folder)).c_str()));
  return used;
}

void expectNumbersAsEver() {
  const Environment environment{{"TOPOCCL_INIT_TIMEOUT", "0.25"}, {"NCCL_BUFFSIZE", "4194304"}};
  const ncclUniqueId id = newId();
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclRemoteError);
  EXPECT_NE(lastError().find("did not join within 0."), std::string::npos) << lastError();
  const Comms comms(2);
  topocclPlan_t plan;
  EXPECT_EQ(topocclCommExplain(comms[0], "all_reduce", 1 << 24, ncclFloat, &plan), ncclSuccess)
      << lastError();
  EXPECT_EQ(ncclAllReduce(&comm, &comm, SIZE_MAX, ncclFloat, ncclSum, comms[0], nullptr),
            ncclInvalidArgument);
  EXPECT_NE(lastError().find("18446744073709551615"), std::string::npos) << lastError();
  const Environment bad{{"TOPOCCL_INIT_TIMEOUT", "0,25"}};
  EXPECT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclInvalidArgument);
}

TEST(Numbers, DoNotDependOnTheProgramsCppLocale) {
  EXPECT_EQ(runChild([] {
              std::locale::global(std::locale(std::locale::classic(), new CommaNumbers));
              expectNumbersAsEver();
              const ncclUniqueId id = newId();
              onProcesses(2, [&](int rank) {
                const Comm comm(id, 2, rank);
                expectSum(comm, 2, rank, 100'000);
                return 0;
              });
              return testing::Test::HasFailure() ? 1 : 0;
            }),
            "");
}

TEST(Numbers, DoNotDependOnTheProgramsLocale) {
  const std::string ended = runChild([] {
    if (!useCommaLocale()) return 77;
    EXPECT_STREQ(std::localeconv()->decimal_point, ",");
    expectNumbersAsEver();
    return testing::Test::HasFailure() ? 1 : 0;
  });
  if (ended == "exit 77") GTEST_SKIP() << "no locale with decimal commas, nor localedef to make one";
  EXPECT_EQ(ended, "");
}

}  // namespace
}  // namespace topoccl::test
