// Writes schedules: what emitters call. One builder makes the schedule of one rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/step.h"

namespace topoccl {

class ScheduleBuilder {
 public:
  // `chunks` is a multiple of `blocks`.
  ScheduleBuilder(int ranks, int rank, uint32_t chunks, uint32_t blocks = 1);

  // The connection with that key; made on first mention. `rank` must be `from` or one of the readers.
  Operand send(std::vector<int> readers, int channel, int tag);
  Operand receive(int from, std::vector<int> readers, int channel, int tag);
  Operand send(int to, int channel, int tag) { return send(std::vector<int>{to}, channel, tag); }
  Operand receive(int from, int channel, int tag) { return receive(from, {schedule_.rank}, channel, tag); }

  // Starts a lane; the steps that follow belong to it.
  void lane();

  // inChunk == outChunk == chunk.
  void step(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs, uint32_t chunk,
            uint32_t span = 1, bool final = false);
  void step(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs, uint32_t inChunk,
            uint32_t outChunk, uint32_t span, bool final);

  void scratch(uint32_t chunks) { schedule_.scratchChunks = chunks; }
  // A slot takes a piece of at least that many chunks (and of the longest span): needed where another rank's
  // steps span more than this one's.
  void slotChunks(uint32_t chunks) { schedule_.slotChunks = std::max(schedule_.slotChunks, chunks); }
  void minSlots(uint32_t slots) { schedule_.minSlots = slots; }
  void copyInPlace() { schedule_.copyInPlace = true; }

  Schedule take() { return std::move(schedule_); }

 private:
  uint32_t connection(Connection key);

  Schedule schedule_;
};

inline constexpr Operand kIn{Place::In};
inline constexpr Operand kOut{Place::Out};
inline constexpr Operand kScratch{Place::Scratch};

}  // namespace topoccl
