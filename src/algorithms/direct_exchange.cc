// Full-mesh exchanges other than all-reduce: one message from who has something to who wants it. What several
// ranks want goes out once, on a broadcast connection.
//
//   rank 1 of 3, root 0
//   all-gather        send:     in[1] -> out[1], everyone        store:    from 2 -> out[2]
//                                                                          from 0 -> out[0]
//   reduce-scatter    send:     in[2] -> 2                       reduce:   from 0 + in[1] + from 2 -> out[1]
//                               in[0] -> 0
//   all-to-all        send:     in[2] -> 2                       store:    from 2 -> out[2]
//                               in[0] -> 0                                 from 0 -> out[0]
//                               in[1] -> out[1]
//   broadcast         store:    from 0 -> out                    rank 0:   in -> out, everyone
//   reduce            send:     in -> 0                          rank 0:   in + from 1 + from 2 -> out
//   gather            send:     in[1] -> 0                       rank 0:   in[0] -> out[0], from 1 -> out[1],
//   ... scatter           store:    from 0 -> out[1]                 rank 0:   in[0] -> out[0], in[1] -> 1,
//   ...
//
// Sending and storing are lanes of their own, and start behind the own rank, so that not all crowd rank 0.
#include "algorithms/algorithms.h"
#include "algorithms/emit.h"
#include "algorithms/mesh_tags.h"

namespace topoccl {
namespace {

// One channel of a rank.
class Mesh {
 public:
  Mesh(ScheduleBuilder& builder, const Layout& layout, int rank, int channel)
      : builder_(builder), layout_(layout), rank_(rank), channel_(channel) {}

  int rank() const { return rank_; }
  std::vector<int> others() const { return othersFrom(layout_.ranks, rank_); }
  uint32_t block(int of) const { return blockChunk(layout_, channel_, of); }
  uint32_t part() const { return static_cast<uint32_t>(channel_); }
  void lane() { builder_.lane(); }

  Operand sendTo(int peer) { return builder_.send(peer, channel_, kScatterTag); }
  Operand from(int peer) { return builder_.receive(peer, channel_, kScatterTag); }
  Operand sendToAll() { return builder_.send(othersOf(layout_.ranks, rank_), channel_, kBroadcastTag); }
  Operand fromBroadcast(int peer) {
    return builder_.receive(peer, othersOf(layout_.ranks, peer), channel_, kBroadcastTag);
  }

  // Everyone's data, ascending by rank.
  std::vector<Operand> terms() {
    std::vector<Operand> all;
    for (int peer = 0; peer < layout_.ranks; ++peer) all.push_back(peer == rank_ ? kIn : from(peer));
    return all;
  }

  void step(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs, uint32_t chunk,
            bool final = false) {
    builder_.step(inputs, outputs, chunk, 1, final);
  }
  void move(Operand input, Operand output, uint32_t inChunk, uint32_t outChunk) {
    builder_.step({input}, {output}, inChunk, outChunk, 1, false);
  }

 private:
  ScheduleBuilder& builder_;
  const Layout& layout_;
  int rank_;
  int channel_;
};

template <class Emit>
Schedule emitChannels(ScheduleBuilder builder, const Layout& layout, int rank, Emit&& emit) {
  for (size_t channel = 0; channel < layout.channels.size(); ++channel)
    emit(Mesh(builder, layout, rank, static_cast<int>(channel)));
  return builder.take();
}

// Collectives with a block per rank.
template <class Emit>
Schedule emitBlocks(const Layout& layout, int rank, int root, bool final, Emit&& emit) {
  checkRank(layout, rank, root);
  if (layout.ranks == 1) return emitAlone(final);
  return emitChannels(blockBuilder(layout, rank), layout, rank, emit);
}

// Collectives whose buffers are one block.
template <class Emit>
Schedule emitWhole(const Layout& layout, int rank, int root, bool final, Emit&& emit) {
  checkRank(layout, rank, root);
  if (layout.ranks == 1) return emitAlone(final);
  return emitChannels(ScheduleBuilder(layout.ranks, rank, static_cast<uint32_t>(layout.channels.size())),
                      layout, rank, emit);
}

}  // namespace

Schedule emitMeshAllGather(const Layout& layout, int rank, int) {
  return emitBlocks(layout, rank, 0, false, [](Mesh mesh) {
    mesh.lane();
    mesh.step({kIn}, {kOut, mesh.sendToAll()}, mesh.block(mesh.rank()));
    mesh.lane();
    for (const int peer : mesh.others()) mesh.step({mesh.fromBroadcast(peer)}, {kOut}, mesh.block(peer));
  });
}

Schedule emitMeshReduceScatter(const Layout& layout, int rank, int) {
  return emitBlocks(layout, rank, 0, true, [](Mesh mesh) {
    mesh.lane();
    for (const int peer : mesh.others()) mesh.step({kIn}, {mesh.sendTo(peer)}, mesh.block(peer));
    mesh.lane();
    mesh.step(mesh.terms(), {kOut}, mesh.block(mesh.rank()), true);
  });
}

Schedule emitMeshAllToAll(const Layout& layout, int rank, int) {
  return emitBlocks(layout, rank, 0, false, [](Mesh mesh) {
    const uint32_t own = mesh.block(mesh.rank());
    mesh.lane();
    for (const int peer : mesh.others()) mesh.move(kIn, mesh.sendTo(peer), mesh.block(peer), own);
    mesh.step({kIn}, {kOut}, own);
    mesh.lane();
    for (const int peer : mesh.others()) mesh.step({mesh.from(peer)}, {kOut}, mesh.block(peer));
  });
}

Schedule emitMeshBroadcast(const Layout& layout, int rank, int root) {
  return emitWhole(layout, rank, root, false, [root](Mesh mesh) {
    mesh.lane();
    if (mesh.rank() == root)
      mesh.step({kIn}, {kOut, mesh.sendToAll()}, mesh.part());
    else
      mesh.step({mesh.fromBroadcast(root)}, {kOut}, mesh.part());
  });
}

Schedule emitMeshReduce(const Layout& layout, int rank, int root) {
  return emitWhole(layout, rank, root, true, [root](Mesh mesh) {
    mesh.lane();
    if (mesh.rank() == root)
      mesh.step(mesh.terms(), {kOut}, mesh.part(), true);
    else
      mesh.step({kIn}, {mesh.sendTo(root)}, mesh.part());
  });
}

Schedule emitMeshGather(const Layout& layout, int rank, int root) {
  return emitBlocks(layout, rank, root, false, [root](Mesh mesh) {
    const uint32_t own = mesh.block(mesh.rank());
    mesh.lane();
    if (mesh.rank() != root) return mesh.step({kIn}, {mesh.sendTo(root)}, own);
    mesh.step({kIn}, {kOut}, own);
    for (const int peer : mesh.others()) mesh.step({mesh.from(peer)}, {kOut}, mesh.block(peer));
  });
}

Schedule emitMeshScatter(const Layout& layout, int rank, int root) {
  return emitBlocks(layout, rank, root, false, [root](Mesh mesh) {
    const uint32_t own = mesh.block(mesh.rank());
    mesh.lane();
    if (mesh.rank() != root) return mesh.step({mesh.from(root)}, {kOut}, own);
    for (const int peer : mesh.others()) mesh.step({kIn}, {mesh.sendTo(peer)}, mesh.block(peer));
    mesh.step({kIn}, {kOut}, own);
  });
}

}  // namespace topoccl
