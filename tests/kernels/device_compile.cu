// Compiled, never run: proves that what a CUDA kernel will be made of is device code.
#include <cstdint>

#include "kernels/combine.h"
#include "kernels/cuda/block_group.cuh"
#include "kernels/memory_machine.h"
#include "kernels/portable_combine.h"
#include "schedule/chunk_map.h"
#include "schedule/stepper.h"

namespace topoccl {

static_assert(Group<BlockGroup>);

// The arrays that CombineArgs points to, where a device can see them.
struct Operands {
  const void* inputs[3];
  void* outputs[2];
};

template <class Element, class Op>
__global__ void combineKernel(Operands operands, CombineArgs args) {
  args.inputs = operands.inputs;
  args.outputs = operands.outputs;
  portableCombine<Element, Op>(args, BlockGroup());
}

// Every type, and every operator.
template __global__ void combineKernel<Int8, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Uint8, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Int32, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Uint32, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Int64, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Uint64, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Float16, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Float32, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Float64, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Bfloat16, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Float8e4m3, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Float8e5m2, Sum>(Operands, CombineArgs);
template __global__ void combineKernel<Int32, Max>(Operands, CombineArgs);
template __global__ void combineKernel<Float32, Prod>(Operands, CombineArgs);
template __global__ void combineKernel<Float32, Max>(Operands, CombineArgs);
template __global__ void combineKernel<Float32, Min>(Operands, CombineArgs);

// The smallest machine: buffers only, every connection ready.
struct BufferMachine {
  ChunkMap map;
  const uint8_t* in;
  uint8_t* out;

  __device__ uint64_t pieces() const { return map.pieces; }
  __device__ bool ready(const Operand&) const { return true; }
  __device__ void begin(uint32_t, uint64_t) {}
  __device__ bool perform(const Step& step, const Operand*, const Operand*, uint64_t piece) {
    const ElementRange from = pieceRange(map, step.inChunk, piece);
    const ElementRange to = pieceRange(map, step.outChunk, piece);
    const void* inputs[] = {in + from.begin * sizeof(float)};
    void* outputs[] = {out + to.begin * sizeof(float)};
    CombineArgs args;
    args.inputs = inputs;
    args.inputCount = 1;
    args.outputs = outputs;
    args.outputCount = 1;
    args.count = from.count;
    portableCombine<Float32, Sum>(args, BlockGroup());
    return true;
  }
};

__global__ void stepKernel(ScheduleView schedule, const uint8_t* in, uint8_t* out, uint64_t count,
                           uint32_t chunks, uint32_t* steps) {
  BufferMachine machine{makeChunkMap(count, sizeof(float), chunks, 65536, 1), in, out};
  for (uint32_t lane = 0; lane < schedule.laneCount; ++lane) {
    LaneCursor cursor;
    const Advance result = advance(schedule, lane, cursor, machine);
    if (threadIdx.x == 0) steps[lane] = result.state == LaneState::Done ? result.steps : 0;
  }
}

// The machine that moves data, by a block: slot rings, references, offers and all.
template <class Element, class Op>
struct BlockMover {
  __device__ void combine(const CombineArgs& args) const { portableCombine<Element, Op>(args, BlockGroup()); }
  __device__ void copy(const CombineArgs& args) const {
    portableCombine<Raw<uint8_t>, First>(args, BlockGroup());
  }
};

template <class Element, class Op>
using BlockMachine = MemoryMachine<BlockGroup, BlockMover<Element, Op>>;

// The block shares the machine and its address arrays; each thread keeps its own cursor, all alike.
template <class Element, class Op>
__global__ void scheduleKernel(ScheduleView schedule, BlockMachine<Element, Op>* machine, CallContext context,
                               uint32_t* done) {
  if (threadIdx.x == 0) machine->start(context, {});
  __syncthreads();
  for (uint32_t lane = 0; lane < schedule.laneCount; ++lane) {
    LaneCursor cursor;
    LaneState state = LaneState::Waiting;
    while (state == LaneState::Waiting) state = advance(schedule, lane, cursor, *machine).state;
    if (threadIdx.x == 0) done[lane] = state == LaneState::Done ? 1 : 0;
  }
}

template __global__ void scheduleKernel<Float32, Sum>(ScheduleView, BlockMachine<Float32, Sum>*, CallContext,
                                                      uint32_t*);
template __global__ void scheduleKernel<Bfloat16, Max>(ScheduleView, BlockMachine<Bfloat16, Max>*,
                                                       CallContext, uint32_t*);

}  // namespace topoccl
