// Schedules as text that one can read aloud: what the checker's messages quote, and what tools store.
//
//   rank 1 of 4, chunks 4, scratch 0, slots 2
//   connection 0: 0 -> 1 channel 0 tag 0
//   connection 1: 1 -> 2 channel 0 tag 0
//   lane 0
//     0: in -> s1
//     3: r0 + in -> s1
//     1: r0 + in -> out, s1 final
//
// Grammar, line by line. Words and signs are separated by spaces where they would run together; blank lines
// and what follows a '#' are ignored.
//
//   header      rank N of N, chunks N [in N blocks], scratch N, slots N [of N chunks] [, copy in place]
//   connection  connection N: RANK -> RANK {,RANK} channel N tag N     numbered 0, 1, ... ; readers ascend
//   lane        lane N                                                 numbered 0, 1, ...
//   step        CHUNKS: INPUT {+ INPUT} -> OUTPUT {, OUTPUT} [final]   belongs to the lane above it
//   CHUNKS      FIRST[-LAST] [> FIRST[-LAST]]     inChunk and span, then outChunk where it differs
//   INPUT       rN | in | out | scratch           rN receives from connection N
//   OUTPUT      sN | out | scratch                sN sends to connection N
//
// Order of lines: header, connections, lanes with their steps. print() and parse() are inverse to each
// other for schedules whose steps and operands lie in order, as ScheduleBuilder writes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "schedule/step.h"

namespace topoccl {

std::string print(const Schedule& schedule);

// "2 -> 1,3 channel 0 tag 0"
std::string print(const Connection& connection);

// "3: r0 + in -> s1, out final"
std::string print(const Schedule& schedule, const Step& step);

// "r0", "in", ...
std::string print(const Operand& operand);

// What parse() accepts at most. Text may come from anyone: a number never makes parse() allocate more than
// a small multiple of the text's own size, and whoever allocates by these numbers later has a bound.
inline constexpr size_t kMaxTextBytes = size_t{1} << 28;
inline constexpr uint32_t kMaxTextRanks = 1u << 20;
inline constexpr uint32_t kMaxTextChunks = 1u << 26;
inline constexpr uint32_t kMaxTextSlots = 1u << 10;
inline constexpr uint32_t kMaxTextChannels = 1u << 16;
inline constexpr uint32_t kMaxTextTags = 1u << 16;

// A schedule that passes flawOfSchedule() (validate.h). Throws InvalidArgument with the line's number, its
// text and what was expected.
Schedule parse(std::string_view text);

}  // namespace topoccl
