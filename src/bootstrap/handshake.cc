#include "bootstrap/handshake.h"

#include "base/bytes.h"

namespace topoccl {
namespace {

constexpr std::string_view kHelloMagic{"TOPOHEL\1", 8};
constexpr std::string_view kChallengeMagic{"TOPOCHA\1", 8};

}  // namespace

std::string encodeHello(const Hello& hello) {
  return ByteWriter()
      .raw(kHelloMagic)
      .number(static_cast<uint32_t>(hello.purpose))
      .number(hello.rank)
      .raw(bytesOf(hello.nonce))
      .take();
}

std::optional<Hello> decodeHello(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.raw(kHelloMagic.size()) != kHelloMagic) return std::nullopt;
  Hello hello;
  const auto purpose = reader.number<uint32_t>();
  hello.rank = reader.number<uint32_t>();
  hello.nonce = reader.object<Bytes32>();
  if (!reader.done() || purpose < 1 || purpose > 2) return std::nullopt;
  hello.purpose = static_cast<Purpose>(purpose);
  return hello;
}

std::string encodeChallenge(const Challenge& challenge) {
  return ByteWriter()
      .raw(kChallengeMagic)
      .number(challenge.rank)
      .number(uint32_t{0})
      .raw(bytesOf(challenge.nonce))
      .raw(bytesOf(challenge.proof))
      .take();
}

std::optional<Challenge> decodeChallenge(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.raw(kChallengeMagic.size()) != kChallengeMagic) return std::nullopt;
  Challenge challenge;
  challenge.rank = reader.number<uint32_t>();
  const auto reserved = reader.number<uint32_t>();
  challenge.nonce = reader.object<Bytes32>();
  challenge.proof = reader.object<Bytes32>();
  if (!reader.done() || reserved != 0) return std::nullopt;
  return challenge;
}

Bytes32 Transcript::proof(const Bytes32& key, std::string_view label) const {
  return mac(key, {label, bytesOf(hello.purpose), bytesOf(hello.rank), bytesOf(serverRank),
                   bytesOf(hello.nonce), bytesOf(serverNonce)});
}

ConnectionKeys Transcript::keys(const Bytes32& key) const {
  return {proof(key, "messages to server"), proof(key, "messages to client")};
}

ClientHandshake::ClientHandshake(const Bytes32& key, Purpose purpose, uint32_t rank) : key_(key) {
  transcript_.hello = {purpose, rank, random<Bytes32>()};
}

std::optional<std::string> ClientHandshake::answer(std::string_view challenge) {
  const std::optional<Challenge> decoded = decodeChallenge(challenge);
  if (!decoded) return std::nullopt;
  transcript_.serverRank = decoded->rank;
  transcript_.serverNonce = decoded->nonce;
  if (!sameBytes(bytesOf(decoded->proof), bytesOf(transcript_.proof(key_, "server")))) return std::nullopt;
  keys_ = transcript_.keys(key_);
  return std::string(bytesOf(transcript_.proof(key_, "client")));
}

ServerHandshake::ServerHandshake(const Bytes32& key, Purpose purpose, uint32_t rank)
    : key_(key), purpose_(purpose) {
  transcript_.serverRank = rank;
}

std::string ServerHandshake::advance(std::string& input) {
  std::string output;
  if (state_ == State::Hello && input.size() >= kHelloBytes) {
    output = onHello(std::string_view(input).substr(0, kHelloBytes));
    input.erase(0, kHelloBytes);
  }
  if (state_ == State::Proof && input.size() >= kProofBytes) {
    onProof(std::string_view(input).substr(0, kProofBytes));
    input.erase(0, kProofBytes);
  }
  return output;
}

std::string ServerHandshake::onHello(std::string_view bytes) {
  const std::optional<Hello> hello = decodeHello(bytes);
  if (!hello || hello->purpose != purpose_) {
    state_ = State::Failed;
    return {};
  }
  transcript_.hello = *hello;
  transcript_.serverNonce = random<Bytes32>();
  state_ = State::Proof;
  return encodeChallenge(
      {transcript_.serverRank, transcript_.serverNonce, transcript_.proof(key_, "server")});
}

void ServerHandshake::onProof(std::string_view bytes) {
  const bool proved = sameBytes(bytes, bytesOf(transcript_.proof(key_, "client")));
  state_ = proved ? State::Done : State::Failed;
  if (proved) keys_ = transcript_.keys(key_);
}

}  // namespace topoccl
