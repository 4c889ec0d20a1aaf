// Strangers at the root's port, while a communicator is made and used.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/socket.h"
#include "base/version.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/control_connection.h"
#include "ranks.h"

namespace topoccl {
namespace {

using namespace topoccl::testing;

Wait soon() {
  return {Deadline::in(std::chrono::seconds(10)), nullptr};
}

Descriptor strangerAt(const SocketAddress& address) {
  int error = 0;
  Descriptor socket = tryConnect(address, soon(), error);
  EXPECT_TRUE(socket);
  return socket;
}

// Sends what the root may refuse at any byte.
void sendLoosely(int socket, const std::string& bytes) {
  try {
    sendAll(socket, bytes, soon(), "attacking");
  } catch (const Error&) {
  }
}

// The communicator must start, work and end while `attack` has left its connections open.
void expectUnharmedBy(
    const std::function<std::vector<Descriptor>(const UniqueId&, const SocketAddress&)>& attack) {
  const Settings settings = settingsWithTimeout(20'000);
  const UniqueId id = getUniqueId(settings);
  const SocketAddress address = decodeUniqueId(id).address;
  const std::vector<Descriptor> before = attack(id, address);
  std::vector<std::unique_ptr<Bootstrap>> all(3);
  const auto errors = onThreads(3, [&](int rank) {
    auto& mine = all[static_cast<size_t>(rank)];
    mine = connectBootstrap(id, 3, rank, settings);
    if (!areAllBlobs(mine->allGather(blobOf(rank)), 3)) throw std::runtime_error("wrong blobs");
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  const std::vector<Descriptor> during = attack(id, address);
  const auto later = onThreads(3, [&](int rank) {
    auto& mine = all[static_cast<size_t>(rank)];
    if (!mine) return;
    if (!areAllBlobs(mine->allGather(blobOf(rank)), 3)) throw std::runtime_error("wrong blobs");
    if (const auto failure = mine->failure()) throw std::runtime_error(failure->reason);
    mine->leave();
  });
  for (const std::string& error : later) EXPECT_EQ(error, "");
}

TEST(Strangers, ThatSendGarbageAreTurnedAway) {
  expectUnharmedBy([](const UniqueId&, const SocketAddress& address) {
    std::vector<Descriptor> sockets;
    for (const size_t bytes : {1u, 47u, 48u, 49u, 1000u, 1u << 20}) {
      std::string garbage(bytes, '\0');
      randomBytes(garbage.data(), garbage.size());
      sockets.push_back(strangerAt(address));
      sendLoosely(sockets.back().get(), garbage);
    }
    return sockets;
  });
}

TEST(Strangers, ThatStaySilentOrGoHalfwayAreHarmless) {
  expectUnharmedBy([](const UniqueId&, const SocketAddress& address) {
    std::vector<Descriptor> sockets;
    for (int i = 0; i < 20; ++i) sockets.push_back(strangerAt(address));
    sockets.push_back(strangerAt(address));
    sendLoosely(sockets.back().get(), ClientHandshake(hash({"no key"}), Purpose::Control, 0).hello());
    sockets.push_back(strangerAt(address));
    ::shutdown(sockets.back().get(), SHUT_WR);
    const Descriptor closed = strangerAt(address);
    return sockets;
  });
}

TEST(Strangers, ByTheHundredsDoNotKeepRanksOut) {
  expectUnharmedBy([](const UniqueId&, const SocketAddress& address) {
    std::vector<Descriptor> sockets;
    for (int i = 0; i < 700; ++i) sockets.push_back(strangerAt(address));
    return sockets;
  });
}

TEST(Strangers, ThatReplayRecordedBytesAreTurnedAway) {
  expectUnharmedBy([](const UniqueId& id, const SocketAddress& address) {
    // What a rank of an earlier connection sent, as an eavesdropper records it.
    const Bytes32 key = sessionKey(decodeUniqueId(id).secret);
    ClientHandshake client(key, Purpose::Control, 1);
    ServerHandshake server(key, Purpose::Control, kRootRank);
    std::string recorded = client.hello(), input = recorded;
    recorded += *client.answer(server.advance(input));
    FrameSealer sealer(client.keys().toServer);
    const std::string join = encode(Join{kLibraryVersion, 3, 1, 1000, 1, 1, "replayed"});
    recorded += sealer.seal(static_cast<uint8_t>(Message::Join), Payload(join)) + join;
    std::vector<Descriptor> sockets;
    sockets.push_back(strangerAt(address));
    sendLoosely(sockets.back().get(), recorded);
    char byte;
    while (receiveSome(sockets.back().get(), &byte, 1, soon(), "waiting to be turned away") > 0) {
    }
    return sockets;
  });
}

TEST(Strangers, ThatHoldTheKeyButSendHugeLengthsAreTurnedAway) {
  expectUnharmedBy([](const UniqueId& id, const SocketAddress& address) {
    std::vector<Descriptor> sockets;
    sockets.push_back(strangerAt(address));
    const int socket = sockets.back().get();
    authenticate(socket, sessionKey(decodeUniqueId(id).secret), Purpose::Control, 1, kRootRank, soon(),
                 "attacking");
    sendLoosely(socket, encodeFrameHead({UINT32_MAX, 1, 0, {}}));
    char byte;
    try {
      while (receiveSome(socket, &byte, 1, soon(), "waiting to be turned away") > 0) {
      }
    } catch (const TimeoutError&) {
      ADD_FAILURE() << "the root kept the connection";
    } catch (const Error&) {
    }
    return sockets;
  });
}

TEST(Strangers, ThatSendOneByteAtATimeStillJoin) {
  const Settings settings = settingsWithTimeout(20'000);
  const UniqueId id = getUniqueId(settings);
  const Rendezvous rendezvous = decodeUniqueId(id);
  const Descriptor socket = strangerAt(rendezvous.address);
  const auto slowly = [&](const std::string& bytes) {
    for (char byte : bytes) sendAll(socket.get(), {&byte, 1}, soon(), "sending slowly");
  };
  ClientHandshake client(sessionKey(rendezvous.secret), Purpose::Control, 0);
  slowly(client.hello());
  std::string challenge(kChallengeBytes, '\0');
  for (char& byte : challenge) receiveAll(socket.get(), &byte, 1, soon(), "receiving slowly");
  const auto proof = client.answer(challenge);
  ASSERT_TRUE(proof);
  FrameSealer sealer(client.keys().toServer);
  const std::string join = encode(Join{kLibraryVersion, 1, 0, 10'000, 1, 1, "slow"});
  slowly(*proof + sealer.seal(static_cast<uint8_t>(Message::Join), Payload(join)) + join);
  FrameOpener opener(client.keys().toClient, kMaxFrameBytes);
  std::string input;
  for (const Message expected : {Message::Admitted, Message::Welcome}) {
    std::optional<Frame> frame;
    while (!(frame = opener.next(input))) {
      char byte;
      receiveAll(socket.get(), &byte, 1, soon(), "receiving slowly");
      input.push_back(byte);
    }
    EXPECT_EQ(frame->kind, static_cast<uint8_t>(expected));
  }
}

TEST(Servers, ThatAreNotTheRootAreNoticed) {
  const Descriptor listener = listenOn(SocketAddress::parse("127.0.0.1:0"));
  Rendezvous rendezvous;
  rendezvous.address = localAddress(listener.get());
  rendezvous.secret = random<Secret>();
  std::thread imposter([&] {
    waitUntilReady(listener.get(), POLLIN, soon(), "accepting");
    int error = 0;
    const Descriptor socket = tryAccept(listener.get(), error);
    std::string hello(kHelloBytes, '\0');
    receiveAll(socket.get(), hello.data(), hello.size(), soon(), "posing");
    ServerHandshake posing(hash({"a guess"}), Purpose::Control, kRootRank);
    sendAll(socket.get(), posing.advance(hello), soon(), "posing");
    char byte;
    EXPECT_EQ(receiveSome(socket.get(), &byte, 1, soon(), "hoping for the proof"), 0u);
  });
  const auto errors = onThreads(
      1, [&](int) { connectBootstrap(encodeUniqueId(rendezvous), 2, 0, settingsWithTimeout(10'000)); });
  EXPECT_TRUE(contains(errors[0], "does not hold this id's secret")) << errors[0];
  imposter.join();
}

}  // namespace
}  // namespace topoccl
