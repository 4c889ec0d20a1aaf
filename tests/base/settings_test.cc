#include "base/settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>

#include "base/error.h"

namespace topoccl {
namespace {

Settings settingsFrom(const std::map<std::string, std::string>& values) {
  return readSettings([&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

TEST(Settings, HaveTheDefaultsTheirRowsPrint) {
  const Settings settings = settingsFrom({});
  for (const SettingRow& row : settingRows()) EXPECT_EQ(printValue(settings, row), row.standard) << row.name;
}

TEST(Settings, AreReadFromTheEnvironment) {
  const Settings settings = settingsFrom({{"NCCL_ALGO", "ring"},
                                          {"NCCL_BUFFSIZE", "0x1000"},
                                          {"TOPOCCL_DEVICE", "cpu"},
                                          {"TOPOCCL_INIT_TIMEOUT", "0.25"},
                                          {"TOPOCCL_SPIN", "-1"},
                                          {"TOPOCCL_REFERENCES", "0"},
                                          {"TOPOCCL_SLOTS", ""}});
  EXPECT_EQ(settings.algorithms, "ring");
  EXPECT_EQ(settings.bufferBytes, 4096);
  EXPECT_EQ(settings.device, DeviceChoice::Cpu);
  EXPECT_EQ(settings.initTimeout, std::chrono::milliseconds(250));
  EXPECT_EQ(settings.spin, -1);
  EXPECT_FALSE(settings.references);
  EXPECT_EQ(settings.slots, 0);
}

TEST(Settings, ThatAreSetAreListedWithoutSecretsOnALineEach) {
  const std::map<std::string, std::string> values = {{"NCCL_ALGO", "ring"},
                                                     {"NCCL_PROTO", ""},
                                                     {"TOPOCCL_SECRET", "hush"},
                                                     {"TOPOCCL_RANGE_TABLE", "one\ntwo"},
                                                     {"TOPOCCL_INIT_TIMEOUT", "wrong"}};
  const auto lines = settingsSet([&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
  EXPECT_EQ(lines, (std::vector<std::string>{"NCCL_ALGO set by environment to ring.",
                                             "TOPOCCL_SECRET set by environment to (hidden).",
                                             "TOPOCCL_INIT_TIMEOUT set by environment to wrong.",
                                             "TOPOCCL_RANGE_TABLE set by environment to one two."}));
}

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

class BadSetting : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadSetting, NamesVariableValueAndWhatIsAllowed) {
  const auto [name, value] = GetParam();
  try {
    settingsFrom({{name, value}});
    FAIL() << name << "=" << value << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::InvalidArgument);
    const std::string text = error.what();
    EXPECT_NE(text.find(std::string(name) + "=" + value), std::string::npos) << text;
    EXPECT_NE(text.find("allowed: "), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSetting,
    testing::Values(std::pair{"NCCL_DEBUG", "LOUD"}, std::pair{"NCCL_BUFFSIZE", "4M"},
                    std::pair{"NCCL_BUFFSIZE", "0"}, std::pair{"NCCL_BUFFSIZE", "99999999999999999999"},
                    std::pair{"TOPOCCL_DEVICE", "gpu"}, std::pair{"TOPOCCL_INIT_TIMEOUT", "soon"},
                    std::pair{"TOPOCCL_INIT_TIMEOUT", "0"}, std::pair{"TOPOCCL_INIT_TIMEOUT", "nan"},
                    std::pair{"TOPOCCL_COLLECTIVE_TIMEOUT", "-1"}, std::pair{"TOPOCCL_REFERENCES", "yes"},
                    std::pair{"TOPOCCL_SPIN", "-2"}, std::pair{"TOPOCCL_SLOTS", "1 "},
                    std::pair{"TOPOCCL_CHANNELS", "65"}, std::pair{"TOPOCCL_SLOT_BYTES", "1099511627776"},
                    std::pair{"TOPOCCL_INIT_TIMEOUT", "0.0004"}));

// "LOW to HIGH" of a row's text, with its unit and powers of two.
std::optional<std::pair<double, double>> rangeIn(const std::string& allowed) {
  double low = 0, high = 0;
  int power = 0, read = 0;
  if (std::sscanf(allowed.c_str(), "%lf to 2^%d%n", &low, &power, &read) == 2)
    return std::pair{low, std::ldexp(1, power)};
  if (std::sscanf(allowed.c_str(), "%lf to %lf", &low, &high) == 2) return std::pair{low, high};
  return std::nullopt;
}

TEST(Settings, NumbersAreAllowedAsFarAsTheirRowsSayAndNoFurther) {
  const auto isAllowed = [](const char* name, const std::string& value) {
    try {
      settingsFrom({{name, value}});
      return true;
    } catch (const Error& error) {
      return false;
    }
  };
  int rows = 0;
  for (const SettingRow& row : settingRows()) {
    const bool isTime = std::holds_alternative<std::chrono::milliseconds Settings::*>(row.field);
    const auto range = rangeIn(row.allowed);
    EXPECT_EQ(range.has_value(), isTime || std::holds_alternative<int64_t Settings::*>(row.field))
        << row.name;
    if (!range) continue;
    ++rows;
    const double unit = isTime ? 0.001 : 1;
    for (const double value : {range->first, range->second})
      EXPECT_TRUE(isAllowed(row.name, number(value))) << row.name << '=' << number(value);
    for (const double value : {range->first - unit, range->second + unit})
      EXPECT_FALSE(isAllowed(row.name, number(value))) << row.name << '=' << number(value);
  }
  EXPECT_GE(rows, 8);
}

TEST(Settings, AShortTimeIsNotNone) {
  EXPECT_EQ(settingsFrom({{"TOPOCCL_COLLECTIVE_TIMEOUT", "0.0001"}}).collectiveTimeout,
            std::chrono::milliseconds(1));
  EXPECT_EQ(settingsFrom({{"TOPOCCL_REPORT_AFTER", "0"}}).reportAfter, std::chrono::milliseconds(0));
}

TEST(Settings, OfSlotsFitTogether) {
  const auto refusal = [](const char* slots, const char* bytes) -> std::string {
    try {
      settingsFrom({{"TOPOCCL_SLOTS", slots}, {"TOPOCCL_SLOT_BYTES", bytes}});
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::InvalidArgument);
      return error.what();
    }
  };
  for (const auto& [slots, bytes] : {std::pair{"0", "1048576"}, std::pair{"4", "1048576"},
                                     std::pair{"1024", "4096"}, std::pair{"1024", "0"}})
    EXPECT_EQ(refusal(slots, bytes), "");
  for (const auto& [slots, bytes] : {std::pair{"5", "1048576"}, std::pair{"1024", "4097"}}) {
    const std::string text = refusal(slots, bytes);
    EXPECT_NE(text.find(concat("TOPOCCL_SLOTS=", slots)), std::string::npos) << text;
    EXPECT_NE(text.find(concat("TOPOCCL_SLOT_BYTES=", bytes)), std::string::npos) << text;
    EXPECT_NE(text.find("allowed: "), std::string::npos) << text;
  }
  EXPECT_NE(refusal("5", "1048576").find("here 0 to 4"), std::string::npos) << refusal("5", "1048576");
}

TEST(Settings, HashOnlyWhatMustAgree) {
  const std::string plain = agreedText(settingsFrom({}));
  EXPECT_EQ(plain, agreedText(settingsFrom({{"NCCL_SOCKET_IFNAME", "eth"}, {"NCCL_HOSTID", "x"}})));
  EXPECT_EQ(plain, agreedText(settingsFrom({{"NCCL_BUFFSIZE", "0x400000"}})));
  EXPECT_NE(plain, agreedText(settingsFrom({{"NCCL_BUFFSIZE", "4096"}})));
  EXPECT_NE(plain, agreedText(settingsFrom({{"NCCL_ALGO", "ring"}})));
}

TEST(Settings, NeverPrintTheSecret) {
  const Settings settings = settingsFrom({{"TOPOCCL_SECRET", "hush"}});
  EXPECT_EQ(settings.secret, "hush");
  for (const SettingRow& row : settingRows())
    EXPECT_EQ(printValue(settings, row).find("hush"), std::string::npos);
}

TEST(Settings, AreDocumentedRowByRow) {
  std::ifstream file(TOPOCCL_DOCS "/base.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(page.find(describeSettings()), std::string::npos) << "docs/base.md must contain this table:\n"
                                                              << describeSettings();
}

}  // namespace
}  // namespace topoccl
