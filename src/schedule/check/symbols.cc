#include "schedule/check/symbols.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace topoccl {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

}  // namespace

Symbols::Symbols(int ranks, uint32_t chunks)
    : chunks_(chunks),
      firstNode_(kFirstRaw + 2 * static_cast<uint32_t>(ranks) * chunks),
      known_(64, Hash{this}, Equal{this}) {}

Value Symbols::raw(int rank, uint32_t chunk) const {
  return kFirstRaw + 2 * (static_cast<uint32_t>(rank) * chunks_ + chunk);
}

Symbols::Leaf Symbols::leaf(Value value) const {
  const uint32_t index = (value - kFirstRaw) / 2;
  return {static_cast<int>(index / chunks_), index % chunks_};
}

bool Symbols::Equal::operator()(Value a, Value b) const {
  const Node& x = symbols->at(a);
  const Node& y = symbols->at(b);
  const Value* terms = symbols->terms_.data();
  return x.hash == y.hash && x.kind == y.kind && x.termCount == y.termCount &&
         std::equal(terms + x.firstTerm, terms + x.firstTerm + x.termCount, terms + y.firstTerm);
}

Value Symbols::node(Kind kind, const Value* terms, size_t count) {
  uint64_t hash = static_cast<uint64_t>(kind) + 1;
  for (size_t i = 0; i < count; ++i) hash = mix(hash, terms[i]);
  // Append it, and take it back if the table has it already.
  const Value candidate = firstNode_ + static_cast<Value>(nodes_.size());
  const auto firstTerm = static_cast<uint32_t>(terms_.size());
  terms_.insert(terms_.end(), terms, terms + count);
  nodes_.push_back({kind, firstTerm, static_cast<uint32_t>(count), hash});
  const auto [found, isNew] = known_.insert(candidate);
  if (isNew) return candidate;
  nodes_.pop_back();
  terms_.resize(firstTerm);
  return *found;
}

std::string Symbols::flaw(Value value, const Wanted& wanted, bool final) const {
  if (value == kUnwritten) return "is never written";
  if (value == kEmpty) return "holds a piece without elements";
  if (isRaw(value)) return "still holds what the user put there";
  if (isFinal(value) && !final) return "had `final` applied, which this collective does not have";
  if (!isFinal(value) && final) return "never had `final` applied";
  return flawOfTerms(isFinal(value) ? terms_[at(value).firstTerm] : value, wanted);
}

// Counts how often each leaf occurs, from the root down: terms are always older than the node they are in,
// so going by descending number sees a node only after all that contain it.
std::string Symbols::flawOfTerms(Value value, const Wanted& wanted) const {
  std::map<Value, uint64_t, std::greater<>> pending{{value, 1}};
  std::vector<bool> seen(static_cast<size_t>(wanted.ranks));
  while (!pending.empty()) {
    const auto [term, times] = *pending.begin();
    pending.erase(pending.begin());
    if (term >= firstNode_) {
      const Node& node = at(term);
      for (uint32_t i = 0; i < node.termCount; ++i) {
        uint64_t& count = pending[terms_[node.firstTerm + i]];
        count = std::min<uint64_t>(count + times, UINT32_MAX);
      }
      continue;
    }
    const Leaf which = leaf(term);
    const int index = which.rank - wanted.firstRank;
    if (which.chunk != wanted.chunk || index < 0 || index >= wanted.ranks)
      return concat("contains in chunk ", which.chunk, " of rank ", which.rank,
                    ", which does not belong there");
    if (times != 1) return concat("contains rank ", which.rank, " ", times, " times");
    seen[static_cast<size_t>(index)] = true;
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing == seen.end()) return "";
  return concat("lacks rank ", wanted.firstRank + (missing - seen.begin()));
}

std::string Symbols::print(Value value, uint32_t chunk) const {
  std::string text;
  print(text, value, chunk);
  constexpr size_t kLongest = 400;
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

void Symbols::print(std::string& text, Value value, uint32_t chunk) const {
  constexpr size_t kEnough = 400;
  if (text.size() > kEnough) return;
  if (value == kUnwritten) {
    text += "nothing";
  } else if (value == kEmpty) {
    text += "no elements";
  } else if (value < firstNode_) {
    const Leaf which = leaf(value);
    text += concat(isRaw(value) ? "raw@" : "in@", which.rank);
    if (which.chunk != chunk) text += concat('.', which.chunk);
  } else {
    const Node& node = at(value);
    text += node.kind == Kind::Final ? "final(" : "(";
    for (uint32_t i = 0; i < node.termCount; ++i) {
      if (i != 0) text += " + ";
      print(text, terms_[node.firstTerm + i], chunk);
    }
    text += ')';
  }
}

}  // namespace topoccl
