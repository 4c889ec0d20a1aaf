#include "algorithms/interpreter.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "base/error.h"
#include "schedule/stepper.h"

namespace topoccl {
namespace {

// An element: its number, how often it was finalised, and a fingerprint of how it was computed.
struct Element {
  uint64_t sum = 0;
  uint64_t finals = 0;
  uint64_t how = 0;
};

// Of collectives that reduce.
constexpr uint64_t kPreMultiplier = 3;

uint64_t stir(uint64_t a, uint64_t b) {
  return (a * 6364136223846793005u + b + 1) * 1442695040888963407u;
}

struct Packet {
  uint64_t piece = 0;
  uint32_t chunk = 0;
  std::vector<Element> data;
  std::vector<const Element*> reference;  // instead of data; null entries are empty pieces
  bool referenceIsIn = false;
  std::map<int, bool> delivered;  // by reader: written to its offered destination already
};

struct Fifo {
  std::deque<Packet> packets;  // all that some reader still needs
  uint64_t dropped = 0;
  uint64_t sent = 0;
  std::map<int, uint64_t> taken;           // by reader
  std::map<int, std::vector<Step>> steps;  // by reader, the steps that take from here
  std::map<int, std::vector<bool>> plain;  // whether those steps only store
};

using Key = std::tuple<int, std::vector<int>, int, int>;

struct Buffers {
  std::vector<Element> in, out, scratch;
};

class Interpreter {
 public:
  Interpreter(const std::vector<Schedule>& schedules, const Goal& goal, const InterpretOptions& options)
      : schedules_(schedules), goal_(goal), options_(options), random_(options.seed) {
    for (const Schedule& schedule : schedules) prepare(schedule);
  }

  std::string run() {
    struct Place {
      size_t rank;
      uint32_t lane;
      LaneCursor cursor;
    };
    std::vector<Place> running;
    for (size_t rank = 0; rank < schedules_.size(); ++rank)
      for (uint32_t lane = 0; lane < schedules_[rank].lanes.size(); ++lane)
        running.push_back({rank, lane, {}});
    while (!running.empty()) {
      std::shuffle(running.begin(), running.end(), random_);
      bool progress = false;
      for (Place& place : running) {
        rank_ = place.rank;
        const auto limit = static_cast<uint32_t>(1 + random_() % 4);
        const Advance advanced = advance(view(schedule()), place.lane, place.cursor, *this, limit);
        if (advanced.state == LaneState::Failed) return fault_;
        progress = progress || advanced.steps != 0 || advanced.state == LaneState::Done;
      }
      std::erase_if(running, [&](const Place& place) { return place.cursor.piece == options_.pieces; });
      if (!progress) return "deadlock";
    }
    return judge();
  }

  uint64_t pieces() const { return options_.pieces; }
  void begin(uint32_t, uint64_t) {}

  bool ready(const Operand& operand) {
    Fifo& fifo = fifoOf(operand);
    const int rank = schedule().rank;
    if (operand.place == Place::Receive) return fifo.taken[rank] < fifo.sent;
    return fifo.packets.size() < options_.slots;
  }

  bool perform(const Step& step, const Operand* inputs, const Operand* outputs, uint64_t piece) {
    const bool onlyStores = step.inputCount == 1 && step.outputCount == 1 &&
                            inputs[0].place == Place::Receive && outputs[0].place == Place::Out &&
                            !step.final;
    if (onlyStores && packetOf(inputs[0]).delivered[schedule().rank]) {
      if (!matches(step, inputs[0], piece)) return false;
      take(inputs[0]);
      return true;
    }
    std::vector<std::vector<Element>> terms;
    for (uint32_t i = 0; i < step.inputCount; ++i) {
      if (inputs[i].place == Place::Receive && !matches(step, inputs[i], piece)) return false;
      terms.push_back(load(step, inputs[i], piece));
    }
    const std::vector<Element> result = reduce(step, terms);
    for (uint32_t o = 0; o < step.outputCount; ++o)
      if (outputs[o].place != Place::Send) store(buffer(rank_, outputs[o].place), step, piece, result);
    for (uint32_t o = 0; o < step.outputCount; ++o)
      if (outputs[o].place == Place::Send) send(step, inputs, outputs[o], piece, result);
    for (uint32_t i = 0; i < step.inputCount; ++i)
      if (inputs[i].place == Place::Receive) take(inputs[i]);
    return true;
  }

