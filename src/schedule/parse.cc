#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "schedule/text.h"
#include "schedule/validate.h"

namespace topoccl {
namespace {

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isLetter(char c) {
  return c >= 'a' && c <= 'z';
}
bool isSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// A quote of untrusted text for a message: one line, printable, short.
std::string quote(std::string_view text) {
  constexpr size_t kLongest = 120;
  std::string quoted(text.substr(0, kLongest));
  std::replace_if(
      quoted.begin(), quoted.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "\"" + quoted + (text.size() > kLongest ? "...\"" : "\"");
}

// One line, read from left to right.
class Line {
 public:
  Line(std::string_view text, size_t number) : text_(text), rest_(text), number_(number) {
    rest_ = rest_.substr(0, rest_.find('#'));
    skipSpace();
  }

  bool empty() const { return rest_.empty(); }
  bool startsWithDigit() const { return !empty() && isDigit(rest_.front()); }

  // Takes `token` if it is next. A word must end where its letters end.
  bool take(std::string_view token) {
    if (rest_.substr(0, token.size()) != token) return false;
    const bool word = isLetter(token.back()) && rest_.size() > token.size();
    if (word && (isLetter(rest_[token.size()]))) return false;
    rest_.remove_prefix(token.size());
    skipSpace();
    return true;
  }

  void expect(std::string_view token) {
    if (!take(token)) fail(concat("expected '", token, "'"));
  }

  // A number below `limit`.
  uint32_t number(const char* what, uint32_t limit) {
    uint64_t value = 0;
    if (!startsWithDigit()) fail(concat("expected ", what));
    while (startsWithDigit()) {
      value = value * 10 + static_cast<uint64_t>(rest_.front() - '0');
      if (value >= limit) fail(concat("expected ", what, " below ", limit));
      rest_.remove_prefix(1);
    }
    skipSpace();
    return static_cast<uint32_t>(value);
  }

  void end() {
    if (!empty()) fail("expected the end of the line");
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(Code::InvalidArgument, concat("line ", number_, ": ", quote(text_), ": ", why,
                                              empty() ? " at its end" : concat(" at ", quote(rest_))));
  }

  // For what is wrong with the line as a whole.
  [[noreturn]] void reject(const std::string& why) const {
    throw Error(Code::InvalidArgument, concat("line ", number_, ": ", quote(text_), ": ", why));
  }

 private:
  void skipSpace() {
    while (!rest_.empty() && isSpace(rest_.front())) rest_.remove_prefix(1);
  }

  std::string_view text_;
  std::string_view rest_;
  size_t number_;
};

class Parser {
 public:
  void line(Line line) {
    if (line.empty()) return;
    if (!headerSeen_)
      header(line);
    else if (line.take("connection"))
      connection(line);
    else if (line.take("lane"))
      lane(line);
    else if (!schedule_.lanes.empty() && line.startsWithDigit())
      step(line);
    else
      line.fail(schedule_.lanes.empty() ? "expected 'connection' or 'lane'" : "expected a step or 'lane'");
    line.end();
  }

  Schedule finish() {
    if (!headerSeen_) throw Error(Code::InvalidArgument, "expected 'rank N of N, ...' but the text is empty");
    return std::move(schedule_);
  }

 private:
  void header(Line& line) {
    line.expect("rank");
    schedule_.rank = static_cast<int>(line.number("a rank", kMaxTextRanks));
    line.expect("of");
    schedule_.ranks = static_cast<int>(line.number("the number of ranks", kMaxTextRanks + 1));
    line.expect(",");
    line.expect("chunks");
    schedule_.chunks = line.number("the number of chunks", kMaxTextChunks + 1);
    if (line.take("in")) {
      schedule_.blocks = line.number("the number of blocks", kMaxTextChunks + 1);
      line.expect("blocks");
    }
    line.expect(",");
    line.expect("scratch");
    schedule_.scratchChunks = line.number("the number of scratch chunks", kMaxTextChunks + 1);
    line.expect(",");
    line.expect("slots");
    schedule_.minSlots = line.number("the number of slots", kMaxTextSlots + 1);
    if (line.take("of")) {
      schedule_.slotChunks = line.number("the number of chunks in a slot", kMaxTextChunks + 1);
      line.expect("chunks");
    }
    if (line.take(",")) {
      for (const char* word : {"copy", "in", "place"}) line.expect(word);
      schedule_.copyInPlace = true;
    }
    check(line, flawOfHeader(schedule_));
    headerSeen_ = true;
  }

  void connection(Line& line) {
    if (!schedule_.lanes.empty()) line.reject("connections come before lanes");
    numbered(line, schedule_.connections.size());
    line.expect(":");
    Connection connection;
    connection.from = static_cast<int>(line.number("a rank", kMaxTextRanks));
    line.expect("->");
    do connection.readers.push_back(static_cast<int>(line.number("a rank", kMaxTextRanks)));
    while (line.take(","));
    line.expect("channel");
    connection.channel = static_cast<int>(line.number("a channel", kMaxTextChannels));
    line.expect("tag");
    connection.tag = static_cast<int>(line.number("a tag", kMaxTextTags));
    check(line, flawOfConnection(schedule_, connection));
    if (!keys_.insert(connection).second) line.reject("that connection is there already");
    schedule_.connections.push_back(std::move(connection));
  }

  void lane(Line& line) {
    numbered(line, schedule_.lanes.size());
    schedule_.lanes.push_back({static_cast<uint32_t>(schedule_.steps.size()), 0});
  }

  void step(Line& line) {
    Step step;
    step.firstOperand = static_cast<uint32_t>(schedule_.operands.size());
    chunks(line, step);
    line.expect(":");
    do input(line, step);
    while (line.take("+"));
    line.expect("->");
    do output(line, step);
    while (line.take(","));
    step.final = line.take("final");
    check(line, flawOfStep(schedule_, step));
    check(line, ends_.claim(schedule_, step, static_cast<uint32_t>(schedule_.lanes.size() - 1)));
    schedule_.steps.push_back(step);
    ++schedule_.lanes.back().stepCount;
  }

  void chunks(Line& line, Step& step) {
    step.span = range(line, step.inChunk);
    step.outChunk = step.inChunk;
    if (!line.take(">")) return;
    if (range(line, step.outChunk) != step.span) line.fail("expected as many chunks after '>' as before,");
  }

  // Reads FIRST[-LAST] and returns how many chunks that is.
  uint32_t range(Line& line, uint32_t& first) {
    first = line.number("a chunk", kMaxTextChunks);
    if (!line.take("-")) return 1;
    const uint32_t last = line.number("the last chunk", kMaxTextChunks);
    if (last < first) line.fail("expected a last chunk not before the first,");
    return last - first + 1;
  }

  void input(Line& line, Step& step) {
    if (!operand(line, 'r', Place::Receive) && !buffer(line, "in", Place::In) && !buffer(line))
      line.fail("expected an input (rN, in, out or scratch)");
    ++step.inputCount;
  }

  void output(Line& line, Step& step) {
    if (!buffer(line) && !operand(line, 's', Place::Send))
      line.fail("expected an output (sN, out or scratch)");
    ++step.outputCount;
  }

  bool operand(Line& line, char letter, Place place) {
    if (!line.take(std::string_view(&letter, 1))) return false;
    const auto connections = static_cast<uint32_t>(schedule_.connections.size());
    schedule_.operands.push_back({place, line.number("the number of a connection", connections)});
    return true;
  }

  bool buffer(Line& line) {
    return buffer(line, "out", Place::Out) || buffer(line, "scratch", Place::Scratch);
  }

  bool buffer(Line& line, const char* word, Place place) {
    if (!line.take(word)) return false;
    schedule_.operands.push_back({place});
    return true;
  }

  void numbered(Line& line, size_t next) {
    if (line.number("its number", UINT32_MAX) != next) line.reject(concat("expected number ", next));
  }

  void check(const Line& line, const std::string& flaw) {
    if (!flaw.empty()) line.reject(flaw);
  }

  Schedule schedule_;
  std::set<Connection, KeyOrder> keys_;
  ConnectionEnds ends_;
  bool headerSeen_ = false;
};

}  // namespace

Schedule parse(std::string_view text) {
  if (text.size() > kMaxTextBytes)
    throw Error(Code::InvalidArgument,
                concat("a schedule of ", text.size(), " bytes: expected at most ", kMaxTextBytes));
  Parser parser;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    parser.line(Line(text.substr(0, end), number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.finish();
}

}  // namespace topoccl
