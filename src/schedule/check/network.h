// All connections of a collective: FIFOs of bounded length whose slots carry symbols and clocks.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "schedule/check/clocks.h"
#include "schedule/check/symbols.h"
#include "schedule/step.h"

namespace topoccl {

// A full slot. With `referent` other than Send it holds no data but refers to that buffer of the sender.
struct Message {
  uint64_t piece = 0;
  uint32_t chunk = 0;
  uint32_t span = 1;
  std::vector<Value> values;  // by chunk of the span
  Stamp stamp;
  uint32_t senderStep = 0;
  Place referent = Place::Send;
  uint32_t referentChunk = 0;
  uint32_t readersLeft = 0;
};

// A step that receives from a connection, and where it stores. Only steps that do nothing else offer their
// destination to the sender.
struct ReaderStep {
  const Step* step = nullptr;
  bool offers = false;
};

struct Reader {
  int rank = 0;
  bool used = false;
  uint32_t lane = 0;  // of the whole collective
  uint64_t received = 0;
  std::vector<ReaderStep> steps;  // in the order in which they take messages, once per piece
  std::shared_ptr<Known> learned;
};

struct Link {
  const Connection* key = nullptr;
  bool used = false;
  uint32_t senderLane = 0;  // of the whole collective
  std::deque<Message> slots;
  uint64_t freed = 0;  // messages that all readers have freed
  std::vector<Reader> readers;

  uint64_t sent() const { return freed + slots.size(); }
};

class Network {
 public:
  // `flaw` becomes what is wrong with the ends: a key that one of its ranks does not have.
  Network(const std::vector<Schedule>& schedules, std::string& flaw);

  Link& link(int rank, const Operand& operand) { return links_[ends_[index(rank)][operand.connection]]; }
  Reader& reader(int rank, const Operand& operand);
  std::vector<Link>& links() { return links_; }

  // The message that the reader takes next, or null.
  static Message* next(Link& link, const Reader& reader);

  // The reader frees the message that it took.
  static void free(Link& link, Reader& reader);

 private:
  static size_t index(int rank) { return static_cast<size_t>(rank); }
  void noteUses(const Schedule& schedule, uint32_t firstLane);
  void noteUse(const Schedule& schedule, const Step& step, uint32_t lane);

  std::vector<Link> links_;
  std::vector<std::vector<uint32_t>> ends_;  // by rank and connection: index into links_
};

}  // namespace topoccl
