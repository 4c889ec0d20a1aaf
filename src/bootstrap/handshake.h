// Mutual proof that both ends of a connection hold the same key, without sending it. Used on every connection
// of bootstrap, TCP or unix. No sockets here: bytes in, bytes out.
//
//   client -> server   hello:      magic, purpose, client's rank, random nonce
//   server -> client   challenge:  magic, server's rank, random nonce, proof "server"
//   client -> server   proof "client"; authenticated messages (frame.h) may follow at once
//
//   transcript = (purpose, client's rank, server's rank, client's nonce, server's nonce)
//   proof "X"  = mac(key, "X", transcript)
//
// Fresh nonces on both sides make recorded bytes worthless; the labels keep a proof from being sent back to
// its maker; purpose and ranks in the transcript keep a connection from being taken for another one. Each
// connection and direction then has its own message key, derived from the same transcript.
// Nothing is encrypted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/crypto.h"

namespace topoccl {

// What a connection is for.
enum class Purpose : uint8_t { Control = 1, MemoryFile = 2 };

// The root's rank in transcripts: it is none.
inline constexpr uint32_t kRootRank = UINT32_MAX;

inline constexpr size_t kHelloBytes = 48;
inline constexpr size_t kChallengeBytes = 80;
inline constexpr size_t kProofBytes = 32;

struct Hello {
  Purpose purpose = Purpose::Control;
  uint32_t rank = 0;
  Bytes32 nonce{};
};

struct Challenge {
  uint32_t rank = 0;
  Bytes32 nonce{};
  Bytes32 proof{};
};

std::string encodeHello(const Hello& hello);
std::optional<Hello> decodeHello(std::string_view bytes);
std::string encodeChallenge(const Challenge& challenge);
std::optional<Challenge> decodeChallenge(std::string_view bytes);

// Message keys of an authenticated connection.
struct ConnectionKeys {
  Bytes32 toServer{};
  Bytes32 toClient{};
};

// What both ends agree on. `server.proof` is no part of it.
struct Transcript {
  Hello hello;
  uint32_t serverRank = 0;
  Bytes32 serverNonce{};

  Bytes32 proof(const Bytes32& key, std::string_view label) const;
  ConnectionKeys keys(const Bytes32& key) const;
};

class ClientHandshake {
 public:
  ClientHandshake(const Bytes32& key, Purpose purpose, uint32_t rank);

  std::string hello() const { return encodeHello(transcript_.hello); }
  // The proof to send, or nothing if the server does not hold the key.
  std::optional<std::string> answer(std::string_view challenge);
  const ConnectionKeys& keys() const { return keys_; }
  uint32_t serverRank() const { return transcript_.serverRank; }

 private:
  Bytes32 key_;
  Transcript transcript_;
  ConnectionKeys keys_;
};

class ServerHandshake {
 public:
  enum class State { Hello, Proof, Done, Failed };

  ServerHandshake(const Bytes32& key, Purpose purpose, uint32_t rank);

  // Takes what it needs from the front of `input` and returns what to send.
  std::string advance(std::string& input);
  State state() const { return state_; }
  // Valid when Done: proved by the client.
  uint32_t clientRank() const { return transcript_.hello.rank; }
  const ConnectionKeys& keys() const { return keys_; }

 private:
  std::string onHello(std::string_view bytes);
  void onProof(std::string_view bytes);

  Bytes32 key_;
  Purpose purpose_;
  State state_ = State::Hello;
  Transcript transcript_;
  ConnectionKeys keys_;
};

}  // namespace topoccl
