// The board: what ranks post is read whole or not at all, while others write, and whatever stands there.
#include "transport/board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "base/memory_file.h"
#include "kernels/mix.h"
#include "kernels/sync.h"

namespace topoccl::test {
namespace {

struct BoardMemory {
  explicit BoardMemory(int ranks)
      : file(MemoryFile::anonymous(Board::bytes(ranks))), board(file.data(), ranks) {}
  MemoryFile file;
  Board board;
};

// A descriptor whose fields all follow from its number.
CallDescriptor callOf(uint64_t number) {
  CallDescriptor call;
  call.number = number;
  call.history = mix(number, 1);
  call.count = mix(number);
  call.collective = static_cast<uint8_t>(number);
  call.type = static_cast<uint8_t>(number >> 8);
  call.op = static_cast<uint8_t>(number >> 16);
  call.root = static_cast<int32_t>(mix(number) & 0xffff);
  return call;
}

WaitEntry waitOf(uint64_t number) {
  return {
      callOf(number), static_cast<int32_t>(number & 0xff), Awaited::Data, static_cast<uint32_t>(number), 3,
      mix(number)};
}

bool isWaitOf(uint64_t number, const WaitEntry& entry) {
  const WaitEntry expected = waitOf(number);
  return entry.call == expected.call && entry.peer == expected.peer && entry.what == expected.what &&
         entry.lane == expected.lane && entry.step == expected.step && entry.piece == expected.piece;
}

TEST(Board, RemembersTheLastCalls) {
  const BoardMemory memory(2);
  const Board& board = memory.board;
  EXPECT_EQ(board.lastPosted(1).number, 0U);
  for (uint64_t number = 1; number <= 20; ++number) {
    board.post(1, callOf(number));
    EXPECT_EQ(board.lastPosted(1), callOf(number));
    for (uint64_t back = 0; back <= 20; ++back) {
      const auto call = board.posted(1, back);
      const bool known = back >= 1 && back <= number && back + Board::kHistory > number;
      EXPECT_EQ(call.has_value(), known) << back << " of " << number;
      if (call) {
        EXPECT_EQ(*call, callOf(back));
      }
    }
  }
  EXPECT_EQ(board.lastPosted(0).number, 0U);
}

TEST(Board, CallsAreReadWholeOrNotAtAll) {
  constexpr uint64_t kCalls = 100'000;
  const BoardMemory memory(2);
  const Board& board = memory.board;
  uint32_t done = 0;
  std::thread poster([&] {
    for (uint64_t number = 1; number <= kCalls; ++number) board.post(1, callOf(number));
    storeRelease(&done, 1U);
  });
  uint64_t torn = 0, backwards = 0, last = 0;
  while (loadAcquire(&done) == 0) {
    const CallDescriptor call = board.lastPosted(1);
    if (call.number == 0) continue;
    torn += call == callOf(call.number) ? 0 : 1;
    backwards += call.number < last ? 1 : 0;
    last = call.number;
  }
  poster.join();
  EXPECT_EQ(torn, 0U);
  EXPECT_EQ(backwards, 0U);
  EXPECT_EQ(board.lastPosted(1), callOf(kCalls));
}

TEST(Board, WaitsAreReadWholeOrNotAtAll) {
  constexpr uint64_t kEpochs = 20'000;
  const BoardMemory memory(3);
  const Board& board = memory.board;
  EXPECT_EQ(board.waits(2).epoch, 0U);
  uint32_t done = 0;
  std::thread poster([&] {
    for (uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
      board.postWaits(2, std::vector<WaitEntry>(1 + epoch % 10, waitOf(epoch)));
      board.beat(2);
    }
    storeRelease(&done, 1U);
  });
  uint64_t torn = 0;
  while (loadAcquire(&done) == 0) {
    const RankWaits waits = board.waits(2);
    if (waits.epoch == 0) continue;
    torn += waits.entries.size() == std::min<size_t>(1 + waits.epoch % 10, Board::kMostWaits) ? 0 : 1;
    for (const WaitEntry& entry : waits.entries) torn += isWaitOf(waits.epoch, entry) ? 0 : 1;
  }
  poster.join();
  EXPECT_EQ(torn, 0U);
  EXPECT_EQ(board.waits(2).epoch, kEpochs);
  EXPECT_EQ(board.waits(2).beats, kEpochs);
  board.postWaits(2, {});
  EXPECT_EQ(board.waits(2).epoch, 0U);
  EXPECT_EQ(board.waits(1).epoch, 0U);
}

// The same place and meeting again and again, as it goes on.
TEST(Board, InvitationsAreReadWholeOrNotAtAll) {
  const BoardMemory memory(1);
  const Board& board = memory.board;
  const uint64_t place = board.newPlace(0);
  const auto invitationOf = [](uint64_t kind) {
    Invitation invitation{{5, 7}, kind, {}};
    setText(invitation, std::string(100, static_cast<char>('a' + kind)));
    return invitation;
  };
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (uint64_t kind = 1; !over; kind = kind % 3 + 1) board.invite(0, place, invitationOf(kind));
  });
  for (int read = 0; read < 20'000;) {
    for (const Invitation& found : board.invitations(0)) {
      EXPECT_EQ(textOf(found), textOf(invitationOf(found.kind)));
      ++read;
    }
  }
  over = true;
  writer.join();
}

