#include "common/board_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>
#include <thread>

#include "common/failure.h"
#include "common/verify.h"

namespace topoccl::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Start of the file. The maker fills it and sets `ready` last.
struct alignas(64) FileHead {
  std::atomic<uint32_t> ready;
  std::atomic<uint32_t> come;  // ranks that mapped the file
  int32_t makerPid;
  int32_t ranks;
  uint64_t makerStart;
};

// One byte per rank, to notice two processes that claim the same rank.
size_t claimBytes(int ranks) {
  return (static_cast<size_t>(ranks) + 63) / 64 * 64;
}

size_t boardOffset(int ranks) {
  return sizeof(FileHead) + claimBytes(ranks);
}

size_t fileBytes(const BoardFileRequest& request) {
  return boardOffset(request.ranks) + request.bytes;
}

FileHead* headOf(const MemoryMap& map) {
  return std::launder(static_cast<FileHead*>(map.data()));
}

std::atomic<uint8_t>& claimOf(const MemoryMap& map, int rank) {
  return reinterpret_cast<std::atomic<uint8_t>*>(headOf(map) + 1)[rank];
}

// Field 22 of /proc/PID/stat: with the pid it names a process for good. 0 if there is no such process.
uint64_t startOf(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return 0;
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; i++) fields >> field;
  return std::strtoull(field.c_str(), nullptr, 10);
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

[[noreturn]] void fail(const std::string& message) {
  throw Failure(ExitCode::InternalError, message);
}

std::string secondsText(std::chrono::milliseconds duration) {
  std::ostringstream text;
  text << std::chrono::duration<double>(duration).count();
  return text.str();
}

// A file of our user that nobody else can open, of the size this job's ranks expect.
bool isOurs(int descriptor, const BoardFileRequest& request) {
  struct stat info {};
  return fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & 077) == 0 && info.st_nlink == 1 &&
         static_cast<size_t>(info.st_size) == fileBytes(request);
}

bool isFresh(const MemoryMap& map, const BoardFileRequest& request) {
  const FileHead* head = headOf(map);
  return head->ready != 0 && head->ranks == request.ranks && head->makerStart != 0 &&
         startOf(head->makerPid) == head->makerStart;
}

// A file that a killed run left behind goes; that of a living run stays, and creating ours fails.
void removeStale(const std::string& path, const BoardFileRequest& request) {
  const Descriptor old(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (old.get() < 0) return;
  const bool isLive =
      isOurs(old.get(), request) && isFresh(MemoryMap::ofFile(old.get(), fileBytes(request)), request);
  if (!isLive) unlink(path.c_str());
}

MemoryMap makeFile(const std::string& path, const BoardFileRequest& request) {
  removeStale(path, request);
  const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) {
    fail("making " + path + " for the ranks to meet: " + std::strerror(errno) +
         (errno == EEXIST ? "; another run with the same job id is starting"
                          : "; set XDG_RUNTIME_DIR to a folder of yours that can be written"));
  }
  if (ftruncate(file.get(), static_cast<off_t>(fileBytes(request))) != 0) {
    fail("sizing " + path + ": " + std::strerror(errno));
  }
  MemoryMap map = MemoryMap::ofFile(file.get(), fileBytes(request));
  FileHead* head = headOf(map);
  head->makerPid = getpid();
  head->ranks = request.ranks;
  head->makerStart = startOf(getpid());
  head->ready = 1;
  return map;
}

// Says once, after a while, what a rank waits for: somebody may have forgotten to start the others.
class Notice {
 public:
  explicit Notice(const BoardFileRequest& request)
      : rank_(request.rank), due_(Clock::now() + request.silence) {}

  template <class Text>
  void sayIfDue(Text&& text) {
    if (isSaid_ || Clock::now() < due_) return;
    isSaid_ = true;
    std::fprintf(stderr, "# rank %d: waiting for %s\n", rank_, text().c_str());
  }

 private:
  int rank_;
  Clock::time_point due_;
  bool isSaid_ = false;
};

MemoryMap findFile(const std::string& path, const BoardFileRequest& request) {
  Notice notice(request);
  for (const auto deadline = Clock::now() + request.patience; Clock::now() < deadline;) {
    const Descriptor file(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (file.get() >= 0 && isOurs(file.get(), request)) {
      MemoryMap map = MemoryMap::ofFile(file.get(), fileBytes(request));
      if (isFresh(map, request)) return map;
    }
    notice.sayIfDue([&] { return "rank 0 to make " + path; });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  fail("rank " + std::to_string(request.rank) + ": rank 0 did not make " + path + " within " +
       secondsText(request.patience) + " s; do all ranks run on this host as the same user?");
}

std::string missingText(const MemoryMap& map, const BoardFileRequest& request) {
  const uint32_t come = headOf(map)->come;
  return std::to_string(static_cast<uint32_t>(request.ranks) - come) + " of " +
         std::to_string(request.ranks) + " ranks to come";
}

void awaitAll(const MemoryMap& map, const BoardFileRequest& request) {
  const auto deadline = Clock::now() + request.patience;
  Notice notice(request);
  while (headOf(map)->come < static_cast<uint32_t>(request.ranks)) {
    if (Clock::now() > deadline) {
      fail("rank " + std::to_string(request.rank) + ": " + std::to_string(headOf(map)->come) + " of " +
           std::to_string(request.ranks) + " ranks came within " + secondsText(request.patience) +
           " s; ranks on other hosts or of other users can't");
    }
    if (request.rank == 0) notice.sayIfDue([&] { return missingText(map, request); });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

MemoryMap meet(const BoardFileRequest& request) {
  const std::string path = boardPath(request);
  MemoryMap map = request.rank == 0 ? makeFile(path, request) : findFile(path, request);
  if (claimOf(map, request.rank).exchange(1) != 0) {
    fail("rank " + std::to_string(request.rank) + " came twice; is another run using the same job id?");
  }
  headOf(map)->come++;
  try {
    awaitAll(map, request);
  } catch (...) {
    if (request.rank == 0) unlink(path.c_str());
    throw;
  }
  if (request.rank == 0) unlink(path.c_str());
  return map;
}

}  // namespace

std::string boardDirectory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  struct stat info {};
  const bool isOwn = runtime != nullptr && stat(runtime, &info) == 0 && S_ISDIR(info.st_mode) &&
                     info.st_uid == geteuid() && access(runtime, W_OK | X_OK) == 0;
  return isOwn ? runtime : "/tmp";
}

std::string boardPath(const BoardFileRequest& request) {
  const std::string identity = request.jobKey + "|" + std::to_string(request.ranks);
  char name[64];
  std::snprintf(name, sizeof name, "topoccl-bench-%u-%016llx", static_cast<unsigned>(geteuid()),
                static_cast<unsigned long long>(
                    hashBytes(reinterpret_cast<const std::byte*>(identity.data()), identity.size())));
  return request.directory + "/" + name;
}

BoardFile::BoardFile(const BoardFileRequest& request) : map_(meet(request)) {}

void* BoardFile::board() const {
  return static_cast<std::byte*>(map_.data()) + boardOffset(headOf(map_)->ranks);
}

}  // namespace topoccl::bench
