// Wrong arguments of every function that moves data: a result code, a text that says which argument, its
// value and what is allowed, and nothing done; alone and in groups.

#include "communicator/functions.h"
#include "communicator/ranks.h"

namespace topoccl::test {
namespace {

constexpr size_t kCount = 10;
constexpr uint32_t kUnwritten = 0xa5a5a5a5;

std::string lastError() {
  return ncclGetLastError(nullptr);
}

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
  const size_t most = SIZE_MAX / (function.blocksPerRank ? 8 : 4);
  for (const size_t count : {most + 1, SIZE_MAX})
    add("count is " + std::to_string(count) + "; ", "it must be at most " + std::to_string(most),
        [&](Arguments& a) { a.count = count; });
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

  using Words = std::vector<uint32_t>;
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
    expectText("", "sendbuff 0x", "overlap");
    expectUntouched();
  }
}

}  // namespace
}  // namespace topoccl::test
