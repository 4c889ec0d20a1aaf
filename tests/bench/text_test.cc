// Sizes and numbers as text.
#include <gtest/gtest.h>

#include "common/number_text.h"
#include "common/size_text.h"
#include "common/statistics.h"

namespace topoccl::bench {
namespace {

TEST(SizeText, LettersAreBinaryUnitsInEitherCase) {
  EXPECT_EQ(parseSize("8"), 8U);
  EXPECT_EQ(parseSize("8K"), 8192U);
  EXPECT_EQ(parseSize("8k"), 8192U);
  EXPECT_EQ(parseSize("128M"), 128U << 20);
  EXPECT_EQ(parseSize("2g"), uint64_t{2} << 30);
}

TEST(SizeText, FractionsAndTrailingLettersCount) {
  EXPECT_EQ(parseSize("1.5K"), 1536U);
  EXPECT_EQ(parseSize("8KB"), 8192U);
  EXPECT_EQ(parseSize("0.5"), 0U);
  EXPECT_EQ(parseSize("0"), 0U);
}

TEST(SizeText, OtherTextIsNoSize) {
  for (const char* text : {"", "K", "8X", "-8", "1e30", "nan", "inf"}) EXPECT_FALSE(parseSize(text)) << text;
}

TEST(NumberText, KeepsTheWidthWithAsManyDecimalsAsFit) {
  EXPECT_EQ(fitNumber(0, 7), "   0.00");
  EXPECT_EQ(fitNumber(1234.567, 7), "1234.57");
  EXPECT_EQ(fitNumber(12345.67, 7), "12345.7");
  EXPECT_EQ(fitNumber(9999.999, 7), "10000.0");
  EXPECT_EQ(fitNumber(1234567.8, 7), "1234568");
  EXPECT_EQ(fitNumber(12345678, 7), "1.2e+07");
  EXPECT_EQ(fitNumber(123.456, 6), "123.46");
  EXPECT_EQ(fitNumber(12345678, 6), " 1e+07");
}

TEST(Statistics, PercentilesAreSamples) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; i--) samples.push_back(i);
  const Statistics s = summarize(samples);
  EXPECT_EQ(s.minimum, 1);
  EXPECT_EQ(s.maximum, 100);
  EXPECT_EQ(s.average, 50.5);
  EXPECT_EQ(s.p50, 51);
  EXPECT_EQ(s.p95, 95);
  EXPECT_EQ(s.p99, 99);
  EXPECT_NEAR(s.deviation, 28.866, 1e-3);
  EXPECT_NEAR(s.variationPercent, 57.16, 1e-2);
}

TEST(Statistics, OfOneSampleAreThatSample) {
  const Statistics s = summarize({3});
  EXPECT_EQ(s.p99, 3);
  EXPECT_EQ(s.p50, 3);
  EXPECT_EQ(s.deviation, 0);
  EXPECT_EQ(summarize({}).maximum, 0);
}

}  // namespace
}  // namespace topoccl::bench
