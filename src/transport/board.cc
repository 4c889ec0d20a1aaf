#include "transport/board.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "kernels/sync.h"

namespace topoccl {

namespace {

constexpr uint64_t kLine = 64;
constexpr size_t kCallWords = sizeof(CallDescriptor) / sizeof(uint64_t);
constexpr size_t kWaitWords = sizeof(WaitEntry) / sizeof(uint64_t);
static_assert(sizeof(CallDescriptor) == 32 && sizeof(WaitEntry) == 56 && sizeof(Invitation) == 152);

struct Heading {
  alignas(kLine) uint64_t poison;
  alignas(kLine) uint64_t reported;
};

// Word by word, since others read meanwhile. Releases, so that what marks a change comes before what changes.
void store(uint64_t* words, const void* value, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t word;
    std::memcpy(&word, static_cast<const char*>(value) + i * sizeof(word), sizeof(word));
    storeRelease(&words[i], word);
  }
}

void load(void* value, const uint64_t* words, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t word = loadAcquire(&words[i]);
    std::memcpy(static_cast<char*>(value) + i * sizeof(word), &word, sizeof(word));
  }
}

// Of things that are posted again and again: a version that never returns is zero while the rest changes.
template <class T>
struct Versioned {
  uint64_t version;
  uint64_t words[sizeof(T) / sizeof(uint64_t)];

  void post(uint64_t newVersion, const T& value) {
    storeRelease(&version, uint64_t{0});
    store(words, &value, std::size(words));
    storeRelease(&version, newVersion);
  }

  std::optional<T> read() const {
    const uint64_t before = loadAcquire(&version);
    T value;
    load(&value, words, std::size(words));
    if (before == 0 || loadAcquire(&version) != before) return std::nullopt;
    return value;
  }
};

template <size_t N>
void cutTo(std::array<char, N>& room, std::string_view text) {
  room.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), N - 1), room.begin());
}

template <size_t N>
std::string textIn(const std::array<char, N>& room) {
  return {room.data(), ::strnlen(room.data(), N)};
}

struct SentAndReceived {
  uint64_t sends;
  uint64_t receives;
};

// A rank's counts, for each peer: in cache lines of their own, as each call writes them.
uint64_t countsBytes(int nodeRanks) {
  return (static_cast<uint64_t>(nodeRanks) * sizeof(SentAndReceived) + kLine - 1) / kLine * kLine;
}

}  // namespace

void setText(Invitation& invitation, std::string_view text) {
  cutTo(invitation.text, text);
}

std::string textOf(const Invitation& invitation) {
  return textIn(invitation.text);
}

struct Board::Line {
  Doorbell doorbell;
  TouchLine touch;
  alignas(kLine) uint64_t calls[kHistory][kCallWords];
  alignas(kLine) uint64_t epoch;  // of the waits; 0 while they change
  uint64_t lastEpoch;
  uint64_t beats;
  uint64_t waitCount;
  uint64_t waits[kMostWaits][kWaitWords];
  alignas(kLine) uint64_t places;  // of invitations, taken so far ...
  uint64_t versions;               // ... and posted
  Versioned<Invitation> invitations[kInvitations];
  alignas(kLine) uint64_t words[kWordsBytes / sizeof(uint64_t)];
};

uint64_t Board::bytes(int nodeRanks) {
  return sizeof(Heading) + static_cast<uint64_t>(nodeRanks) * (sizeof(Line) + countsBytes(nodeRanks));
}

Board::Board(void* memory, int nodeRanks)
    : base_(static_cast<unsigned char*>(memory)), nodeRanks_(nodeRanks) {}

Board::Line& Board::line(int nodeRank) const {
  return reinterpret_cast<Line*>(base_ + sizeof(Heading))[nodeRank];
}
Doorbell& Board::doorbell(int nodeRank) const {
  return line(nodeRank).doorbell;
}
TouchLine& Board::touch(int nodeRank) const {
  return line(nodeRank).touch;
}
uint64_t* Board::poison() const {
  return &reinterpret_cast<Heading*>(base_)->poison;
}
uint64_t* Board::reported() const {
  return &reinterpret_cast<Heading*>(base_)->reported;
}

