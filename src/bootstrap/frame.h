// Authenticated messages on a connection after its handshake. No sockets here: bytes in, bytes out.
//
//   head:  payload's length (32 bits), kind (8), zero (24), sequence number (64), MAC (256)
//   payload
//
//   MAC = mac(key of this connection and direction, first 16 bytes of the head, hash of the payload)
//
// A frame that is altered, repeated, dropped or moved to another connection fails the MAC or the sequence
// number. The payload's hash stands in the MAC so that a payload sent to many peers is hashed once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/crypto.h"

namespace topoccl {

inline constexpr size_t kFrameHeadBytes = 48;

struct FrameHead {
  uint32_t length = 0;
  uint8_t kind = 0;
  uint64_t sequence = 0;
  Bytes32 mac{};
};

std::string encodeFrameHead(const FrameHead& head);
std::optional<FrameHead> decodeFrameHead(std::string_view bytes);

// A payload with its hash, shared by all connections that send it.
class Payload {
 public:
  explicit Payload(std::string bytes)
      : bytes_(std::make_shared<const std::string>(std::move(bytes))), hash_(hash({*bytes_})) {}

  const std::string& bytes() const { return *bytes_; }
  const Bytes32& digest() const { return hash_; }

 private:
  std::shared_ptr<const std::string> bytes_;
  Bytes32 hash_;
};

class FrameSealer {
 public:
  explicit FrameSealer(const Bytes32& key) : key_(key) {}

  // The head to send before the payload.
  std::string seal(uint8_t kind, const Payload& payload);

 private:
  Bytes32 key_;
  uint64_t sequence_ = 0;
};

struct Frame {
  uint8_t kind = 0;
  std::string payload;
};

class FrameOpener {
 public:
  // Frames longer than `limit` are refused before any memory is spent on them.
  FrameOpener(const Bytes32& key, size_t limit) : key_(key), limit_(limit) {}

  // Takes the next frame from the front of `input`. Nothing if it is not complete yet, or if it is no genuine
  // frame: broken() is then true, and stays so.
  std::optional<Frame> next(std::string& input);
  bool broken() const { return broken_; }

 private:
  Bytes32 key_;
  size_t limit_;
  uint64_t sequence_ = 0;
  bool broken_ = false;
};

}  // namespace topoccl
