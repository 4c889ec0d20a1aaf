#include "schedule/builder.h"

#include <algorithm>
#include <utility>

namespace topoccl {

ScheduleBuilder::ScheduleBuilder(int ranks, int rank, uint32_t chunks, uint32_t blocks) {
  schedule_.ranks = ranks;
  schedule_.rank = rank;
  schedule_.chunks = chunks;
  schedule_.blocks = blocks;
}

Operand ScheduleBuilder::send(std::vector<int> readers, int channel, int tag) {
  return {Place::Send, connection({schedule_.rank, std::move(readers), channel, tag})};
}

Operand ScheduleBuilder::receive(int from, std::vector<int> readers, int channel, int tag) {
  return {Place::Receive, connection({from, std::move(readers), channel, tag})};
}

uint32_t ScheduleBuilder::connection(Connection key) {
  std::sort(key.readers.begin(), key.readers.end());
  auto& all = schedule_.connections;
  const auto found = std::find(all.begin(), all.end(), key);
  if (found != all.end()) return static_cast<uint32_t>(found - all.begin());
  all.push_back(std::move(key));
  return static_cast<uint32_t>(all.size() - 1);
}

void ScheduleBuilder::lane() {
  schedule_.lanes.push_back({static_cast<uint32_t>(schedule_.steps.size()), 0});
}

void ScheduleBuilder::step(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                           uint32_t chunk, uint32_t span, bool final) {
  step(inputs, outputs, chunk, chunk, span, final);
}

void ScheduleBuilder::step(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                           uint32_t inChunk, uint32_t outChunk, uint32_t span, bool final) {
  if (schedule_.lanes.empty()) lane();
  Step step;
  step.firstOperand = static_cast<uint32_t>(schedule_.operands.size());
  step.inputCount = static_cast<uint32_t>(inputs.size());
  step.outputCount = static_cast<uint32_t>(outputs.size());
  step.inChunk = inChunk;
  step.outChunk = outChunk;
  step.span = span;
  step.final = final;
  slotChunks(span);
  schedule_.operands.insert(schedule_.operands.end(), inputs.begin(), inputs.end());
  schedule_.operands.insert(schedule_.operands.end(), outputs.begin(), outputs.end());
  schedule_.steps.push_back(step);
  ++schedule_.lanes.back().stepCount;
}

}  // namespace topoccl
