// Structures in memory that others write: a program's ncclConfig_t, and what processes of one node share, the
// directory of rings and the slots. The first byte chooses.
//
// Never: an access outside of what the structure's own size allows, an address that is taken from shared
// memory, a ring that leaves its region.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "api/config.h"
#include "fuzz.h"
#include "kernels/memory_machine.h"
#include "schedule/builder.h"
#include "schedule/stepper.h"
#include "support/ring_memory.h"
#include "transport/node_memory.h"

namespace topoccl::fuzz {
namespace {

// A block of as many bytes as it says. Pointers that its version and its size have are good ones.
void config(ByteReader& input) {
  const char* const names[] = {nullptr, "", "world"};
  const char* const name = names[below(input, std::size(names))];
  const size_t size = input.number<uint16_t>() % 256;
  const unsigned magic = below(input, 8) == 0 ? input.number<uint32_t>() : NCCL_API_MAGIC;
  const unsigned version = input.number<uint32_t>() % 30000;
  std::vector<char> block(std::max(size, sizeof(size)));
  const std::string_view members = input.raw(std::min(input.left(), block.size()));
  std::copy(members.begin(), members.end(), block.begin());
  const auto put = [&](size_t at, const auto& value) {
    if (at + sizeof(value) <= block.size()) std::memcpy(block.data() + at, &value, sizeof(value));
  };
  put(0, size);
  put(offsetof(ncclConfig_t, magic), magic);
  put(offsetof(ncclConfig_t, version), version);
  const bool named = version >= 22700 && size >= offsetof(ncclConfig_t, commName) + sizeof(name);
  if (named) put(offsetof(ncclConfig_t, commName), name);
  try {
    const CommConfig read = api::readConfig(reinterpret_cast<const ncclConfig_t*>(block.data()));
    require(read.blocking == 0 || read.blocking == 1, "blocking or not");
    require(read.minChannels >= 0 && read.maxChannels >= 0, "channels are numbers of channels");
    require(read.maxChannels == 0 || read.minChannels <= read.maxChannels, "the least is not above the most");
    require(read.name == (named && name != nullptr ? name : ""), "the name that it has");
  } catch (const Error& error) {
    require(error.code() == Code::InvalidArgument, "a bad config is an argument's fault");
  }
}

// Three ranks' memory, of which only the region of rank 1 may be touched.
class Node {
 public:
  static constexpr int kProducer = 1;

  Node() : memory_(take(NodeMemory::make(3, false)), 3) {}

  // As it was when it was made.
  void clear() { ::madvise(region_, NodeMemory::kRegionBytes, MADV_DONTNEED); }

  NodeMemory& memory() { return memory_; }
  uint64_t* words() { return reinterpret_cast<uint64_t*>(region_); }

  void requireInside(const RingView& ring) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&ring.description());
    const uint64_t bytes = RingView::bytes(ring.shape());
    require(begin >= region_ && begin + bytes <= region_ + NodeMemory::kRegionBytes,
            "a ring within its region");
    require(reinterpret_cast<uintptr_t>(begin) % kLineBytes == 0, "a ring on a line's boundary");
    require(ring.description().magic == kRingMagic && ring.description().shape == ring.shape(),
            "a described ring");
  }

 private:
  MemoryFile take(MemoryFile file) {
    std::byte* const end = file.data() + NodeMemory::bytes(3);
    region_ = end - 2 * NodeMemory::kRegionBytes;
    const auto before = static_cast<size_t>(region_ - file.data());
    require(::mprotect(file.data(), before, PROT_NONE) == 0 &&
                ::mprotect(end - NodeMemory::kRegionBytes, NodeMemory::kRegionBytes, PROT_NONE) == 0,
            "guards around the region");
    return file;
  }

  std::byte* region_ = nullptr;
  NodeMemory memory_;
};

void directory(ByteReader& input) {
  static Node node;
  node.clear();
  constexpr RingShape kShapes[] = {{2, 128, 1}, {4, 256, 3}, {1024, 16384, 1}};
  bool damaged = false;
  while (input.left() > 0) {
    const uint64_t key = below(input, 4);
    const RingShape shape = kShapes[below(input, std::size(kShapes))];
    RingView ring;
    try {
      switch (below(input, 3)) {
        case 0: {  // any of the first 64 Ki words: the directory, and some rings
          const size_t at = input.number<uint16_t>();
          node.words()[at] = input.number<uint64_t>();
          damaged = true;
          break;
        }
        case 1:
          node.requireInside(node.memory().makeRing(Node::kProducer, key, shape));
          if (!damaged)
            require(node.memory().findRing(Node::kProducer, key, shape, ring), "what was made is found");
          break;
        default:
          if (node.memory().findRing(Node::kProducer, key, shape, ring)) node.requireInside(ring);
      }
    } catch (const Error& error) {
      require(error.code() == Code::InternalError || error.code() == Code::SystemError,
              "a failure of this host");
    }
  }
}

