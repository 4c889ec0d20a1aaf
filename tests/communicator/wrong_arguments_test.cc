// Wrong arguments of every function that moves data: a result code, a text that says which argument, its
// value and what is allowed, and nothing done; alone and in groups.

#include <bit>
#include <cstring>
#include <functional>
#include <sstream>

#include "communicator/functions.h"
#include "communicator/ranks.h"
#include "communicator/streams.h"
#include "topoccl.h"

namespace topoccl::test {
namespace {

constexpr size_t kCount = 10;
constexpr uint32_t kUnwritten = 0xa5a5a5a5;

struct Fault {
  Arguments arguments;
  std::string text;     // with which the last error goes on after "FUNCTION: "
  std::string allowed;  // in what follows
};

// Every way to spoil one argument of a good call on a communicator of two ranks.
std::vector<Fault> faultsOf(const Function& function, const Arguments& good) {
  std::vector<Fault> faults;
  const auto add = [&](const std::string& text, const std::string& allowed, const auto& spoil) {
    faults.push_back({good, text, allowed});
    spoil(faults.back().arguments);
  };
  add("comm is NULL", "", [](Arguments& a) { a.comm = nullptr; });
  const std::string null = " is NULL although count is 10; ", onlyNothing = "only count 0 allows NULL";
  if (function.send != nullptr)
    add(function.send + null, onlyNothing, [](Arguments& a) { a.send = nullptr; });
  if (function.receive != nullptr)
    add(function.receive + null, onlyNothing, [](Arguments& a) { a.receive = nullptr; });
  for (const int type : {-1, 12, 1000})
    add("datatype is " + std::to_string(type) + "; ", "it must be in 0..11 (ncclDataType_t)",
        [&](Arguments& a) { a.type = outOfRange<ncclDataType_t>(type); });
  for (const int op : {-1, 5, 1 << 30})
    if (function.reduces)
      add("op is " + std::to_string(op) + "; ", "it must be",
          [&](Arguments& a) { a.op = outOfRange<ncclRedOp_t>(op); });
  for (const int root : {-1, 2, 1 << 30})
    if (function.root != nullptr)
      add(function.root + (" is " + std::to_string(root)) + "; ", "it must be in 0..1",
          [&](Arguments& a) { a.root = root; });
  const size_t most = (size_t{1} << 56) / (function.blocksPerRank ? 8 : 4);  // no memory is larger
  for (const size_t count : {most + 1, size_t{1} << 60, size_t{1} << 62, SIZE_MAX})
    add("count is " + std::to_string(count) + "; ", "it must be at most " + std::to_string(most),
        [&](Arguments& a) { a.count = count; });
  void* const end = std::bit_cast<void*>(UINTPTR_MAX - 7);
  const std::string atEnd = " is 0xfffffffffffffff8 and count is 10; ";
  const std::string beyond = " bytes from there on would end beyond the last address";
  if (function.send != nullptr) add(function.send + atEnd, beyond, [&](Arguments& a) { a.send = end; });
  if (function.receive != nullptr)
    add(function.receive + atEnd, beyond, [&](Arguments& a) { a.receive = end; });
  add("stream is ", "it must be NULL",
      [](Arguments& a) { a.stream = reinterpret_cast<cudaStream_t>(a.receive); });
  return faults;
}

class WrongArguments : public testing::TestWithParam<Function> {
 protected:
  void SetUp() override {
    ASSERT_EQ(ncclCommInitAll(comms_, 2, nullptr), ncclSuccess) << lastError();
    good_.send = in_.data();
    good_.receive = out_.data();
    good_.count = kCount;
    good_.comm = comms_[0];
  }
  void TearDown() override {
    for (ncclComm_t comm : comms_) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
  }

