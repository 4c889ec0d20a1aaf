// The checker is tested by breaking schedules. Whatever it lets pass must compute the right result, in the
// same way on all ranks, when the interpreter runs it; and every way of breaking must get caught.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/emitters.h"
#include "algorithms/interpreter.h"
#include "schedule/checker.h"
#include "schedule/text.h"
#include "schedule/validate.h"

namespace topoccl {
namespace {

// Two ranks have no scratch, three fold, four span chunks.
constexpr int kRankCounts[] = {2, 3, 4, 5};

// A schedule taken apart, so that steps can be moved.
struct LooseStep {
  std::vector<Operand> inputs, outputs;
  uint32_t inChunk, outChunk, span;
  bool final;
};

struct LooseSchedule {
  Schedule frame;  // connections and numbers
  std::vector<std::vector<LooseStep>> lanes;
};

LooseSchedule loosen(const Schedule& schedule) {
  LooseSchedule loose{schedule, {}};
  for (const Lane& lane : schedule.lanes) {
    auto& steps = loose.lanes.emplace_back();
    for (uint32_t s = 0; s < lane.stepCount; ++s) {
      const Step& step = schedule.steps[lane.firstStep + s];
      const Operand* operands = schedule.operands.data() + step.firstOperand;
      steps.push_back({{operands, operands + step.inputCount},
                       {operands + step.inputCount, operands + step.inputCount + step.outputCount},
                       step.inChunk,
                       step.outChunk,
                       step.span,
                       step.final});
    }
  }
  return loose;
}

Schedule fasten(const LooseSchedule& loose) {
  Schedule schedule = loose.frame;
  schedule.lanes.clear();
  schedule.steps.clear();
  schedule.operands.clear();
  for (const auto& steps : loose.lanes) {
    schedule.lanes.push_back(
        {static_cast<uint32_t>(schedule.steps.size()), static_cast<uint32_t>(steps.size())});
    for (const LooseStep& step : steps) {
      auto& operands = schedule.operands;
      schedule.steps.push_back(
          {static_cast<uint32_t>(operands.size()), static_cast<uint32_t>(step.inputs.size()),
           static_cast<uint32_t>(step.outputs.size()), step.inChunk, step.outChunk, step.span, step.final});
      operands.insert(operands.end(), step.inputs.begin(), step.inputs.end());
      operands.insert(operands.end(), step.outputs.begin(), step.outputs.end());
    }
  }
  return schedule;
}

using Yield = std::function<void(const LooseSchedule&)>;

// For mutations of one step: calls `mutate(copy, its lane, index of the step)` once per step.
template <class Mutate>
void perStep(const LooseSchedule& good, const Yield& yield, const Mutate& mutate) {
  for (size_t lane = 0; lane < good.lanes.size(); ++lane)
    for (size_t s = 0; s < good.lanes[lane].size(); ++s) {
      LooseSchedule mutant = good;
      if (mutate(mutant, mutant.lanes[lane], s)) yield(mutant);
    }
}

// The same for each operand of each step.
template <class Mutate>
void perOperand(const LooseSchedule& good, const Yield& yield, const Mutate& mutate) {
  for (size_t lane = 0; lane < good.lanes.size(); ++lane)
    for (size_t s = 0; s < good.lanes[lane].size(); ++s)
      for (const bool input : {true, false}) {
        const LooseStep& step = good.lanes[lane][s];
        for (size_t i = 0; i < (input ? step.inputs : step.outputs).size(); ++i) {
          LooseSchedule mutant = good;
          LooseStep& changed = mutant.lanes[lane][s];
          if (mutate(mutant, changed, input ? changed.inputs : changed.outputs, i, input)) yield(mutant);
        }
      }
}

using Steps = std::vector<LooseStep>;
using Operands = std::vector<Operand>;

struct Mutation {
  const char* name;
  std::function<void(const LooseSchedule&, const Yield&)> apply;
};

void changePlace(const LooseSchedule& good, const Yield& yield, Place from, Place to, bool wantInput) {
  perOperand(good, yield, [=](LooseSchedule& mutant, LooseStep&, Operands& operands, size_t i, bool input) {
    if (input != wantInput || operands[i].place != from) return false;
    operands[i].place = to;
    if (to == Place::Scratch) mutant.frame.scratchChunks = mutant.frame.chunks;
    return true;
  });
}

void changeConnections(const LooseSchedule& good, const Yield& yield) {
  for (uint32_t c = 0; c < good.frame.connections.size(); ++c)
    perOperand(good, yield, [c](LooseSchedule&, LooseStep&, Operands& operands, size_t i, bool) {
      const bool connects = operands[i].place == Place::Send || operands[i].place == Place::Receive;
      return connects && std::exchange(operands[i].connection, c) != c;
    });
}

void changePeers(const LooseSchedule& good, const Yield& yield) {
  for (size_t c = 0; c < good.frame.connections.size(); ++c)
    for (int peer = 0; peer < good.frame.ranks; ++peer) {
      LooseSchedule mutant = good;
      Connection& key = mutant.frame.connections[c];
      if (key.from == good.frame.rank)
        key.readers = {peer};
      else
        key.from = peer;
      if (key != good.frame.connections[c]) yield(mutant);
    }
}

void splitLanes(const LooseSchedule& good, const Yield& yield) {
  for (size_t lane = 0; lane < good.lanes.size(); ++lane)
    for (size_t s = 1; s < good.lanes[lane].size(); ++s) {
      LooseSchedule mutant = good;
      Steps& steps = mutant.lanes[lane];
      const Steps tail(steps.begin() + static_cast<std::ptrdiff_t>(s), steps.end());
      steps.resize(s);
      mutant.lanes.push_back(tail);
      yield(mutant);
    }
}

void mergeLanes(const LooseSchedule& good, const Yield& yield) {
  for (size_t a = 0; a < good.lanes.size(); ++a)
    for (size_t b = 0; b < good.lanes.size(); ++b) {
      if (a == b) continue;
      LooseSchedule mutant = good;
      Steps& steps = mutant.lanes[a];
      steps.insert(steps.end(), good.lanes[b].begin(), good.lanes[b].end());
      mutant.lanes.erase(mutant.lanes.begin() + static_cast<std::ptrdiff_t>(b));
      yield(mutant);
    }
}

const Mutation kMutations[] = {
    {"chunk",
     [](const auto& good, const Yield& yield) {
       perStep(good, yield, [](LooseSchedule& mutant, Steps& steps, size_t s) {
         steps[s].inChunk = steps[s].outChunk = (steps[s].inChunk + 1) % mutant.frame.chunks;
         return mutant.frame.chunks > 1;
       });
     }},
    {"in chunk",
     [](const auto& good, const Yield& yield) {
       perStep(good, yield, [](LooseSchedule& mutant, Steps& steps, size_t s) {
         steps[s].inChunk = (steps[s].inChunk + 1) % mutant.frame.chunks;
         return mutant.frame.chunks > 1;
       });
     }},
    {"out chunk",
     [](const auto& good, const Yield& yield) {
       perStep(good, yield, [](LooseSchedule& mutant, Steps& steps, size_t s) {
         steps[s].outChunk = (steps[s].outChunk + mutant.frame.chunks - 1) % mutant.frame.chunks;
         return mutant.frame.chunks > 1;
       });
     }},
    {"longer span",
     [](const auto& good, const Yield& yield) {
       perStep(good, yield, [](LooseSchedule&, Steps& steps, size_t s) { return ++steps[s].span != 0; });
     }},
    {"shorter span",
     [](const auto& good, const Yield& yield) {
       perStep(good, yield, [](LooseSchedule&, Steps& steps, size_t s) { return --steps[s].span != 0; });
     }},
    {"connection", changeConnections},
    {"peer", changePeers},
    {"input order",
     [](const auto& good, const Yield& yield) {
       perOperand(good, yield, [](LooseSchedule&, LooseStep&, Operands& operands, size_t i, bool input) {
         if (!input || i == 0) return false;
         std::swap(operands[i - 1], operands[i]);
         return true;
       });
     }},
    {"final",
     [](const auto& good, const Yield& yield) {
       perStep(good, yield, [](LooseSchedule&, Steps& steps, size_t s) {
         steps[s].final = !steps[s].final;
         return true;
       });
     }},
    {"dropped step",
     [](const auto& good, const Yield& yield) {
       perStep(good, yield, [](LooseSchedule&, Steps& steps, size_t s) {
         steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(s));
         return true;
       });
     }},
    {"repeated step",
     [](const auto& good, const Yield& yield) {
       perStep(good, yield, [](LooseSchedule&, Steps& steps, size_t s) {
         const LooseStep again = steps[s];
         steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(s), again);
         return true;
       });
     }},
    {"swapped steps",
     [](const auto& good, const Yield& yield) {
       perStep(good, yield, [](LooseSchedule&, Steps& steps, size_t s) {
         if (s == 0) return false;
         std::swap(steps[s - 1], steps[s]);
         return true;
       });
     }},
    {"in read as out",
     [](const auto& good, const Yield& yield) { changePlace(good, yield, Place::In, Place::Out, true); }},
    {"out read as in",
     [](const auto& good, const Yield& yield) { changePlace(good, yield, Place::Out, Place::In, true); }},
    {"in read as scratch",
     [](const auto& good, const Yield& yield) { changePlace(good, yield, Place::In, Place::Scratch, true); }},
    {"scratch read as in",
     [](const auto& good, const Yield& yield) { changePlace(good, yield, Place::Scratch, Place::In, true); }},
    {"out written as scratch",
     [](const auto& good, const Yield& yield) {
       changePlace(good, yield, Place::Out, Place::Scratch, false);
     }},
    {"scratch written as out",
     [](const auto& good, const Yield& yield) {
       changePlace(good, yield, Place::Scratch, Place::Out, false);
     }},
    {"all scratch as out",
     [](const auto& good, const Yield& yield) {
       LooseSchedule mutant = good;
       for (auto& lane : mutant.lanes)
         for (LooseStep& step : lane)
           for (Operands* operands : {&step.inputs, &step.outputs})
             for (Operand& operand : *operands)
               if (operand.place == Place::Scratch) operand.place = Place::Out;
       if (good.frame.scratchChunks != 0) yield(mutant);
     }},
    {"dropped input",
     [](const auto& good, const Yield& yield) {
       perOperand(good, yield, [](LooseSchedule&, LooseStep&, Operands& operands, size_t i, bool input) {
         if (!input || operands.size() == 1) return false;
         operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
         return true;
       });
     }},
    {"dropped output",
     [](const auto& good, const Yield& yield) {
       perOperand(good, yield, [](LooseSchedule&, LooseStep&, Operands& operands, size_t i, bool input) {
         if (input || operands.size() == 1) return false;
         operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
         return true;
       });
     }},
    {"split lane", splitLanes},
    {"merged lanes", mergeLanes},
    {"slots",
     [](const auto& good, const Yield& yield) {
       LooseSchedule mutant = good;
       ++mutant.frame.minSlots;
       yield(mutant);
     }},
    {"scratch",
     [](const auto& good, const Yield& yield) {
       LooseSchedule mutant = good;
       if (mutant.frame.scratchChunks-- != 0) yield(mutant);
     }},
    {"copy in place",
     [](const auto& good, const Yield& yield) {
       LooseSchedule mutant = good;
       if (std::exchange(mutant.frame.copyInPlace, false)) yield(mutant);
     }},
};

