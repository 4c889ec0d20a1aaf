#include "api/announce.h"

#include <cstdlib>
#include <mutex>
#include <string>

#include "base/logging.h"
#include "base/settings.h"
#include "nccl.h"

namespace topoccl::api {
namespace {

void announceVersion() {
  log(Level::Version, Subsystem::Init, "NCCL version ", NCCL_MAJOR, ".", NCCL_MINOR, ".", NCCL_PATCH,
      "+topoccl" TOPOCCL_VERSION);
}

void announceSettings() {
  for (const std::string& line :
       settingsSet([](const char* name) -> const char* { return std::getenv(name); }))
    log(Level::Info, Subsystem::Env, line);
}

}  // namespace

void announce(int rank) {
  static std::once_flag version;
  static std::once_flag settings;
  if (rank == 0 || processLogger().on(Level::Info, Subsystem::Init)) std::call_once(version, announceVersion);
  std::call_once(settings, announceSettings);
}

}  // namespace topoccl::api
