#include "api/arguments.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "base/error.h"

namespace topoccl::api {
namespace {

std::string rejection(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::InvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Arguments, MessagesNameArgumentValueAndWhatIsAllowed) {
  EXPECT_EQ(rejection([] { checkPointer(nullptr, "op"); }),
            "op is NULL; it must point to where the result goes");
  EXPECT_EQ(rejection([] { checkInput(nullptr, "scalar"); }),
            "scalar is NULL; it must point to the caller's data");
  EXPECT_EQ(rejection([] { checkRankCount(0); }), "nranks is 0; it must be at least 1");
  EXPECT_NE(rejection([] {
              checkedType(static_cast<ncclDataType_t>(12));
            }).find("datatype is 12; it must be in 0..11"),
            std::string::npos);
  EXPECT_NE(rejection([] { isReadAtEachCall(2); }).find("residence is 2"), std::string::npos);
  EXPECT_EQ(rejection([] { checkBuffer(nullptr, 3, ncclFloat, "sendbuff"); }),
            "sendbuff is NULL although count is 3; only count 0 allows NULL");
  EXPECT_EQ(rejection([] { checkBuffer(std::bit_cast<void*>(UINTPTR_MAX - 7), 3, ncclFloat, "sendbuff"); }),
            "sendbuff is 0xfffffffffffffff8 and count is 3; 12 bytes from there on would end beyond the last "
            "address");
  EXPECT_EQ(rejection([] { checkCount((size_t{1} << 56) + 1, ncclInt8); }),
            "count is 72057594037927937; with 1 byte an element it must be at most 72057594037927936, as no "
            "memory is larger");
}

TEST(Arguments, WhatIsAllowedPasses) {
  EXPECT_EQ(rejection([] { checkRankCount(4); }), "");
  EXPECT_EQ(rejection([] { checkBuffer(nullptr, 0, ncclFloat, "sendbuff"); }), "");
  EXPECT_EQ(rejection([] { checkCount(size_t{1} << 54, ncclFloat); }), "");
  EXPECT_EQ(checkedType(ncclBfloat16), DataType::Bfloat16);
  EXPECT_FALSE(isReadAtEachCall(ncclScalarHostImmediate));
}

}  // namespace
}  // namespace topoccl::api
