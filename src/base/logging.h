// Log lines in NCCL's format, so that scripts that read NCCL's logs read ours. Off unless NCCL_DEBUG is set.
// Differences: lines go to stderr (NCCL: stdout), because stdout belongs to the program.
//
//   INFO   host:pid:tid [device] NCCL INFO text
//   WARN   (empty line) [2025-01-31 12:00:00] host:pid:tid [device] file:line (function) NCCL WARN text
//   TRACE  host:pid:tid [device] function:line NCCL TRACE text
//   VERSION  text
//
// The device is -1: lines are written by set-up code of CPU ranks. Every line is one write(2). Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "base/error.h"

namespace topoccl {

enum class Level : uint8_t { None, Version, Warn, Info, Trace };

// Bits of NCCL_DEBUG_SUBSYS. They select INFO and TRACE lines; warnings always pass.
enum class Subsystem : uint32_t {
  Init = 1u << 0,
  Coll = 1u << 1,
  P2p = 1u << 2,
  Shm = 1u << 3,
  Net = 1u << 4,
  Graph = 1u << 5,
  Tuning = 1u << 6,
  Env = 1u << 7,
  Alloc = 1u << 8,
  Call = 1u << 9,
  Proxy = 1u << 10,
  Nvls = 1u << 11,
  Bootstrap = 1u << 12,
  Reg = 1u << 13,
  Profile = 1u << 14,
  Ras = 1u << 15,
  Destroy = 1u << 16,
};

struct LogOptions {
  Level level = Level::None;
  uint32_t subsystems = 0;
  std::string file;  // empty: stderr
};

// Parses the values of NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE. An unknown level is None, an
// unknown subsystem is skipped (NCCL's list grows with its versions).
LogOptions parseLogOptions(const std::string& debug, const std::string& subsystems, const std::string& file);

// The level with that name in any case; None for the empty string. False if there is none.
bool parseLevel(const std::string& text, Level& level);

// NCCL_DEBUG_FILE with %h replaced by the host's name, %p by the process id, %% by %.
std::string expandLogFile(const std::string& pattern);

// Where a line comes from; made by converting a Level at the call.
struct LogPoint {
  Level level;
  const char* file;
  int line;
  const char* function;

  // NOLINTNEXTLINE(google-explicit-constructor): see above
  LogPoint(Level level_, const char* file_ = __builtin_FILE(), int line_ = __builtin_LINE(),
           const char* function_ = __builtin_FUNCTION())
      : level(level_), file(file_), line(line_), function(function_) {}
};

class Logger {
 public:
  explicit Logger(const LogOptions& options);

  bool on(Level level, Subsystem subsystem) const {
    if (level > level_) return false;
    return level <= Level::Warn || (subsystems_ & static_cast<uint32_t>(subsystem)) != 0;
  }
  void write(const LogPoint& point, const std::string& text) const;
  // Where nothing is logged otherwise, too: to the file that lines would go to, which is opened for it.
  void writeUnasked(const LogPoint& point, const std::string& text) const;
  // Why lines don't go to NCCL_DEBUG_FILE; empty where they do, or none was wanted.
  const std::string& obstacle() const { return obstacle_; }
  void stayOpen();  // as long as the process, and in its children

 private:
  Level level_;
  uint32_t subsystems_;
  std::string path_;  // empty: stderr
  std::string obstacle_;
  Descriptor file_;
  int target_;
};

// The process's logger: reads the environment at first use, then never changes.
const Logger& processLogger();

// log(Level::Info, Subsystem::Init, "rank ", rank, " starts"). Costs one comparison when off.
template <class... Parts>
void log(const LogPoint& point, Subsystem subsystem, const Parts&... parts) {
  const Logger& logger = processLogger();
  if (logger.on(point.level, subsystem)) logger.write(point, concat(parts...));
}

}  // namespace topoccl
