#include "base/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace topoccl {
namespace {

bool linkLocal(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

struct Filter {
  bool exclude = false;
  bool exact = false;
  std::vector<std::string> names;

  explicit Filter(std::string text) {
    exclude = text.starts_with("^");
    if (exclude) text.erase(0, 1);
    exact = text.starts_with("=");
    if (exact) text.erase(0, 1);
    for (size_t start = 0; start < text.size();) {
      const size_t end = std::min(text.find(',', start), text.size());
      if (end > start) names.push_back(text.substr(start, end - start));
      start = end + 1;
    }
  }

  bool lets(const std::string& interface) const {
    const bool named = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return exact ? interface == name : interface.starts_with(name);
    });
    return named != exclude;
  }
};

int preference(const NetworkInterface& interface) {
  const std::string& name = interface.name;
  const int kind = name.starts_with("ib") ? 0 : name == "lo" ? 3 : name.starts_with("docker") ? 2 : 1;
  return 2 * kind + (interface.address.family() == AF_INET6 ? 1 : 0);
}

}  // namespace

std::vector<NetworkInterface> networkInterfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throwSystemError("listing network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<NetworkInterface> all;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    const sockaddr* address = entry->ifa_addr;
    if (!address || !(entry->ifa_flags & IFF_UP) || linkLocal(address)) continue;
    if (address->sa_family == AF_INET) all.push_back({entry->ifa_name, {address, sizeof(sockaddr_in)}});
    if (address->sa_family == AF_INET6) all.push_back({entry->ifa_name, {address, sizeof(sockaddr_in6)}});
  }
  return all;
}

std::vector<NetworkInterface> chooseInterfaces(const std::vector<NetworkInterface>& all,
                                               const std::string& filter) {
  if (all.empty())
    throw Error(Code::SystemError,
                "no network interface is up and has an address; bring up lo, by `ip link set lo up`");
  const Filter parsed(filter);
  std::vector<NetworkInterface> chosen;
  std::string seen;
  for (const NetworkInterface& interface : all) {
    if (filter.empty() || parsed.lets(interface.name)) chosen.push_back(interface);
    seen += concat(seen.empty() ? "" : ", ", interface.name, " (", interface.address.text(), ")");
  }
  if (chosen.empty())
    throw Error(Code::InvalidArgument,
                concat("NCCL_SOCKET_IFNAME=", filter, " leaves no network interface; there are: ", seen));
  // A list of wanted names keeps the system's order; otherwise the kinds decide.
  if (filter.empty() || parsed.exclude)
    std::stable_sort(chosen.begin(), chosen.end(), [](const NetworkInterface& a, const NetworkInterface& b) {
      return preference(a) < preference(b);
    });
  return chosen;
}

}  // namespace topoccl