struct Tally {
  int killed = 0;
  int passed = 0;
};

// What the interpreter has against schedules that passed the checker.
std::string objection(const std::vector<Schedule>& schedules, const Goal& goal) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    InterpretOptions options;
    options.inPlace = goal.inPlace && seed % 2 == 1;
    options.share = seed % 4 >= 2;
    options.slots = schedules[0].minSlots + (seed > 8 ? 3 : 0);
    options.pieces = 2 + seed % 3;
    options.seed = seed;
    std::string text = interpret(schedules, goal, options);
    if (!text.empty()) return text;
  }
  return "";
}

std::vector<Schedule> mutantsOf(const Mutation& mutation, const Schedule& good) {
  std::vector<Schedule> mutants;
  mutation.apply(loosen(good), [&](const LooseSchedule& loose) { mutants.push_back(fasten(loose)); });
  return mutants;
}

void judge(const std::vector<Schedule>& mutant, const Goal& goal, Tally& tally) {
  if (!prove(mutant, goal).ok) {
    ++tally.killed;
    return;
  }
  ++tally.passed;
  EXPECT_EQ(objection(mutant, goal), "") << print(mutant[0]);
}

// Breaks one rank at a time, and all ranks at once: what is the same mistake everywhere no disagreement
// betrays.
Tally tallyOf(const Mutation& mutation) {
  Tally tally;
  for (const Emitter& emitter : algorithmRows())
    for (const int ranks : kRankCounts) {
      const int root = ranks / 2;
      const Goal goal = goalOf(emitter, ranks, root);
      const std::vector<Schedule> good = emitAll(emitter, ranks, 1, root);
      std::vector<std::vector<Schedule>> mutants;
      for (const Schedule& schedule : good) mutants.push_back(mutantsOf(mutation, schedule));
      size_t most = 0;
      for (size_t rank = 0; rank < good.size(); ++rank) {
        most = std::max(most, mutants[rank].size());
        for (const Schedule& broken : mutants[rank]) {
          std::vector<Schedule> schedules = good;
          schedules[rank] = broken;
          judge(schedules, goal, tally);
        }
      }
      for (size_t i = 0; i < most; ++i) {
        std::vector<Schedule> schedules = good;
        for (size_t rank = 0; rank < good.size(); ++rank)
          if (i < mutants[rank].size()) schedules[rank] = mutants[rank][i];
        judge(schedules, goal, tally);
      }
    }
  return tally;
}

void PrintTo(const Mutation& mutation, std::ostream* out) {
  *out << mutation.name;
}

class Mutants : public testing::TestWithParam<Mutation> {};

INSTANTIATE_TEST_SUITE_P(Checker, Mutants, testing::ValuesIn(kMutations), [](const auto& instance) {
  std::string name(instance.param.name);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

TEST_P(Mutants, AreKilledOrComputeTheRightResult) {
  const Tally tally = tallyOf(GetParam());
  std::cout << GetParam().name << ": " << tally.killed << " killed, " << tally.passed << " right\n";
  RecordProperty("killed", tally.killed);
  RecordProperty("right", tally.passed);
  // Using `out` for partial sums is as good as scratch.
  if (GetParam().name == std::string("all scratch as out")) return;
  EXPECT_GT(tally.killed, 0);
}

}  // namespace
}  // namespace topoccl
