#include "common/board_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "common/board.h"
#include "common/failure.h"

namespace topoccl::bench {
namespace {

class BoardFileTest : public testing::Test {
 protected:
  BoardFileTest() {
    char name[] = "/tmp/board_file_test.XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~BoardFileTest() override {
    unlink(boardPath(request(0)).c_str());
    rmdir(directory_.c_str());
  }

  BoardFileRequest request(int rank, int ranks = 3) const {
    return {directory_, "job", rank, ranks, Board::bytesNeeded(ranks), std::chrono::seconds(20)};
  }

  BoardFileRequest impatient(int rank) const {
    BoardFileRequest result = request(rank);
    result.patience = std::chrono::seconds(0);
    return result;
  }

  std::string directory_;
};

// Each rank in a process of its own, as a launcher starts them. Returns how many failed.
template <class Body>
int inProcesses(int ranks, Body&& body) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; rank++) {
    const pid_t pid = fork();
    if (pid == 0) _exit(body(rank) ? 0 : 1);
    children.push_back(pid);
  }
  int failed = 0;
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    failed += status != 0 ? 1 : 0;
  }
  return failed;
}

TEST_F(BoardFileTest, RanksShareABoardAndLeaveNoFile) {
  const int failed = inProcesses(3, [this](int rank) {
    const BoardFile file(request(rank));
    Board board(file.board(), 3, rank);
    const std::vector<int> all = board.gather(rank * 11);
    return all == std::vector<int>{0, 11, 22};
  });
  EXPECT_EQ(failed, 0);
  EXPECT_NE(access(boardPath(request(0)).c_str(), F_OK), 0);
}

TEST_F(BoardFileTest, AFileOfAKilledRunIsReplaced) {
  // A run that dies while it waits for its ranks leaves its file.
  const pid_t dead = fork();
  if (dead == 0) {
    const BoardFile file(request(0));
    _exit(0);
  }
  while (access(boardPath(request(0)).c_str(), F_OK) != 0) usleep(1000);
  usleep(50000);
  kill(dead, SIGKILL);
  waitpid(dead, nullptr, 0);
  ASSERT_EQ(access(boardPath(request(0)).c_str(), F_OK), 0);
  EXPECT_EQ(inProcesses(3,
                        [this](int rank) {
                          // Late, so that the others meet the stale file first.
                          if (rank == 0) usleep(100000);
                          const BoardFile file(request(rank));
                          Board board(file.board(), 3, rank);
                          return board.gather(rank).size() == 3;
                        }),
            0);
}

TEST_F(BoardFileTest, TheFileIsPrivateWhileRanksCome) {
  std::thread waiting([this] {
    BoardFileRequest short_ = request(0);
    short_.patience = std::chrono::seconds(1);
    EXPECT_THROW(BoardFile{short_}, Failure);
  });
  const std::string path = boardPath(request(0));
  struct stat info {};
  while (stat(path.c_str(), &info) != 0) usleep(1000);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  waiting.join();
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "left behind after giving up";
}

TEST_F(BoardFileTest, ALinkIsNotFollowed) {
  const std::string victim = directory_ + "/victim";
  { std::ofstream(victim) << "precious"; }
  ASSERT_EQ(symlink(victim.c_str(), boardPath(request(0)).c_str()), 0);
  EXPECT_THROW(BoardFile{impatient(1)}, Failure);
  EXPECT_THROW(BoardFile{impatient(0)}, Failure);
  std::string text;
  std::ifstream(victim) >> text;
  EXPECT_EQ(text, "precious");
  unlink(victim.c_str());
}

TEST_F(BoardFileTest, AFileThatOthersCanOpenIsNotTrusted) {
  const std::string path = boardPath(request(1));
  const int file = open(path.c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_EQ(ftruncate(file, 1 << 16), 0);
  fchmod(file, 0666);
  close(file);
  EXPECT_THROW(BoardFile{impatient(1)}, Failure);
}

TEST_F(BoardFileTest, AMissingRankZeroIsNamed) {
  try {
    const BoardFile file(impatient(2));
    FAIL() << "met nobody";
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("rank 2: rank 0 did not"), std::string::npos)
        << failure.what();
  }
}

TEST_F(BoardFileTest, ARankThatWaitsLongSaysOnceForWhom) {
  for (const int rank : {0, 2}) {
    BoardFileRequest alone = request(rank);
    alone.silence = std::chrono::milliseconds(50);
    alone.patience = std::chrono::milliseconds(300);
    testing::internal::CaptureStderr();
    EXPECT_THROW(BoardFile{alone}, Failure);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              rank == 0 ? "# rank 0: waiting for 2 of 3 ranks to come\n"
                        : "# rank 2: waiting for rank 0 to make " + boardPath(alone) + "\n");
  }
}

TEST_F(BoardFileTest, AFolderThatCannotBeWrittenLeadsToTheVariable) {
  BoardFileRequest nowhere = request(0);
  nowhere.directory += "/nowhere";
  try {
    const BoardFile file(nowhere);
    FAIL() << "made a file in no folder";
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("set XDG_RUNTIME_DIR to"), std::string::npos)
        << failure.what();
  }
}

TEST_F(BoardFileTest, ARankThatComesTwiceIsAnError) {
  EXPECT_EQ(inProcesses(3,
                        [this](int process) {
                          // Processes 1 and 2 both believe they are rank 1.
                          BoardFileRequest mine = request(process == 0 ? 0 : 1);
                          mine.patience = std::chrono::seconds(2);
                          try {
                            const BoardFile file(mine);
                          } catch (const Failure&) {
                            return false;
                          }
                          return true;
                        }),
            3);
}

}  // namespace
}  // namespace topoccl::bench
