#include "device/local_devices.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <sstream>
#include <thread>

namespace topoccl {
namespace {

std::string nameIn(const std::string& text) {
  std::istringstream stream(text);
  return processorName(stream);
}

TEST(LocalDevices, NameComesFromTheProcessorsOwnWords) {
  EXPECT_EQ(nameIn("processor\t: 0\nmodel name\t: Fine CPU @ 2 GHz\nmodel name\t: other\n"),
            "Fine CPU @ 2 GHz");
  EXPECT_EQ(nameIn("cpu model\t\t: MIPS 24K\n"), "MIPS 24K");
  EXPECT_EQ(nameIn("processor : 0\nmodel name :\n: x\n"), "CPU");
  EXPECT_EQ(nameIn(""), "CPU");
}

TEST(LocalDevices, AreTheCoresOfTheAffinityMask) {
  std::thread([] {
    const std::vector<LocalDevice> all = localDevices();
    ASSERT_FALSE(all.empty());
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto& a, auto& b) { return a.core < b.core; }));
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(all.back().core), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const std::vector<LocalDevice> pinned = localDevices();
    ASSERT_EQ(pinned.size(), 1U);
    EXPECT_EQ(localDeviceCount(), 1);
    EXPECT_EQ(pinned[0].core, all.back().core);
  }).join();
}

}  // namespace
}  // namespace topoccl