 private:
  void prepare(const Schedule& schedule) {
    Buffers& buffers = buffers_.emplace_back();
    buffers.in.resize(schedule.chunks * options_.pieces);
    buffers.out.resize(schedule.chunks * options_.pieces, {0xdead, 0, 0});
    buffers.scratch.resize(schedule.scratchChunks * options_.pieces, {0xdead, 0, 0});
    for (Element& element : buffers.in) element = {random_(), 0, random_()};
    originals_.push_back(buffers.in);
    for (const Step& step : schedule.steps)
      for (uint32_t i = 0; i < step.inputCount; ++i) {
        const Operand* operands = schedule.operands.data() + step.firstOperand;
        if (operands[i].place != Place::Receive) continue;
        Fifo& fifo = fifos_[keyOf(schedule.connections[operands[i].connection])];
        fifo.steps[schedule.rank].push_back(step);
        fifo.plain[schedule.rank].push_back(step.inputCount == 1 && step.outputCount == 1 &&
                                            operands[1].place == Place::Out && !step.final);
      }
  }

  static Key keyOf(const Connection& c) { return {c.from, c.readers, c.channel, c.tag}; }
  const Schedule& schedule() const { return schedules_[rank_]; }
  Fifo& fifoOf(const Operand& operand) { return fifos_[keyOf(schedule().connections[operand.connection])]; }

  Packet& packetOf(const Operand& operand) {
    Fifo& fifo = fifoOf(operand);
    return fifo.packets[fifo.taken[schedule().rank] - fifo.dropped];
  }

  bool empty(uint32_t chunk, uint64_t piece) const {
    return chunk / schedules_[0].blocks % 2 == 1 && piece + 1 == options_.pieces;
  }

  std::vector<Element>& buffer(size_t rank, Place place) {
    Buffers& buffers = buffers_[rank];
    if (place == Place::Scratch) return buffers.scratch;
    return place == Place::In || options_.inPlace ? buffers.in : buffers.out;
  }

  bool matches(const Step& step, const Operand& operand, uint64_t piece) {
    const Packet& packet = packetOf(operand);
    const size_t span = std::max(packet.data.size(), packet.reference.size());
    if (packet.chunk == step.inChunk && packet.piece == piece && span == step.span) return true;
    fault_ = "a packet of another chunk";
    return false;
  }

  // A pre-multiplier is applied to whatever is read through `in`.
  Element loaded(Element element, bool in) const {
    if (in) element.sum *= multiplier();
    return element;
  }
  uint64_t multiplier() const { return goal_.final ? kPreMultiplier : 1; }

  std::vector<Element> load(const Step& step, const Operand& operand, uint64_t piece) {
    std::vector<Element> elements(step.span);
    if (operand.place == Place::Receive) {
      const Packet& packet = packetOf(operand);
      if (packet.reference.empty()) return packet.data;
      for (size_t i = 0; i < step.span; ++i)
        if (packet.reference[i] != nullptr) elements[i] = loaded(*packet.reference[i], packet.referenceIsIn);
      return elements;
    }
    for (uint32_t i = 0; i < step.span; ++i)
      elements[i] = loaded(buffer(rank_, operand.place)[(step.inChunk + i) * options_.pieces + piece],
                           operand.place == Place::In);
    return elements;
  }

  static std::vector<Element> reduce(const Step& step, const std::vector<std::vector<Element>>& terms) {
    std::vector<Element> result = terms[0];
    for (size_t i = 0; i < result.size(); ++i) {
      for (size_t k = 1; k < terms.size(); ++k) {
        result[i].sum += terms[k][i].sum;
        result[i].finals += terms[k][i].finals;
        result[i].how = stir(result[i].how, terms[k][i].how);
      }
      if (terms.size() > 1) result[i].how = stir(result[i].how, 17);
      if (step.final) ++result[i].finals;
    }
    return result;
  }

  void store(std::vector<Element>& buffer, const Step& step, uint64_t piece,
             const std::vector<Element>& result) const {
    for (uint32_t i = 0; i < step.span; ++i)
      if (!empty(step.outChunk + i, piece)) buffer[(step.outChunk + i) * options_.pieces + piece] = result[i];
  }