TEST(Board, PlacesOfInvitationsTakeTurns) {
  const BoardMemory memory(1);
  for (uint64_t i = 1; i <= 2 * Board::kInvitations; ++i) {
    memory.board.invite(0, memory.board.newPlace(0), {{1, i}, Invitation::Joins, {}});
    EXPECT_EQ(memory.board.invitations(0).size(), std::min(i, Board::kInvitations));
  }
}

TEST(Board, LastWordsAreCutToTheirRoom) {
  const BoardMemory memory(2);
  EXPECT_EQ(memory.board.lastWords(0), "");
  memory.board.setLastWords(0, std::string(2000, 'x'));
  EXPECT_EQ(memory.board.lastWords(0), std::string(Board::kWordsBytes - 1, 'x'));
  memory.board.setLastWords(0, "short");
  EXPECT_EQ(memory.board.lastWords(0), "short");
  EXPECT_EQ(memory.board.lastWords(1), "");
}

TEST(Board, CountsOfSendsAndReceivesAreOfEachPair) {
  constexpr int kRanks = 5;
  const BoardMemory memory(kRanks);
  const auto place = [](int from, int to, bool sends) {
    return static_cast<uint64_t>((from * kRanks + to) * 2 + (sends ? 1 : 0)) + 1;
  };
  for (int from = 0; from < kRanks; ++from)
    for (int to = 0; to < kRanks; ++to)
      for (const bool sends : {false, true})
        storeRelease(memory.board.begun(from, to, sends), place(from, to, sends));
  for (int from = 0; from < kRanks; ++from)
    for (int to = 0; to < kRanks; ++to)
      for (const bool sends : {false, true})
        EXPECT_EQ(loadAcquire(memory.board.begun(from, to, sends)), place(from, to, sends));
}

// Reads end and stay inside, whatever a peer has written there.
TEST(Board, MayHoldAnything) {
  constexpr int kRanks = 3;
  std::minstd_rand random(1);
  for (int round = 0; round < 200; ++round) {
    const auto memory = std::make_unique<unsigned char[]>(Board::bytes(kRanks) + 64);
    const auto address = reinterpret_cast<uintptr_t>(memory.get());
    unsigned char* const begin = memory.get() + (64 - address % 64) % 64;
    for (uint64_t i = 0; i < Board::bytes(kRanks); ++i)
      begin[i] = static_cast<unsigned char>(round % 2 == 0 ? random() : random() % 4);
    const Board board(begin, kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      board.lastPosted(rank);
      for (uint64_t number = 0; number < 10; ++number) board.posted(rank, number);
      EXPECT_LE(board.waits(rank).entries.size(), Board::kMostWaits);
      EXPECT_LE(board.lastWords(rank).size(), Board::kWordsBytes);
    }
  }
}

}  // namespace
}  // namespace topoccl::test
