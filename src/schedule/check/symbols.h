// The checker's values: not numbers but the sums they stand for, as nodes of a table in which equal
// expressions are the same node. Two ranks hold the same bits for every input exactly if they hold the same
// node: same terms, same order, same association.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "schedule/goal.h"

namespace topoccl {

using Value = uint32_t;

class Symbols {
 public:
  static constexpr Value kUnwritten = 0;
  static constexpr Value kEmpty = 1;  // a piece without elements

  Symbols(int ranks, uint32_t chunks);

  // What the user put into rank's in chunk, as it lies in memory, ...
  Value raw(int rank, uint32_t chunk) const;
  bool isRaw(Value value) const { return value >= kFirstRaw && value < firstNode_ && value % 2 == 0; }
  // ... and as reading it through `in` gives it, with the pre-multiplier applied.
  static Value scaled(Value raw) { return raw + 1; }

  // The terms are reduced in one step: not the same expression as two steps that reduce two each.
  Value sum(const Value* terms, size_t count) { return node(Kind::Sum, terms, count); }
  Value final(Value value) { return node(Kind::Final, &value, 1); }
  bool isFinal(Value value) const { return value >= firstNode_ && at(value).kind == Kind::Final; }

  // What is wrong with `value` as the result wanted, or an empty string.
  std::string flaw(Value value, const Wanted& wanted, bool final) const;

  // "((in@0 + in@1) + in@2)": contributions by rank; chunks are shown where they are not `chunk`.
  std::string print(Value value, uint32_t chunk) const;

 private:
  enum class Kind : uint8_t { Sum, Final };
  struct Node {
    Kind kind;
    uint32_t firstTerm;
    uint32_t termCount;
    uint64_t hash;
  };
  struct Hash {
    const Symbols* symbols;
    size_t operator()(Value value) const { return symbols->at(value).hash; }
  };
  struct Equal {
    const Symbols* symbols;
    bool operator()(Value a, Value b) const;
  };
  struct Leaf {
    int rank;
    uint32_t chunk;
  };

  static constexpr Value kFirstRaw = 2;

  Value node(Kind kind, const Value* terms, size_t count);
  const Node& at(Value value) const { return nodes_[value - firstNode_]; }
  Leaf leaf(Value value) const;
  void print(std::string& text, Value value, uint32_t chunk) const;
  std::string flawOfTerms(Value value, const Wanted& wanted) const;

  uint32_t chunks_;
  Value firstNode_;
  std::vector<Node> nodes_;
  std::vector<Value> terms_;
  std::unordered_set<Value, Hash, Equal> known_;
};

}  // namespace topoccl
