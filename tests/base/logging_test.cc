#include "base/logging.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <regex.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/host_identity.h"

namespace topoccl {
namespace {

// What a logger with these options writes to its file.
template <class F>
std::string written(const std::string& debug, const std::string& subsystems, F use) {
  const std::string pattern = concat(testing::TempDir(), "/topoccl-log-%h-%p");
  const std::string path = expandLogFile(pattern);
  {
    const Logger logger(parseLogOptions(debug, subsystems, pattern));
    use(logger);
  }
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ::unlink(path.c_str());
  return text;
}

// By POSIX extended regular expressions.
bool matches(const std::string& text, const std::string& pattern) {
  regex_t compiled;
  EXPECT_EQ(::regcomp(&compiled, ("^" + pattern + "$").c_str(), REG_EXTENDED | REG_NOSUB), 0);
  const bool found = ::regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  ::regfree(&compiled);
  return found;
}

void writeIfOn(const Logger& logger, LogPoint point, Subsystem subsystem, const std::string& text) {
  if (logger.on(point.level, subsystem)) logger.write(point, text);
}

TEST(Logging, IsOffUnlessAskedFor) {
  const Logger logger(parseLogOptions("", "", ""));
  for (const Level level : {Level::Version, Level::Warn, Level::Info, Level::Trace})
    EXPECT_FALSE(logger.on(level, Subsystem::Init));
}

TEST(Logging, WritesInfoAsNcclDoes) {
  const std::string text = written("info", "", [](const Logger& logger) {
    writeIfOn(logger, Level::Info, Subsystem::Init, "hello");
    writeIfOn(logger, Level::Info, Subsystem::Net, "not selected");
    writeIfOn(logger, Level::Trace, Subsystem::Init, "too deep");
  });
  EXPECT_TRUE(matches(text, "[^:. ]+:[0-9]+:[0-9]+ \\[-1\\] NCCL INFO hello\n")) << text;
}

TEST(Logging, WritesWarningsWithTimeAndPlace) {
  const std::string text = written("WARN", "NET", [](const Logger& logger) {
    writeIfOn(logger, Level::Warn, Subsystem::Init, "careful");
    writeIfOn(logger, Level::Info, Subsystem::Net, "too deep");
  });
  EXPECT_TRUE(matches(text,
                      "\n\\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\] [^:. ]+:[0-9]+:[0-9]+ "
                      "\\[-1\\] logging_test.cc:[0-9]+ \\(operator\\(\\)\\) NCCL WARN careful\n"))
      << text;
}

TEST(Logging, SelectsSubsystems) {
  const auto on = [](const std::string& subsystems, Subsystem subsystem) {
    return Logger(parseLogOptions("INFO", subsystems, "")).on(Level::Info, subsystem);
  };
  EXPECT_TRUE(on("net,coll", Subsystem::Net));
  EXPECT_FALSE(on("net,coll", Subsystem::Init));
  EXPECT_FALSE(on("^NET", Subsystem::Net));
  EXPECT_TRUE(on("^NET", Subsystem::Init));
  EXPECT_TRUE(on("ALL", Subsystem::Destroy));
  EXPECT_TRUE(on("SOMETHING_NEW,BOOTSTRAP", Subsystem::Bootstrap));
}

TEST(Logging, ExpandsHostAndProcess) {
  EXPECT_EQ(expandLogFile("/a/%h.%p.%%.%x"), concat("/a/", hostName(), ".", ::getpid(), ".%.%x"));
}

TEST(Logging, NamesAFileThatCantBeOpened) {
  const Logger logger(parseLogOptions("WARN", "", "no such folder/%p"));
  const std::string path = concat("no such folder/", ::getpid());
  EXPECT_EQ(logger.obstacle(), concat("NCCL_DEBUG_FILE=no such folder/%p can't be opened (", path,
                                      ": No such file or directory): log lines go to stderr"));
  EXPECT_EQ(Logger(parseLogOptions("WARN", "", "/dev/null")).obstacle(), "");
  EXPECT_EQ(Logger(parseLogOptions("", "", "no such folder/file")).obstacle(), "");
}

TEST(Logging, DoesNotWaitForAPipesReader) {
  const std::string path = concat(testing::TempDir(), "log pipe.", ::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(Logger(parseLogOptions("WARN", "", path)).obstacle().find("No such device"), std::string::npos);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  const Logger logger(parseLogOptions("WARN", "", path));
  EXPECT_EQ(logger.obstacle(), "");
  for (int i = 0; i < 100; ++i) logger.write(Level::Warn, std::string(4000, 'x'));  // more than a pipe holds
  ::close(reader);
  ::unlink(path.c_str());
}

TEST(Logging, WritesWhatNobodyAskedForToTheFileToo) {
  const std::string path = concat(testing::TempDir(), "unasked.", ::getpid());
  for (const char* level : {"", "INFO"}) {
    const Logger logger(parseLogOptions(level, "", path));
    for (int i = 0; i < 2; ++i) logger.writeUnasked(Level::Warn, concat(level, "report", i));
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (int i = 0; i < 2; ++i)
      EXPECT_NE(text.find(concat("NCCL WARN ", level, "report", i)), std::string::npos) << text;
    ::unlink(path.c_str());
  }
}

TEST(Logging, LeavesErrnoAlone) {
  const Logger logger(parseLogOptions("INFO", "", "/dev/null"));
  errno = EDOM;
  logger.write(Level::Info, "text");
  EXPECT_EQ(errno, EDOM);
}

}  // namespace
}  // namespace topoccl
