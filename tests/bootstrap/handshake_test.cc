#include "bootstrap/handshake.h"

#include <gtest/gtest.h>

#include "bootstrap/frame.h"

namespace topoccl {
namespace {

using State = ServerHandshake::State;

const Bytes32 kKey = hash({"key"});
const Bytes32 kOther = hash({"other"});

struct Talk {
  ServerHandshake server;
  ClientHandshake client;
  std::string hello, challenge;
  std::optional<std::string> proof;

  Talk(const Bytes32& serverKey, const Bytes32& clientKey)
      : server(serverKey, Purpose::Control, 9), client(clientKey, Purpose::Control, 5) {
    hello = client.hello();
    std::string input = hello;
    challenge = server.advance(input);
    proof = client.answer(challenge);
  }
  State give(std::string bytes) {
    server.advance(bytes);
    return server.state();
  }
};

TEST(Handshake, OfTwoHoldersOfTheKeySucceeds) {
  Talk talk(kKey, kKey);
  ASSERT_TRUE(talk.proof);
  EXPECT_EQ(talk.give(*talk.proof), State::Done);
  EXPECT_EQ(talk.server.clientRank(), 5u);
  EXPECT_EQ(talk.client.serverRank(), 9u);
  EXPECT_EQ(talk.client.keys().toServer, talk.server.keys().toServer);
  EXPECT_EQ(talk.client.keys().toClient, talk.server.keys().toClient);
  EXPECT_NE(talk.client.keys().toServer, talk.client.keys().toClient);
}

TEST(Handshake, ClientTellsAServerWithoutTheKey) {
  EXPECT_FALSE(Talk(kOther, kKey).proof);
}

TEST(Handshake, ServerTellsAClientWithoutTheKey) {
  Talk talk(kKey, kKey);
  EXPECT_EQ(talk.give(std::string(kProofBytes, 'x')), State::Failed);
}

TEST(Handshake, ServersOwnProofSentBackIsRefused) {
  Talk talk(kKey, kKey);
  EXPECT_EQ(talk.give(talk.challenge.substr(kChallengeBytes - kProofBytes)), State::Failed);
}

TEST(Handshake, RecordedBytesAreRefused) {
  const Talk recorded(kKey, kKey);
  ServerHandshake server(kKey, Purpose::Control, 9);
  std::string input = recorded.hello + *recorded.proof;
  server.advance(input);
  EXPECT_EQ(server.state(), State::Failed);
}

TEST(Handshake, ForAnotherPurposeIsRefused) {
  ServerHandshake server(kKey, Purpose::MemoryFile, 9);
  std::string input = ClientHandshake(kKey, Purpose::Control, 5).hello();
  EXPECT_EQ(server.advance(input), "");
  EXPECT_EQ(server.state(), State::Failed);
}

TEST(Handshake, WithAnyChangedByteFails) {
  const Talk good(kKey, kKey);
  for (size_t i = 0; i < kHelloBytes; ++i) {
    ServerHandshake server(kKey, Purpose::Control, 9);
    ClientHandshake client(kKey, Purpose::Control, 5);
    std::string input = client.hello();
    input[i] = static_cast<char>(input[i] ^ 1);
    const std::string challenge = server.advance(input);
    EXPECT_FALSE(!challenge.empty() && client.answer(challenge)) << i;
  }
  for (size_t i = 0; i < kChallengeBytes; ++i) {
    ClientHandshake client = good.client;
    std::string challenge = good.challenge;
    challenge[i] = static_cast<char>(challenge[i] ^ 1);
    EXPECT_FALSE(client.answer(challenge)) << i;
  }
}

TEST(Handshake, TakesBytesOneByOneAndLeavesTheRest) {
  Talk talk(kKey, kKey);
  std::string input;
  for (char byte : *talk.proof) {
    EXPECT_EQ(talk.server.state(), State::Proof);
    input.push_back(byte);
    talk.server.advance(input);
  }
  EXPECT_EQ(talk.server.state(), State::Done);
  input = "rest";
  talk.server.advance(input);
  EXPECT_EQ(input, "rest");
}

std::string sealed(FrameSealer& sealer, uint8_t kind, const std::string& text) {
  return sealer.seal(kind, Payload(text)) + text;
}

TEST(Frame, ArrivesWholeWhateverThePieces) {
  FrameSealer sealer(kKey);
  FrameOpener opener(kKey, 100);
  std::string stream = sealed(sealer, 1, "first");
  stream += sealed(sealer, 2, "");
  stream += sealed(sealer, 3, "third");
  std::string input, seen;
  for (char byte : stream) {
    input.push_back(byte);
    while (const auto frame = opener.next(input)) seen += std::to_string(frame->kind) + frame->payload + ";";
  }
  EXPECT_EQ(seen, "1first;2;3third;");
  EXPECT_FALSE(opener.broken());
  EXPECT_TRUE(input.empty());
}

TEST(Frame, WithAnyChangedByteBreaksTheConnection) {
  FrameSealer sealer(kKey);
  const std::string good = sealed(sealer, 1, "hello");
  for (size_t i = 0; i < good.size(); ++i) {
    FrameOpener opener(kKey, 100);
    std::string input = good;
    input[i] = static_cast<char>(input[i] ^ 1);
    input += std::string(200, 'x');  // enough for a longer length
    EXPECT_FALSE(opener.next(input)) << i;
    EXPECT_TRUE(opener.broken()) << i;
  }
}

TEST(Frame, RepeatedOrSkippedIsRefused) {
  FrameSealer sealer(kKey);
  const std::string first = sealed(sealer, 1, "a"), second = sealed(sealer, 1, "b");
  FrameOpener repeated(kKey, 100), skipped(kKey, 100);
  std::string input = first + first;
  EXPECT_TRUE(repeated.next(input));
  EXPECT_FALSE(repeated.next(input));
  EXPECT_TRUE(repeated.broken());
  input = second;
  EXPECT_FALSE(skipped.next(input));
  EXPECT_TRUE(skipped.broken());
}

TEST(Frame, LongerThanTheLimitIsRefusedByItsHead) {
  FrameOpener opener(kKey, 100);
  std::string input = encodeFrameHead({UINT32_MAX, 1, 0, {}});
  EXPECT_FALSE(opener.next(input));
  EXPECT_TRUE(opener.broken());
}

}  // namespace
}  // namespace topoccl