// Reads all that it is given and writes all that it should.
struct Mover {
  void copy(const CombineArgs& args) const {
    for (uint32_t i = 0; i < args.outputCount; ++i) std::memcpy(args.outputs[i], args.inputs[0], args.count);
  }
  void combine(const CombineArgs& args) const {
    for (uint64_t at = 0; at < args.count * sizeof(uint32_t); ++at) {
      unsigned char sum = 0;
      for (uint32_t i = 0; i < args.inputCount; ++i)
        sum ^= static_cast<const unsigned char*>(args.inputs[i])[at];
      for (uint32_t i = 0; i < args.outputCount; ++i) static_cast<unsigned char*>(args.outputs[i])[at] = sum;
    }
  }
};

constexpr RingShape kShape{2, 128, 1};
constexpr uint64_t kCall = 5;

// Whether it looks like a message of this call, and what it says.
void writeHeader(ByteReader& input, const RingView& ring, const ChunkMap& map) {
  const uint64_t message = below(input, 8);
  const uint32_t chunk = below(input, 2), piece = below(input, 4);
  SlotHeader& header = ring.header(message);
  header.call = kCall;
  header.chunk = chunk;
  header.piece = piece;
  header.bytes = static_cast<uint32_t>(pieceRange(map, chunk, piece).count * sizeof(uint32_t));
  header.kind = static_cast<SlotKind>(below(input, 4));
  header.direct.placed = input.number<uint8_t>();
  header.direct.reference = reinterpret_cast<const void*>(uintptr_t{1} << below(input, 64));
  header.sequence = message + 1;
  *ring.published() = message + 1;
}

// The other side may offer a destination, and is not to be trusted with one.
void writeOffer(ByteReader& input, const RingView& ring, const ChunkMap& map) {
  const uint64_t message = below(input, 8);
  const uint32_t chunk = below(input, 2), piece = below(input, 4);
  const auto bytes = static_cast<uint32_t>(pieceRange(map, chunk, piece).count * sizeof(uint32_t));
  ring.offer(0, message) = {message + 1, kCall, chunk, piece, bytes, reinterpret_cast<void*>(uintptr_t{8})};
  *ring.freed(0) = message;
}

// Rank 0 sends its `in` through one ring, and takes in what comes through another.
Schedule exchange(bool reduces) {
  ScheduleBuilder builder(2, 0, 2);
  builder.lane();
  for (const uint32_t chunk : {0U, 1U}) builder.step({kIn}, {builder.send(1, 0, 0)}, chunk);
  builder.lane();
  for (const uint32_t chunk : {0U, 1U}) {
    const Operand received = builder.receive(1, 0, 0);
    builder.step(reduces ? std::vector{received, kIn} : std::vector{received}, {kOut}, chunk);
  }
  return builder.take();
}

void slots(ByteReader& input) {
  const Schedule schedule = exchange(below(input, 2) == 1);
  const Protocol protocol = below(input, 2) == 1 ? Protocol::Bulk : Protocol::Packet;
  const test::RingMemory memory[] = {test::RingMemory(kShape), test::RingMemory(kShape)};
  const size_t words = RingView::bytes(kShape) / sizeof(uint64_t);
  Endpoint sending, receiving;
  sending.writer = SlotWriter(memory[0].view(), protocol);
  receiving.reader = SlotReader(memory[1].view(), protocol, 0);
  Endpoint* const ends[] = {&sending, &receiving};

  const std::vector<unsigned char> in(input.number<uint8_t>() * sizeof(uint32_t), 1);
  std::vector<unsigned char> out(in.size());
  CallContext context;
  context.in = in.data();
  context.out = out.data();
  context.map = makeChunkMap(in.size() / sizeof(uint32_t), sizeof(uint32_t), 2, kShape.slotBytes, 1);
  context.elementBytes = sizeof(uint32_t);
  context.call = kCall;
  context.referenceBytes = context.offerBytes = 1;

  const void* inputs[2];
  void* outputs[2];
  MemoryMachine<SoloGroup, Mover> machine({}, ends, inputs, outputs);
  machine.start(context, {});
  LaneCursor cursors[2];
  while (input.left() > 0) {
    const RingView rings[] = {memory[0].view(), memory[1].view()};
    switch (below(input, 3)) {
      case 0: {
        auto* const word =
            static_cast<uint64_t*>(memory[below(input, 2)].data()) + input.number<uint16_t>() % words;
        *word = input.number<uint64_t>();
        break;
      }
      case 1:
        writeHeader(input, rings[1], context.map);
        break;
      default:
        writeOffer(input, rings[0], context.map);
    }
    for (const uint32_t lane : {0U, 1U})
      if (advance(view(schedule), lane, cursors[lane], machine).state == LaneState::Failed) return;
  }
}

}  // namespace
}  // namespace topoccl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace topoccl::fuzz;
  constexpr void (*kStructures[])(topoccl::ByteReader&) = {config, directory, slots};
  topoccl::ByteReader input(inputOf(data, size));
  kStructures[below(input, std::size(kStructures))](input);
  return 0;
}
