#include "base/logging.h"

#include <fcntl.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <system_error>

#include "base/fork_safety.h"
#include "base/host_identity.h"
#include "base/signals.h"

namespace topoccl {
namespace {

struct SubsystemName {
  const char* name;
  uint32_t bits;
};

constexpr uint32_t bit(Subsystem subsystem) {
  return static_cast<uint32_t>(subsystem);
}

constexpr SubsystemName kSubsystems[] = {
    {"INIT", bit(Subsystem::Init)},
    {"COLL", bit(Subsystem::Coll)},
    {"P2P", bit(Subsystem::P2p)},
    {"SHM", bit(Subsystem::Shm)},
    {"NET", bit(Subsystem::Net)},
    {"GRAPH", bit(Subsystem::Graph)},
    {"TUNING", bit(Subsystem::Tuning)},
    {"ENV", bit(Subsystem::Env)},
    {"ALLOC", bit(Subsystem::Alloc)},
    {"ALLOC_HOST", bit(Subsystem::Alloc)},
    {"CALL", bit(Subsystem::Call)},
    {"PROXY", bit(Subsystem::Proxy)},
    {"NVLS", bit(Subsystem::Nvls)},
    {"BOOTSTRAP", bit(Subsystem::Bootstrap)},
    {"REG", bit(Subsystem::Reg)},
    {"PROFILE", bit(Subsystem::Profile)},
    {"RAS", bit(Subsystem::Ras)},
    {"DESTROY", bit(Subsystem::Destroy)},
    {"ALL", ~0u},
};

constexpr uint32_t kDefaultSubsystems =
    bit(Subsystem::Init) | bit(Subsystem::Bootstrap) | bit(Subsystem::Env);

uint32_t parseSubsystems(const std::string& text) {
  if (text.empty()) return kDefaultSubsystems;
  const bool inverted = text[0] == '^';
  uint32_t mask = 0;
  for (size_t start = inverted ? 1 : 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    const std::string token = text.substr(start, end - start);
    for (const SubsystemName& row : kSubsystems)
      if (strcasecmp(row.name, token.c_str()) == 0) mask |= row.bits;
    start = end + 1;
  }
  return inverted ? ~mask : mask;
}

// Held while a fork copies the process.
std::mutex& logMutex() {
  static constinit std::mutex mutex;
  return mutex;
}

const ForkHook kHook = ForkHook::holding<logMutex>(ForkHook::Level::Middle);

std::string timestamp() {
  const time_t now = ::time(nullptr);
  tm local{};
  {
    const std::scoped_lock lock(logMutex());  // a fork's child would wait for ever for the system's own
    localtime_r(&now, &local);
  }
  char text[32];
  const size_t length = strftime(text, sizeof(text), "[%F %T] ", &local);
  return std::string(text, length);
}

std::string prefix() {
  return concat(hostName(), ":", ::getpid(), ":", ::syscall(SYS_gettid), " [-1] ");
}

const char* baseName(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

std::string format(const LogPoint& point, const std::string& text) {
  switch (point.level) {
    case Level::Warn:
      return concat("\n", timestamp(), prefix(), baseName(point.file), ":", point.line, " (", point.function,
                    ") NCCL WARN ", text, "\n");
    case Level::Info:
      return concat(prefix(), "NCCL INFO ", text, "\n");
    case Level::Trace:
      return concat(prefix(), point.function, ":", point.line, " NCCL TRACE ", text, "\n");
    default:
      return concat(text, "\n");
  }
}

}  // namespace

bool parseLevel(const std::string& text, Level& level) {
  struct Row {
    const char* name;
    Level level;
  };
  // ABORT is NCCL's level between INFO and TRACE; nothing is logged at it.
  static constexpr Row kLevels[] = {{"", Level::None},      {"VERSION", Level::Version},
                                    {"WARN", Level::Warn},  {"INFO", Level::Info},
                                    {"ABORT", Level::Info}, {"TRACE", Level::Trace}};
  for (const Row& row : kLevels) {
    if (strcasecmp(row.name, text.c_str()) != 0) continue;
    level = row.level;
    return true;
  }
  return false;
}

LogOptions parseLogOptions(const std::string& debug, const std::string& subsystems, const std::string& file) {
  LogOptions options;
  parseLevel(debug, options.level);
  options.subsystems = parseSubsystems(subsystems);
  options.file = file;
  return options;
}

std::string expandLogFile(const std::string& pattern) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h') path += hostName();
    if (next == 'p') path += std::to_string(::getpid());
    if (next == '%') path += '%';
    if (next == 'h' || next == 'p' || next == '%')
      ++i;
    else
      path += pattern[i];
  }
  return path;
}

namespace {

Descriptor openLogFile(const std::string& path, int further) {
  // Nobody may read from a pipe: neither opening nor a line waits for that.
  return Descriptor(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | further, 0644));
}

void writeAll(int target, const std::string& line) {
  const WriteSignalsKept kept;
  for (size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(target, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
}

}  // namespace

// A file that can't be opened must not stop the job: lines then go to stderr.
Logger::Logger(const LogOptions& options)
    : level_(options.level),
      subsystems_(options.subsystems),
      path_(expandLogFile(options.file)),
      target_(STDERR_FILENO) {
  if (path_.empty() || level_ <= Level::Version) return;
  file_ = openLogFile(path_, O_TRUNC);
  if (file_)
    target_ = file_.get();
  else
    obstacle_ = concat("NCCL_DEBUG_FILE=", options.file, " can't be opened (", path_, ": ",
                       std::generic_category().message(errno), "): log lines go to stderr");
}

void Logger::stayOpen() {
  if (file_) target_ = file_.release();
}

void Logger::write(const LogPoint& point, const std::string& text) const {
  const int saved = errno;
  writeAll(target_, format(point, text));
  errno = saved;
}

void Logger::writeUnasked(const LogPoint& point, const std::string& text) const {
  if (target_ != STDERR_FILENO || path_.empty()) return write(point, text);
  const int saved = errno;
  const Descriptor file = openLogFile(path_, 0);
  writeAll(file ? file.get() : STDERR_FILENO, format(point, text));
  errno = saved;
}

namespace {

const Logger* makeProcessLogger() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text ? text : "");
  };
  auto logger = std::make_unique<Logger>(
      parseLogOptions(value("NCCL_DEBUG"), value("NCCL_DEBUG_SUBSYS"), value("NCCL_DEBUG_FILE")));
  logger->stayOpen();
  return logger.release();
}

}  // namespace

const Logger& processLogger() {
  // Never destroyed: threads of the library may log while the process exits. Where a fork comes between, the
  // child makes its own.
  static std::once_flag once;
  static const Logger* logger = nullptr;
  std::call_once(once, [] {
    {
      const std::scoped_lock lock(logMutex());
      if (logger == nullptr) logger = makeProcessLogger();
    }
    if (!logger->obstacle().empty()) logger->write(Level::Warn, logger->obstacle());
  });
  return *logger;
}

}  // namespace topoccl