  // `group`: the function that reports what the call did.
  static void expectText(const std::string& group, const std::string& text, const std::string& allowed) {
    const std::string begin = group + GetParam().name + ": " + text;
    EXPECT_EQ(lastError().rfind(begin, 0), 0U) << lastError() << "\nought to begin: " << begin;
    EXPECT_NE(lastError().find(allowed), std::string::npos) << lastError() << "\nlacks: " << allowed;
    EXPECT_EQ(lastError().find(GetParam().name, begin.size()), std::string::npos) << "twice: " << lastError();
  }
  void expectUntouched() const {
    EXPECT_EQ(in_, Words(kWords, 5));
    EXPECT_EQ(out_, Words(kWords, kUnwritten));
  }
  // Of both ranks, together.
  ncclResult_t sum(const uint32_t* in, uint32_t* out) const {
    for (ncclComm_t comm : comms_)
      EXPECT_EQ(ncclAllReduce(in, out++, 1, ncclUint32, ncclSum, comm, nullptr), ncclSuccess) << lastError();
    return ncclSuccess;
  }

  static constexpr size_t kWords = 4 * kCount;

  const Environment environment_{{"TOPOCCL_COLLECTIVE_TIMEOUT", "5"}};  // a call that runs has no partner
  ncclComm_t comms_[2] = {};
  Words in_ = Words(kWords, 5), out_ = Words(kWords, kUnwritten);
  Arguments good_;
};

INSTANTIATE_TEST_SUITE_P(Of, WrongArguments, testing::ValuesIn(kFunctions),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(WrongArguments, AreNamedAndNothingIsDone) {
  for (const Fault& fault : faultsOf(GetParam(), good_)) {
    EXPECT_EQ(GetParam().call(fault.arguments), ncclInvalidArgument) << fault.text;
    expectText("", fault.text, fault.allowed);
    expectUntouched();
  }
}

TEST_P(WrongArguments, MakeTheirGroupFailAndNothingOfItRuns) {
  const uint32_t one = 1;
  uint32_t before[2] = {}, after[2] = {};
  for (const Fault& fault : faultsOf(GetParam(), good_)) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    sum(&one, before);
    EXPECT_EQ(GetParam().call(fault.arguments), ncclInvalidArgument) << fault.text;
    sum(&one, after);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument) << fault.text;
    expectText("ncclGroupEnd: ", fault.text, fault.allowed);
    EXPECT_EQ(before[0] + before[1] + after[0] + after[1], 0U) << fault.text;
    expectUntouched();
  }
  // The next group knows nothing of it.
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  sum(&one, before);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
  EXPECT_EQ(before[0] + before[1], 4U);
}

// In place is only where a rank's own block is the same memory in both buffers.
TEST_P(WrongArguments, BuffersThatOverlapAreRefused) {
  const Function& function = GetParam();
  if (function.send == nullptr || function.receive == nullptr) return;
  Arguments overlapping = good_;
  for (const size_t shift : {size_t{1}, kCount - 1}) {
    overlapping.send = out_.data() + shift;
    EXPECT_EQ(function.call(overlapping), ncclInvalidArgument) << shift;
    expectText("", "sendbuff 0x", "bytes) overlap; count is 10; ");
    expectUntouched();
  }
}

// Everything else that takes a communicator.
using Take = std::function<ncclResult_t(ncclComm_t)>;
std::vector<std::pair<std::string, Take>> otherFunctions() {
  static int number = 0;
  static void* handle = nullptr;
  static ncclRedOp_t op = ncclSum;
  static ncclResult_t error = ncclSuccess;
  static ncclComm_t part = nullptr;
  static topocclPlan_t plan;
  static constexpr size_t kNone[] = {0, 0};
  return {
      {"ncclCommCount", [](ncclComm_t c) { return ncclCommCount(c, &number); }},
      {"ncclCommUserRank", [](ncclComm_t c) { return ncclCommUserRank(c, &number); }},
      {"ncclCommCuDevice", [](ncclComm_t c) { return ncclCommCuDevice(c, &number); }},
      {"ncclCommGetAsyncError", [](ncclComm_t c) { return ncclCommGetAsyncError(c, &error); }},
      {"ncclCommFinalize", [](ncclComm_t c) { return ncclCommFinalize(c); }},
      {"ncclCommDestroy", [](ncclComm_t c) { return ncclCommDestroy(c); }},
      {"ncclCommAbort", [](ncclComm_t c) { return ncclCommAbort(c); }},
      {"ncclCommSplit", [](ncclComm_t c) { return ncclCommSplit(c, 0, 0, &part, nullptr); }},
      {"ncclCommShrink",
       [](ncclComm_t c) { return ncclCommShrink(c, &number, 1, &part, nullptr, NCCL_SHRINK_DEFAULT); }},
      {"ncclCommRegister", [](ncclComm_t c) { return ncclCommRegister(c, &number, 4, &handle); }},
      {"ncclCommDeregister", [](ncclComm_t c) { return ncclCommDeregister(c, handle); }},
      {"ncclRedOpCreatePreMulSum",
       [](ncclComm_t c) {
         return ncclRedOpCreatePreMulSum(&op, &number, ncclInt32, ncclScalarHostImmediate, c);
       }},
      {"ncclRedOpDestroy", [](ncclComm_t c) { return ncclRedOpDestroy(op, c); }},
      {"topocclCommExplain",
       [](ncclComm_t c) { return topocclCommExplain(c, "all_reduce", 1, ncclFloat, &plan); }},
      {"topocclBarrier", [](ncclComm_t c) { return topocclBarrier(c, nullptr); }},
      {"topocclAllToAllV",
       [](ncclComm_t c) {
         return topocclAllToAllV(nullptr, kNone, kNone, nullptr, kNone, kNone, ncclFloat, c, nullptr);
       }},
  };
}

TEST(Handles, ThatAreNoCommunicatorsAreSaidToBeNone) {
  auto functions = otherFunctions();
  for (const Function& function : kFunctions)
    functions.emplace_back(function.name, [&function](ncclComm_t comm) {
      Arguments arguments;
      arguments.comm = comm;
      return function.call(arguments);
    });
  const Stream stream;
  alignas(64) unsigned char zeros[64] = {}, ones[64], fours[64];
  std::memset(ones, 0xff, sizeof ones);
  std::memset(fours, 0x40, sizeof fours);
  const void* const wrongs[] = {
      zeros, ones, fours, fours + 1, static_cast<cudaStream_t>(stream), std::bit_cast<void*>(uintptr_t{1})};
  for (const void* wrong : wrongs)
    for (const auto& [name, call] : functions) {
      EXPECT_EQ(call(static_cast<ncclComm_t>(const_cast<void*>(wrong))), ncclInvalidArgument) << name;
      std::stringstream text;
      text << name << ": comm is " << wrong << ", which is not a communicator of this library";
      EXPECT_EQ(lastError(), text.str());
    }
}

TEST(Operators, ThatCannotBeDestroyedAreSaidWhy) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess) << lastError();
  const char* const names[] = {"sum", "prod", "max", "min", "avg"};
  for (int op = 0; op < 5; ++op) {
    EXPECT_EQ(ncclRedOpDestroy(outOfRange<ncclRedOp_t>(op), comm), ncclInvalidArgument);
    EXPECT_EQ(lastError(), "ncclRedOpDestroy: op is " + std::to_string(op) + ", which is built in (" +
                               names[op] +
                               ") and can't be destroyed; it must be of ncclRedOpCreatePreMulSum");
  }
  ncclRedOp_t own = ncclSum;
  uint32_t two = 2;
  ASSERT_EQ(ncclRedOpCreatePreMulSum(&own, &two, ncclUint32, ncclScalarHostImmediate, comm), ncclSuccess);
  ASSERT_EQ(ncclRedOpDestroy(own, comm), ncclSuccess);
  for (const int op : {-1, static_cast<int>(own), 1 << 30}) {
    EXPECT_EQ(ncclRedOpDestroy(outOfRange<ncclRedOp_t>(op), comm), ncclInvalidArgument);
    EXPECT_EQ(lastError(),
              "ncclRedOpDestroy: op is " + std::to_string(op) +
                  "; it must be of ncclRedOpCreatePreMulSum on this communicator and not destroyed");
  }
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Counts, OfOneAreSingular) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess) << lastError();
  EXPECT_EQ(ncclAllReduce(&comm, &comm, SIZE_MAX, ncclInt8, ncclSum, comm, nullptr), ncclInvalidArgument);
  EXPECT_NE(lastError().find("; for 1 rank and 1 byte an element it must be at most 72057594037927936, as"),
            std::string::npos)
      << lastError();
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Groups, ThatWereNotBegunCannotEnd) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(lastError(), "ncclGroupEnd: this thread has no group open: ncclGroupStart comes first");
}

}  // namespace
}  // namespace topoccl::test
