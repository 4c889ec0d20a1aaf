#include "base/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/crypto.h"
#include "base/memory_file.h"
#include "base/socket.h"

namespace topoccl {
namespace {

Wait soon() {
  return {Deadline::in(std::chrono::seconds(10)), nullptr};
}

std::string freshName() {
  return "topoccl-test-" + hexadecimal(random<uint64_t>());
}

TEST(UnixSocket, HandsAMemoryFileToAnotherProcess) {
  const std::string name = freshName();
  const Descriptor listener = listenAbstract(name);
  const MemoryFile memory = MemoryFile::create(4096, "test");
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      const Descriptor socket = connectAbstract(name, soon());
      const MemoryFile mapped = MemoryFile::adopt(receiveDescriptor(socket.get(), soon(), "receiving"), 4096);
      mapped.data()[5] = std::byte{42};
      code = peerIsSameUser(socket.get()) ? 0 : 2;
    } catch (const Error&) {
    }
    _exit(code);
  }
  waitUntilReady(listener.get(), POLLIN, soon(), "accepting");
  int error = 0;
  const Descriptor socket = tryAccept(listener.get(), error);
  EXPECT_TRUE(peerIsSameUser(socket.get()));
  sendDescriptor(socket.get(), memory.descriptor(), soon(), "sending");
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory.data()[5], std::byte{42});
}

TEST(UnixSocket, KnowsAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string name = freshName();
  const Descriptor listener = listenAbstract(name);
  const pid_t child = fork();
  if (child == 0) {
    if (::setuid(65534) != 0) _exit(3);
    const Descriptor socket = connectAbstract(name, soon());
    char byte;
    _exit(::recv(socket.get(), &byte, 1, 0) >= -1 ? 0 : 1);
  }
  waitUntilReady(listener.get(), POLLIN, soon(), "accepting");
  int error = 0;
  {
    const Descriptor socket = tryAccept(listener.get(), error);
    EXPECT_FALSE(peerIsSameUser(socket.get()));
  }
  waitpid(child, nullptr, 0);
}

TEST(UnixSocket, NobodyListeningIsAnErrorAtOnce) {
  EXPECT_THROW(connectAbstract(freshName(), soon()), Error);
}

int openDescriptors() {
  int count = 0;
  for (int number = 0; number < 256; ++number) count += ::fcntl(number, F_GETFD) >= 0;
  return count;
}

TEST(UnixSocket, RefusesAndClosesWhatItDidNotAskFor) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Descriptor one(ends[0]), two(ends[1]);
  const int before = openDescriptors();

  ASSERT_EQ(::send(one.get(), "x", 1, 0), 1);
  EXPECT_THROW(receiveDescriptor(two.get(), soon(), "receiving"), Error);

  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(3 * sizeof(int));
  const int three[] = {0, 0, 0};
  std::memcpy(CMSG_DATA(part), three, sizeof(three));
  ASSERT_EQ(::sendmsg(one.get(), &message, 0), 1);
  EXPECT_THROW(receiveDescriptor(two.get(), soon(), "receiving"), Error);
  EXPECT_EQ(openDescriptors(), before);
}

TEST(UnixSocket, SaysThatNoDescriptorIsLeftToReceive) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Descriptor one(ends[0]), two(ends[1]);
  sendDescriptor(one.get(), one.get(), soon(), "sending");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Code code = Code::Success;
  try {
    receiveDescriptor(two.get(), soon(), "receiving");
  } catch (const Error& error) {
    code = error.code();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(code, Code::SystemError);
}

}  // namespace
}  // namespace topoccl