  void send(const Step& step, const Operand* inputs, const Operand& operand, uint64_t piece,
            const std::vector<Element>& result) {
    Fifo& fifo = fifoOf(operand);
    Packet packet;
    packet.piece = piece;
    packet.chunk = step.outChunk;
    const Place from = inputs[0].place;
    if (step.inputCount == 1 && !step.final && (from == Place::In || from == Place::Out) &&
        !(options_.inPlace && schedule().copyInPlace) && coin()) {
      packet.referenceIsIn = from == Place::In;
      for (uint32_t i = 0; i < step.span; ++i)
        packet.reference.push_back(empty(step.inChunk + i, piece)
                                       ? nullptr
                                       : &buffer(rank_, from)[(step.inChunk + i) * options_.pieces + piece]);
    } else {
      packet.data = result;
    }
    for (const int reader : schedule().connections[operand.connection].readers)
      packet.delivered[reader] = deliver(fifo, reader, result);
    fifo.packets.push_back(std::move(packet));
    ++fifo.sent;
  }

  // Writes to the destination that the reader's step for this packet may have offered.
  bool deliver(Fifo& fifo, int reader, const std::vector<Element>& result) {
    const std::vector<Step>& steps = fifo.steps[reader];
    if (steps.empty()) return false;
    const size_t index = fifo.sent % steps.size();
    const uint64_t piece = fifo.sent / steps.size();
    if (!fifo.plain[reader][index] || piece >= options_.pieces || steps[index].span != result.size() ||
        !coin())
      return false;
    store(buffer(static_cast<size_t>(reader), Place::Out), steps[index], piece, result);
    return true;
  }

  void take(const Operand& operand) {
    Fifo& fifo = fifoOf(operand);
    ++fifo.taken[schedule().rank];
    const auto& readers = schedule().connections[operand.connection].readers;
    const auto takenByAll = [&] {
      return std::all_of(readers.begin(), readers.end(),
                         [&](int reader) { return fifo.taken[reader] > fifo.dropped; });
    };
    while (!fifo.packets.empty() && takenByAll()) {
      fifo.packets.pop_front();
      ++fifo.dropped;
    }
  }

  bool coin() { return options_.share && random_() % 4 != 0; }

  std::string judge() {
    for (auto& [key, fifo] : fifos_)
      if (!fifo.packets.empty()) return "a packet is left";
    std::map<std::pair<Wanted, uint64_t>, uint64_t> ways;
    for (size_t rank = 0; rank < schedules_.size(); ++rank)
      for (uint32_t chunk = 0; chunk < schedules_[0].chunks; ++chunk)
        for (uint64_t piece = 0; piece < options_.pieces; ++piece) {
          const std::string flaw = flawOf(rank, chunk, piece, ways);
          if (!flaw.empty()) return concat("rank ", rank, " chunk ", chunk, ": ", flaw);
        }
    return "";
  }

  // `ways`: how ranks before this one computed the same.
  std::string flawOf(size_t rank, uint32_t chunk, uint64_t piece,
                     std::map<std::pair<Wanted, uint64_t>, uint64_t>& ways) {
    const Wanted wanted = goal_.wanted(static_cast<int>(rank), chunk);
    if (wanted.ranks == 0 || empty(chunk, piece)) return "";
    uint64_t expected = 0;
    for (int from = wanted.firstRank; from < wanted.firstRank + wanted.ranks; ++from)
      expected +=
          multiplier() * originals_[static_cast<size_t>(from)][wanted.chunk * options_.pieces + piece].sum;
    const Element& element = buffer(rank, Place::Out)[chunk * options_.pieces + piece];
    if (element.sum != expected) return "wrong sum";
    if (element.finals != (goal_.final ? 1 : 0)) return concat("final ", element.finals);
    if (ways.try_emplace({wanted, piece}, element.how).first->second != element.how) return "another order";
    return "";
  }

  const std::vector<Schedule>& schedules_;
  const Goal& goal_;
  InterpretOptions options_;
  std::mt19937_64 random_;
  std::vector<Buffers> buffers_;
  std::vector<std::vector<Element>> originals_;
  std::map<Key, Fifo> fifos_;
  size_t rank_ = 0;
  std::string fault_;
};

}  // namespace

std::string interpret(const std::vector<Schedule>& schedules, const Goal& goal,
                      const InterpretOptions& options) {
  return Interpreter(schedules, goal, options).run();
}

}  // namespace topoccl
