// Vector clocks: which accesses are ordered before which by data flow alone.
//
// Each lane counts its steps. A lane knows, for every other lane, the last step that is ordered before its
// own next one: what it learned from the slots that it consumed, which carry their sender's knowledge.
// Freeing a slot teaches the sender nothing: with more slots it would not have waited.
//
// Knowledge is shared and copied on write, so that a lane that only sends costs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace topoccl {

using Known = std::vector<uint32_t>;  // by lane of the whole collective

inline constexpr uint32_t kUserStep = UINT32_MAX;

// Something that `lane` did at its `time`. `step` is for messages; kUserStep is the
// user between two works.
struct Access {
  uint32_t lane = 0;
  uint32_t time = 0;  // 0: never happened
  uint32_t step = 0;
};

// A lane's knowledge when it filled a slot.
struct Stamp {
  std::shared_ptr<Known> known;
  uint32_t lane = 0;
  uint32_t time = 0;
};

class Clocks {
 public:
  // laneCounts[rank]. Lanes are numbered through, rank by rank.
  explicit Clocks(const std::vector<uint32_t>& laneCounts);

  // Starts the lane's next step.
  uint32_t tick(uint32_t lane) { return ++lanes_[lane].time; }

  // Whether `access` is ordered before what `lane` does now / before `rank` began its work.
  bool knows(uint32_t lane, const Access& access) const;
  bool knewAtBegin(int rank, const Access& access) const;

  Stamp stamp(uint32_t lane) const { return {lanes_[lane].known, lane, lanes_[lane].time}; }

  // `lane` consumes a slot. `last` is what it learned from that connection before, kept by the caller.
  void learn(uint32_t lane, const Stamp& stamp, std::shared_ptr<Known>& last);

  // `lane` frees a slot that refers to memory of `rank`: rank's work waits for that before it completes.
  void release(uint32_t lane, int rank);

  // Rank's lanes, and whoever released its references, have all done their work: joins them, so that what
  // comes next comes after.
  void join(int rank);

  // The user, who owns the buffers between works, touches them: an access that is ordered after the last
  // join() and before whatever the rank does next. The rank must have a lane.
  Access user(int rank);

 private:
  struct LaneClock {
    std::shared_ptr<Known> known;
    uint32_t time = 0;  // takes the place of (*known)[own lane]
  };

  static void merge(Known& into, const Known& from);
  void mergeLane(Known& into, uint32_t lane) const;

  std::vector<uint32_t> firstLane_;  // by rank, and one past the end
  std::vector<LaneClock> lanes_;
  std::vector<std::shared_ptr<Known>> begin_;    // by rank: what it knew when the work began
  std::vector<std::shared_ptr<Known>> release_;  // by rank; null: nothing released in this work
};

}  // namespace topoccl
