// What the symbol machine does between works.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "schedule/check/machine.h"
#include "schedule/text.h"

namespace topoccl {

// Blocks are cut alike: whether a piece is empty depends on the part of the block.
bool SymbolMachine::isEmpty(uint32_t chunk, uint64_t piece) const {
  return options_.unequalChunks && chunk / schedules_[0].blocks % 2 == 1 && piece + 1 == options_.pieces;
}

Value SymbolMachine::initial(int of, uint32_t chunk, uint64_t piece) const {
  return isEmpty(chunk, piece) ? Symbols::kEmpty : symbols_.raw(of, chunk);
}

std::string SymbolMachine::beginWork() {
  for (Link& link : network_.links()) {
    link.freed = 0;
    for (Reader& reader : link.readers) reader.received = 0;
  }
  for (const Schedule& schedule : schedules_) {
    const int of = schedule.rank;
    if (!schedule.lanes.empty()) {
      const Access access = clocks_.user(of);
      std::string flaw = userTouches(of, Place::In, access);
      if (flaw.empty() && !options_.inPlace) flaw = userTouches(of, Place::Out, access);
      if (!flaw.empty()) return flaw;
    }
    for (uint64_t piece = 0; piece < options_.pieces; ++piece) {
      for (uint32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
        memory_.cell(of, Place::Out, chunk, piece).value = Symbols::kUnwritten;
        Cell& in = memory_.cell(of, Place::In, chunk, piece);
        in.value = in.asIn ? initial(of, chunk, piece) : Symbols::kUnwritten;
      }
      for (uint32_t chunk = 0; chunk < schedule.scratchChunks; ++chunk)
        memory_.cell(of, Place::Scratch, chunk, piece).value = Symbols::kUnwritten;
    }
  }
  return "";
}

std::string SymbolMachine::userTouches(int of, Place buffer, const Access& access) {
  const auto knows = [this, of](const Access& earlier) { return clocks_.knewAtBegin(of, earlier); };
  for (uint32_t chunk = 0; chunk < schedules_[static_cast<size_t>(of)].chunks; ++chunk)
    for (uint64_t piece = 0; piece < options_.pieces; ++piece) {
      Cell& cell = memory_.cell(of, buffer, chunk, piece);
      const Access* conflict = cell.asIn || cell.asOut ? write(cell, access, knows) : nullptr;
      if (conflict != nullptr)
        return concat("rank ", of, " gives ", buffer == Place::In ? "in" : "out", " chunk ", chunk, " piece ",
                      piece, " back to its user while nothing orders that after ", nameOf(*conflict));
    }
  return "";
}

std::string SymbolMachine::endWork() {
  std::string flaw = leftover();
  if (!flaw.empty()) return flaw;
  std::map<Wanted, Result> results;
  for (const Schedule& schedule : schedules_) {
    clocks_.join(schedule.rank);
    flaw = flawOfResults(schedule.rank, results);
    if (!flaw.empty()) return flaw;
  }
  return "";
}

std::string SymbolMachine::leftover() {
  for (Link& link : network_.links()) {
    if (link.slots.empty()) continue;
    const Message& message = link.slots.front();
    const auto behind = std::find_if(link.readers.begin(), link.readers.end(),
                                     [&](const Reader& reader) { return reader.received == link.freed; });
    return concat("rank ", behind->rank, " never takes chunk ", message.chunk, " piece ", message.piece,
                  " from connection ", print(*link.key), ", sent by ",
                  nameOf(message.stamp.lane, message.senderStep));
  }
  return "";
}

std::string SymbolMachine::flawOfResults(int of, std::map<Wanted, Result>& results) {
  for (uint32_t chunk = 0; chunk < schedules_[static_cast<size_t>(of)].chunks; ++chunk) {
    const Wanted wanted = goal_.wanted(of, chunk);
    if (wanted.ranks == 0) continue;
    Result& result = results[wanted];
    for (uint64_t piece = 0; piece < options_.pieces; ++piece) {
      const Cell& cell = memory_.cell(of, Place::Out, chunk, piece);
      std::string flaw;
      if (!clocks_.knewAtBegin(of, cell.write))
        flaw = "may still be written when the rank is done";
      else if (isEmpty(chunk, piece))
        flaw = cell.value == Symbols::kEmpty ? "" : "holds data of a longer chunk";
      else if (result.value == Symbols::kUnwritten)
        flaw = symbols_.flaw(cell.value, wanted, goal_.final);
      else if (cell.value != result.value)
        flaw = flawOfDifference(cell.value, result, wanted);
      else
        continue;
      if (!flaw.empty())
        return concat("rank ", of, " out chunk ", chunk, " piece ", piece, " ", flaw, ": ",
                      symbols_.print(cell.value, wanted.chunk), " of ", nameOf(cell.write));
      if (cell.value != Symbols::kEmpty) result = {cell.value, of};
    }
  }
  return "";
}

std::string SymbolMachine::flawOfDifference(Value value, const Result& result, const Wanted& wanted) const {
  std::string flaw = symbols_.flaw(value, wanted, goal_.final);
  if (!flaw.empty()) return flaw;
  return concat("is computed in another order than ", symbols_.print(result.value, wanted.chunk), " of rank ",
                result.rank);
}

}  // namespace topoccl
