#include <sstream>

#include "base/error.h"
#include "schedule/text.h"

namespace topoccl {
namespace {

void printRange(std::ostream& text, uint32_t first, uint32_t span) {
  text << first;
  if (span != 1) text << '-' << uint64_t{first} + span - 1;
}

void printOperand(std::ostream& text, const Operand& operand) {
  switch (operand.place) {
    case Place::Receive:
      text << 'r' << operand.connection;
      break;
    case Place::Send:
      text << 's' << operand.connection;
      break;
    case Place::In:
      text << "in";
      break;
    case Place::Out:
      text << "out";
      break;
    case Place::Scratch:
      text << "scratch";
      break;
  }
}

void printStep(std::ostream& text, const Schedule& schedule, const Step& step) {
  printRange(text, step.inChunk, step.span);
  if (step.outChunk != step.inChunk) {
    text << " > ";
    printRange(text, step.outChunk, step.span);
  }
  text << ':';
  const Operand* operand = schedule.operands.data() + step.firstOperand;
  for (uint32_t i = 0; i < step.inputCount; ++i) {
    text << (i == 0 ? " " : " + ");
    printOperand(text, *operand++);
  }
  text << " ->";
  for (uint32_t i = 0; i < step.outputCount; ++i) {
    text << (i == 0 ? " " : ", ");
    printOperand(text, *operand++);
  }
  if (step.final) text << " final";
}

void printConnection(std::ostream& text, const Connection& connection) {
  text << connection.from << " ->";
  char separator = ' ';
  for (const int reader : connection.readers) {
    text << separator << reader;
    separator = ',';
  }
  text << " channel " << connection.channel << " tag " << connection.tag;
}

}  // namespace

std::string print(const Operand& operand) {
  TextStream text;
  printOperand(text, operand);
  return text.str();
}

std::string print(const Connection& connection) {
  TextStream text;
  printConnection(text, connection);
  return text.str();
}

std::string print(const Schedule& schedule, const Step& step) {
  TextStream text;
  printStep(text, schedule, step);
  return text.str();
}

std::string print(const Schedule& schedule) {
  TextStream text;
  text << "rank " << schedule.rank << " of " << schedule.ranks << ", chunks " << schedule.chunks;
  if (schedule.blocks != 1) text << " in " << schedule.blocks << " blocks";
  text << ", scratch " << schedule.scratchChunks << ", slots " << schedule.minSlots;
  if (schedule.slotChunks != 1) text << " of " << schedule.slotChunks << " chunks";
  text << (schedule.copyInPlace ? ", copy in place\n" : "\n");
  for (size_t i = 0; i < schedule.connections.size(); ++i) {
    text << "connection " << i << ": ";
    printConnection(text, schedule.connections[i]);
    text << '\n';
  }
  for (size_t i = 0; i < schedule.lanes.size(); ++i) {
    text << "lane " << i << '\n';
    const Lane& lane = schedule.lanes[i];
    for (uint32_t s = 0; s < lane.stepCount; ++s) {
      text << "  ";
      printStep(text, schedule, schedule.steps[lane.firstStep + s]);
      text << '\n';
    }
  }
  return text.str();
}

}  // namespace topoccl
