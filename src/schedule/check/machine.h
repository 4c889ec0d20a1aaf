// Symbols under the stepper: performs steps on Values instead of numbers and refuses the first step that
// breaks a rule.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schedule/check/clocks.h"
#include "schedule/check/memory.h"
#include "schedule/check/network.h"
#include "schedule/check/symbols.h"
#include "schedule/checker.h"

namespace topoccl {

// Where the lanes of all ranks are: they are numbered through, rank by rank.
struct LaneName {
  int rank = 0;
  uint32_t lane = 0;  // of the rank
};

// Everything that the lanes of all ranks share.
class SymbolMachine {
 public:
  // The schedules must be valid and agree with each other; they and the goal outlive this. Options are filled
  // in.
  SymbolMachine(const std::vector<Schedule>& schedules, const Goal& goal, const CheckOptions& options,
                Network& network);

  // Between works. Both return what is wrong, or an empty string.
  std::string beginWork();
  std::string endWork();

  // The lane (of the whole collective) that the stepper advances next.
  void enter(uint32_t lane) { lane_ = lane; }

  // What the stepper asks for.
  uint64_t pieces() const { return options_.pieces; }
  void begin(uint32_t, uint64_t) {}
  bool ready(const Operand& operand);
  bool perform(const Step& step, const Operand* inputs, const Operand* outputs, uint64_t piece);

  // Why perform() refused.
  const std::string& fault() const { return fault_; }

  // "rank 1 lane 0 step 2 `...`"
  std::string nameOf(uint32_t lane, uint32_t step) const;
  const std::vector<LaneName>& lanes() const { return lanes_; }

 private:
  using Values = std::vector<Value>;

  // What a rank computed for something that several ranks may want.
  struct Result {
    Value value = Symbols::kUnwritten;
    int rank = 0;
  };

  bool takeMessages(const Step& step, const Operand* inputs, uint64_t piece);
  bool readInputs(const Step& step, const Operand* inputs, uint64_t piece);
  bool readReferent(const Message& message);
  bool readBuffer(int rank, Place place, uint32_t chunk, uint32_t span, uint64_t piece, Value* values);
  bool combine(const Step& step);
  bool shiftsOntoItself(const Step& step, const Operand* inputs, const Operand* outputs) const;
  bool staysInPlace(const Step& step, const Operand* inputs) const;
  bool stillIn(Value value, int of, uint32_t chunk) const;
  bool writeOutputs(const Step& step, const Operand* inputs, const Operand* outputs, uint64_t piece);
  bool publish(const Step& step, const Operand* inputs, const Operand& output, uint64_t piece);
  bool writeOffer(const Link& link, const Reader& reader, uint64_t message);
  void freeMessages(const Step& step, const Operand* inputs);

  bool mayRefer(const Step& step, Place input) const;
  bool isEmpty(uint32_t chunk, uint64_t piece) const;
  Value initial(int rank, uint32_t chunk, uint64_t piece) const;
  std::string userTouches(int rank, Place buffer, const Access& access);
  std::string leftover();
  std::string flawOfResults(int rank, std::map<Wanted, Result>& results);
  std::string flawOfDifference(Value value, const Result& result, const Wanted& wanted) const;

  bool fail(const std::string& why);
  bool has(const Cell& cell, int rank, Place place, uint32_t chunk);
  bool race(const char* does, int rank, Place place, uint32_t chunk, uint64_t piece, const Access& earlier);
  std::string nameOf(const Access& access) const;

  int rank() const { return lanes_[lane_].rank; }
  const Schedule& schedule() const { return schedules_[static_cast<size_t>(rank())]; }

  const std::vector<Schedule>& schedules_;
  const Goal& goal_;
  CheckOptions options_;
  Network& network_;
  Symbols symbols_;
  Memory memory_;
  Clocks clocks_;
  std::vector<LaneName> lanes_;
  std::string fault_;

  // The step being performed.
  uint32_t lane_ = 0;
  Access now_;
  std::vector<Values> inputs_;  // by input, by chunk of the span
  Values terms_, result_;
};

}  // namespace topoccl
