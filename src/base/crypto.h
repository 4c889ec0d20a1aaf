// Randomness, hashes and message authentication, all by libsodium. Thread-safe; nothing here keeps state.
//
// Hashes and MACs take a list of parts. Each part is preceded by its length, so that ("ab", "c") and
// ("a", "bc") differ.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace topoccl {

// 256 bits: a secret key, a nonce, a hash or a MAC.
using Bytes32 = std::array<uint8_t, 32>;

void randomBytes(void* data, size_t bytes);

template <class T>
T random() {
  T value;
  randomBytes(&value, sizeof(value));
  return value;
}

// BLAKE2b.
Bytes32 hash(std::initializer_list<std::string_view> parts);
uint64_t hash64(std::initializer_list<std::string_view> parts);

// Keyed BLAKE2b.
Bytes32 mac(const Bytes32& key, std::initializer_list<std::string_view> parts);

// Compares in constant time; false where the lengths differ.
bool sameBytes(std::string_view a, std::string_view b);

// An object's bytes.
template <class T>
std::string_view bytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// "1f03..." for logs.
std::string hexadecimal(uint64_t value);

}  // namespace topoccl
