// combine() on one host thread. GB/s counts every byte read and every byte written.
//
//   combine/TYPE/OP/bytes:B/inputs:I/outputs:O/streamed:S     B bytes per buffer
//   phase/bytes:B/phase:P/streamed:S      page offset of the output P bytes ahead of both inputs': stores
//                                         slightly ahead of loads, modulo a page, look like conflicts
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "kernels/combine_args.h"

namespace topoccl {
namespace {

constexpr size_t kPage = 4096;

// Page-aligned memory, written once so that it is there; usable from `phase` bytes past the page on.
class Buffer {
 public:
  Buffer(size_t bytes, size_t phase)
      : memory_(static_cast<uint8_t*>(std::aligned_alloc(kPage, (bytes + phase + kPage) / kPage * kPage))),
        data_(memory_.get() + phase) {
    for (size_t i = 0; i < bytes; ++i) data_[i] = static_cast<uint8_t>(i % 64);
  }
  uint8_t* data() const { return data_; }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory_;
  uint8_t* data_;
};

struct Shape {
  size_t bytes;
  size_t inputs;
  size_t outputs;
  bool streamed;
  size_t inputPhase = 0;
  size_t outputPhase = 0;
};

void run(benchmark::State& state, DataType type, Operator op, const Shape& shape) {
  std::vector<Buffer> buffers;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (size_t i = 0; i < shape.inputs; ++i)
    inputs.push_back(buffers.emplace_back(shape.bytes, shape.inputPhase).data());
  for (size_t i = 0; i < shape.outputs; ++i)
    outputs.push_back(buffers.emplace_back(shape.bytes, shape.outputPhase).data());
  CombineArgs args;
  args.inputs = inputs.data();
  args.inputCount = static_cast<uint32_t>(shape.inputs);
  args.outputs = outputs.data();
  args.outputCount = static_cast<uint32_t>(shape.outputs);
  args.count = shape.bytes / elementBytes(type);
  args.streamedOutputs = shape.streamed ? ~uint64_t{0} : 0;
  if (op == Operator::Avg) {
    args.scaledInputs = ~uint64_t{0};
    args.scale = averageScale(type, 2);
    args.divisor = 2;
  }
  const CombineFunction combine = hostCombine(type, op);
  for (auto _ : state) {
    combine(args);
    benchmark::ClobberMemory();
  }
  const auto bytes = static_cast<int64_t>(shape.bytes * (shape.inputs + shape.outputs));
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(bytes) / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

template <class... Parts>
std::string join(const Parts&... parts) {
  std::string text;
  ((text += parts), ...);
  return text;
}

void addCombine(DataType type, Operator op, const Shape& shape) {
  const std::string label =
      join("combine/", name(type), "/", name(op), "/bytes:", std::to_string(shape.bytes),
           "/inputs:", std::to_string(shape.inputs), "/outputs:", std::to_string(shape.outputs),
           "/streamed:", shape.streamed ? "1" : "0");
  benchmark::RegisterBenchmark(label.c_str(), [=](benchmark::State& state) { run(state, type, op, shape); });
}

void addPhase(size_t bytes, size_t phase, bool streamed) {
  const std::string label = join("phase/bytes:", std::to_string(bytes), "/phase:", std::to_string(phase),
                                 "/streamed:", streamed ? "1" : "0");
  // Inputs stand back, not the output ahead of a page: only their distance matters.
  const Shape shape{bytes, 2, 1, streamed, 64, 64 + phase};
  benchmark::RegisterBenchmark(
      label.c_str(), [=](benchmark::State& state) { run(state, DataType::Float32, Operator::Sum, shape); });
}

const bool kRegistered = [] {
  constexpr size_t kKi = 1024;
  constexpr size_t kMi = kKi * kKi;
  for (size_t bytes : {size_t{8}, size_t{256}, 4 * kKi, 64 * kKi, kMi, 32 * kMi}) {
    for (size_t inputs : {1u, 2u, 4u, 8u}) {
      for (size_t outputs : {1u, 2u}) {
        for (bool streamed : {false, true}) {
          if (streamed && bytes < 64 * kKi) continue;
          if (bytes * inputs > 128 * kMi) continue;
          addCombine(DataType::Float32, Operator::Sum, {bytes, inputs, outputs, streamed});
        }
      }
    }
  }
  for (DataType type : {DataType::Int32, DataType::Float32, DataType::Float64, DataType::Bfloat16}) {
    for (Operator op : {Operator::Sum, Operator::Max, Operator::Avg})
      addCombine(type, op, {16 * kKi, 2, 1, false});
  }
  for (size_t bytes : {16 * kKi, 32 * kMi}) {
    for (bool streamed : {false, true}) {
      for (size_t phase = 0; phase <= 64; phase += 16) addPhase(bytes, phase, streamed);
    }
  }
  return true;
}();

}  // namespace
}  // namespace topoccl
