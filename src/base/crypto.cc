#include "base/crypto.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/fork_safety.h"

namespace topoccl {
namespace {

void needSodium() {
  static const int result = sodium_init();
  if (result < 0) throw Error(Code::SystemError, "libsodium can't be initialised");
}

const ForkHook kHook([] { needSodium(); });

Bytes32 blake2b(const Bytes32* key, std::initializer_list<std::string_view> parts) {
  needSodium();
  crypto_generichash_state state;
  Bytes32 result;
  crypto_generichash_init(&state, key ? key->data() : nullptr, key ? key->size() : 0, result.size());
  for (std::string_view part : parts) {
    const uint64_t bytes = part.size();
    crypto_generichash_update(&state, reinterpret_cast<const uint8_t*>(&bytes), sizeof(bytes));
    crypto_generichash_update(&state, reinterpret_cast<const uint8_t*>(part.data()), part.size());
  }
  crypto_generichash_final(&state, result.data(), result.size());
  return result;
}

}  // namespace

// Not libsodium's, which ends the process where the system has none to give.
void randomBytes(void* data, size_t bytes) {
  auto* next = static_cast<char*>(data);
  Descriptor device;  // where the call is denied
  while (bytes > 0) {
    const ssize_t got = device ? ::read(device.get(), next, bytes) : ::getrandom(next, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && !device) {
      device = Descriptor(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
      if (!device) throwSystemError("drawing random numbers (getrandom, then /dev/urandom)", errno);
      continue;
    }
    if (got <= 0) throwSystemError("drawing random numbers from /dev/urandom", got < 0 ? errno : EIO);
    next += got;
    bytes -= static_cast<size_t>(got);
  }
}

Bytes32 hash(std::initializer_list<std::string_view> parts) {
  return blake2b(nullptr, parts);
}

uint64_t hash64(std::initializer_list<std::string_view> parts) {
  const Bytes32 full = hash(parts);
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | full[static_cast<size_t>(i)];
  return value;
}

Bytes32 mac(const Bytes32& key, std::initializer_list<std::string_view> parts) {
  return blake2b(&key, parts);
}

bool sameBytes(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string hexadecimal(uint64_t value) {
  static const char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 0; i < text.size(); ++i) text[text.size() - 1 - i] = kDigits[value >> (4 * i) & 15];
  return text;
}

}  // namespace topoccl