uint64_t* Board::begun(int nodeRank, int peer, bool sends) const {
  auto* const all = reinterpret_cast<unsigned char*>(&line(nodeRanks_));
  auto* const own =
      reinterpret_cast<SentAndReceived*>(all + static_cast<uint64_t>(nodeRank) * countsBytes(nodeRanks_));
  return sends ? &own[peer].sends : &own[peer].receives;
}

// ---- calls ----

// The number, a call's first word, is zero while the rest changes, and looked at twice.
void Board::post(int nodeRank, const CallDescriptor& call) const {
  uint64_t* const words = line(nodeRank).calls[call.number % kHistory];
  storeRelease(&words[0], uint64_t{0});
  store(words + 1, reinterpret_cast<const uint64_t*>(&call) + 1, kCallWords - 1);
  storeRelease(&words[0], call.number);
}

std::optional<CallDescriptor> Board::posted(int nodeRank, uint64_t number) const {
  const uint64_t* const words = line(nodeRank).calls[number % kHistory];
  CallDescriptor call;
  load(&call, words, kCallWords);
  if (number == 0 || call.number != number || loadAcquire(&words[0]) != number) return std::nullopt;
  return call;
}

CallDescriptor Board::lastPosted(int nodeRank) const {
  for (int tries = 0; tries < 3; ++tries) {
    uint64_t newest = 0;
    for (const auto& words : line(nodeRank).calls) newest = std::max(newest, loadAcquire(&words[0]));
    // Nothing if it has been overwritten since: there is a newer one.
    if (const std::optional<CallDescriptor> call = posted(nodeRank, newest)) return *call;
  }
  return {};
}

// ---- waits ----

void Board::postWaits(int nodeRank, const std::vector<WaitEntry>& waits) const {
  Line& mine = line(nodeRank);
  storeRelease(&mine.epoch, uint64_t{0});
  if (waits.empty()) return;
  const size_t count = std::min(waits.size(), kMostWaits);
  for (size_t i = 0; i < count; ++i) store(mine.waits[i], &waits[i], kWaitWords);
  storeRelease(&mine.waitCount, uint64_t{count});
  storeRelease(&mine.lastEpoch, mine.lastEpoch + 1);
  storeRelease(&mine.epoch, mine.lastEpoch);
}

void Board::beat(int nodeRank) const {
  Line& mine = line(nodeRank);
  storeRelease(&mine.beats, mine.beats + 1);
}

RankWaits Board::waits(int nodeRank) const {
  const Line& theirs = line(nodeRank);
  RankWaits waits;
  const uint64_t epoch = loadAcquire(&theirs.epoch);
  if (epoch == 0) return waits;
  waits.beats = loadAcquire(&theirs.beats);
  waits.entries.resize(std::min<uint64_t>(loadAcquire(&theirs.waitCount), kMostWaits));
  for (size_t i = 0; i < waits.entries.size(); ++i) load(&waits.entries[i], theirs.waits[i], kWaitWords);
  if (loadAcquire(&theirs.epoch) != epoch) return {};
  waits.epoch = epoch;
  return waits;
}

// ---- invitations and last words ----

uint64_t Board::newPlace(int nodeRank) const {
  return fetchAdd(&line(nodeRank).places, uint64_t{1});
}

void Board::invite(int nodeRank, uint64_t place, const Invitation& invitation) const {
  Line& mine = line(nodeRank);
  mine.invitations[place % kInvitations].post(fetchAdd(&mine.versions, uint64_t{1}) + 1, invitation);
}

std::vector<Invitation> Board::invitations(int nodeRank) const {
  std::vector<Invitation> all;
  for (const auto& place : line(nodeRank).invitations)
    if (const auto invitation = place.read()) all.push_back(*invitation);
  return all;
}

void Board::setLastWords(int nodeRank, std::string_view words) const {
  std::array<char, kWordsBytes> text;
  cutTo(text, words);
  store(line(nodeRank).words, text.data(), kWordsBytes / sizeof(uint64_t));
}

std::string Board::lastWords(int nodeRank) const {
  std::array<char, kWordsBytes> text;
  load(text.data(), line(nodeRank).words, kWordsBytes / sizeof(uint64_t));
  return textIn(text);
}

}  // namespace topoccl
