#include "base/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <thread>

namespace topoccl {
namespace {

using std::chrono::milliseconds;

Wait soon(int count = 10'000) {
  return {Deadline::in(milliseconds(count)), nullptr};
}

struct Pair {
  Descriptor client, server;

  explicit Pair(const std::string& address = "127.0.0.1:0") {
    const Descriptor listener = listenOn(SocketAddress::parse(address));
    int error = 0;
    client = tryConnect(localAddress(listener.get()), soon(), error);
    waitUntilReady(listener.get(), POLLIN, soon(), "accepting");
    server = tryAccept(listener.get(), error);
  }
};

TEST(SocketAddress, ParsesBothFamilies) {
  EXPECT_EQ(SocketAddress::parse("127.0.0.1:80").text(), "127.0.0.1:80");
  EXPECT_EQ(SocketAddress::parse("[::1]:80").text(), "[::1]:80");
  EXPECT_EQ(SocketAddress::parse("localhost:5").port(), 5);
  EXPECT_EQ(SocketAddress::parse("[::1]:80").withPort(81).text(), "[::1]:81");
}

TEST(SocketAddress, RefusesWhatIsNoHostAndPort) {
  for (const char* text :
       {"", ":", "127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:x", "127.0.0.1:65536", "1:999999"})
    EXPECT_THROW(SocketAddress::parse(text), Error) << text;
}

TEST(Socket, CarriesBytesOverBothFamilies) {
  for (const char* address : {"127.0.0.1:0", "[::1]:0"}) {
    const Pair pair(address);
    const std::string sent(1 << 20, 'x');
    std::thread sender([&] { sendAll(pair.client.get(), sent, soon(), "sending"); });
    std::string received(sent.size(), '\0');
    receiveAll(pair.server.get(), received.data(), received.size(), soon(), "receiving");
    sender.join();
    EXPECT_EQ(received, sent);
  }
}

TEST(Socket, ClosesOnExec) {
  const Pair pair;
  EXPECT_TRUE(::fcntl(pair.client.get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(::fcntl(pair.server.get(), F_GETFD) & FD_CLOEXEC);
}

TEST(Socket, WaitsEndAtTheirDeadline) {
  const Pair pair;
  char byte;
  EXPECT_THROW(receiveAll(pair.client.get(), &byte, 1, soon(30), "receiving"), TimeoutError);
}

TEST(Socket, WaitsEndOnAbort) {
  const Pair pair;
  std::atomic<bool> abort{false};
  std::thread aborter([&] {
    std::this_thread::sleep_for(milliseconds(30));
    abort = true;
  });
  char byte;
  EXPECT_THROW(receiveAll(pair.client.get(), &byte, 1, {Deadline::never(), &abort}, "receiving"),
               AbortedError);
  aborter.join();
}

TEST(Socket, SendingToAClosedPeerIsAnErrorAndNoSignal) {
  Pair pair;
  pair.server.reset();
  const std::string bytes(1 << 20, 'x');
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) sendAll(pair.client.get(), bytes, soon(), "sending");
      },
      Error);
}

TEST(Socket, EndOfFileIsARemoteError) {
  Pair pair;
  pair.server.reset();
  char byte;
  try {
    receiveAll(pair.client.get(), &byte, 1, soon(), "receiving");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::RemoteError);
  }
}

TEST(Socket, RefusedConnectIsReportedForAnotherTry) {
  Descriptor listener = listenOn(SocketAddress::parse("127.0.0.1:0"));
  const SocketAddress address = localAddress(listener.get());
  EXPECT_FALSE(tryListen(address));
  listener.reset();
  int error = 0;
  EXPECT_FALSE(tryConnect(address, soon(), error));
  EXPECT_EQ(error, ECONNREFUSED);
}

// Interrupts this process's threads with signals without SA_RESTART.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 500}, {0, 500}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Interruptions() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

TEST(Socket, SurvivesAStormOfSignals) {
  const Interruptions interruptions;
  for (int round = 0; round < 20; ++round) {
    const Pair pair;
    const std::string sent(1 << 18, 'x');
    std::thread sender([&] { sendAll(pair.client.get(), sent, soon(), "sending"); });
    std::string received(sent.size(), '\0');
    receiveAll(pair.server.get(), received.data(), received.size(), soon(), "receiving");
    sender.join();
    EXPECT_EQ(received, sent);
  }
}

}  // namespace
}  // namespace topoccl
