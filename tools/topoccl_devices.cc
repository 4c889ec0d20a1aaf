// topoccl_devices: lists what ranks on this host can compute on.
#include <cstdio>
#include <string>
#include <vector>

#include "topoccl.h"

namespace {

constexpr const char* kUsage =
    "usage: topoccl_devices [--json]\n"
    "Lists the devices that a process started here may use: index, kind, the system's number, name.\n"
    "  --json  as a JSON array\n"
    "  --help  this text\n";

const char* kindName(topocclDeviceKind_t kind) {
  return kind == topocclDeviceCuda ? "cuda" : "cpu";
}

bool listDevices(std::vector<topocclDevice_t>& devices) {
  int count = 0;
  if (topocclGetDevices(nullptr, 0, &count) != ncclSuccess) return false;
  devices.resize(static_cast<size_t>(count));
  return topocclGetDevices(devices.data(), count, &count) == ncclSuccess;
}

void printText(const std::vector<topocclDevice_t>& devices) {
  for (const topocclDevice_t& device : devices) {
    std::printf("%4d  %-4s  %4d  %s\n", device.index, kindName(device.kind), device.systemId, device.name);
  }
}

// Names come from the system: quotes, backslashes and control characters must not break the document.
std::string quoted(const char* text) {
  std::string result = "\"";
  for (; *text != '\0'; text++) {
    const auto letter = static_cast<unsigned char>(*text);
    char code[8];
    if (letter < 0x20) {
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(letter));
      result += code;
    } else {
      if (letter == '"' || letter == '\\') result += '\\';
      result += *text;
    }
  }
  return result + "\"";
}

void printJson(const std::vector<topocclDevice_t>& devices) {
  std::printf("[");
  for (size_t i = 0; i < devices.size(); i++) {
    std::printf("%s\n  {\"index\": %d, \"kind\": \"%s\", \"system_id\": %d, \"name\": %s}", i == 0 ? "" : ",",
                devices[i].index, kindName(devices[i].kind), devices[i].systemId,
                quoted(devices[i].name).c_str());
  }
  std::printf("\n]\n");
}

}  // namespace

int main(int count, char** arguments) {
  const std::string argument = count > 1 ? arguments[1] : "";
  if (count > 2 || (count == 2 && argument != "--json" && argument != "--help" && argument != "-h")) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (count == 2 && argument != "--json") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  std::vector<topocclDevice_t> devices;
  if (!listDevices(devices)) {
    std::fprintf(stderr, "topoccl_devices: %s\n", ncclGetLastError(nullptr));
    return 1;
  }
  argument == "--json" ? printJson(devices) : printText(devices);
  return 0;
}
