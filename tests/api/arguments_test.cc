#include "api/arguments.h"

#include <gtest/gtest.h>

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
  EXPECT_NE(
      rejection([] { checkBuffer(nullptr, 3, "sendbuff"); }).find("sendbuff is NULL although count is 3"),
      std::string::npos);
  EXPECT_NE(rejection([] { checkCount(SIZE_MAX / 4 + 1, ncclFloat); }).find("must be at most"),
            std::string::npos);
}

TEST(Arguments, WhatIsAllowedPasses) {
  EXPECT_EQ(rejection([] { checkRankCount(4); }), "");
  EXPECT_EQ(rejection([] { checkBuffer(nullptr, 0, "sendbuff"); }), "");
  EXPECT_EQ(rejection([] { checkCount(SIZE_MAX / 4, ncclFloat); }), "");
  EXPECT_EQ(checkedType(ncclBfloat16), DataType::Bfloat16);
  EXPECT_FALSE(isReadAtEachCall(ncclScalarHostImmediate));
}

}  // namespace
}  // namespace topoccl::api
