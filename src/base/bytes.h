// Little-endian writing and bounded reading of byte strings: what foreign bytes are parsed with.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace topoccl {

class ByteWriter {
 public:
  template <std::unsigned_integral T>
  ByteWriter& number(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    return *this;
  }
  ByteWriter& raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  // Length (32 bits), then the bytes.
  ByteWriter& text(std::string_view bytes) { return number(static_cast<uint32_t>(bytes.size())).raw(bytes); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what ByteWriter wrote. Never reads past the end and never trusts a length: after the first missing
// byte it yields zeros and empty strings, and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <std::unsigned_integral T>
  T number() {
    const std::string_view taken = raw(sizeof(T));
    T value = 0;
    for (size_t i = 0; i < taken.size(); ++i)
      value = static_cast<T>(value | static_cast<T>(static_cast<uint8_t>(taken[i])) << (8 * i));
    return value;
  }
  std::string_view raw(size_t count) {
    if (count > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view text(size_t limit) {
    const size_t count = number<uint32_t>();
    if (count > limit) ok_ = false;
    return ok_ ? raw(count) : std::string_view{};
  }
  // Fills a trivially copyable object, such as an array of bytes.
  template <class T>
  T object() {
    T value{};
    const std::string_view taken = raw(sizeof(T));
    if (taken.size() == sizeof(T)) std::memcpy(&value, taken.data(), sizeof(T));
    return value;
  }

  bool ok() const { return ok_; }
  size_t left() const { return bytes_.size(); }
  // Everything was there and nothing is left over.
  bool done() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace topoccl
