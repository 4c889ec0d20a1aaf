// Ranks for tests: threads that share real node memory and run schedules through the real machine and driver,
// without bootstrap or communicator. The transport is a parameter.
#pragma once

#include <bit>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "algorithms/catalog.h"
#include "base/error.h"
#include "executor/driver.h"
#include "kernels/combine_args.h"
#include "kernels/mix.h"
#include "transport/faulty.h"
#include "transport/node_connector.h"

namespace topoccl::test {

enum class Transport { InProcess, Shm, Faulty };

inline const char* name(Transport transport) {
  switch (transport) {
    case Transport::InProcess:
      return "inprocess";
    case Transport::Shm:
      return "shm";
    default:
      return "faulty";
  }
}

// One all-reduce as a test wants it.
struct Request {
  Algorithm algorithm = Algorithm::Ring;
  Protocol protocol = Protocol::Packet;
  int channels = 1;
  uint64_t count = 0;
  DataType type = DataType::Float32;
  Operator op = Operator::Sum;
  uint32_t slots = 4;
  uint32_t slotBytes = 4096;
  uint64_t directBytes = 1024;  // references and offers from here on
  bool streamed = false;

  // Calls that share these share connections.
  auto plan() const { return std::tuple(algorithm, protocol, channels, slots, slotBytes); }
};

// Why a rank's work ended.
enum class End { Done, Failed, GaveUp };

struct NodeOptions {
  WaitPolicy waiting;
  std::chrono::milliseconds patience{0};  // a work gives up when it took that long; 0: never
  Fetching fetching = Fetching::Never;    // over shm
};

class NodeRanks {
 public:
  NodeRanks(int ranks, Transport transport, FatePolicy policy = {}, NodeOptions options = {})
      : ranks_(ranks),
        transport_(transport),
        policy_(policy ? std::move(policy) : [](const Connection&, uint64_t) { return SlotFate{}; }),
        options_(options),
        memory_(std::make_shared<NodeMemory>(NodeMemory::make(ranks, transport == Transport::Shm), ranks)) {
    for (int rank = 0; rank < ranks; ++rank) connectors_.push_back(makeConnector(rank));
    bound_.resize(static_cast<size_t>(ranks));
  }

  NodeMemory& memory() { return *memory_; }

  // A call of one rank. May be run again, with another number.
  class RankWork : public Work {
   public:
    RankWork(NodeRanks& node, const Request& request, int rank, const void* in, void* out, uint64_t number)
        : node_(node), request_(request), rank_(rank), in_(in), out_(out), number_(number) {}

    void renumber(uint64_t number) { number_ = number; }

    BoundSchedule* open() override {
      if (begun_ == Clock::time_point{}) begun_ = Clock::now();
      BoundSchedule* const bound = node_.bind(request_, rank_);
      if (bound == nullptr) return nullptr;
      fillContext(bound->schedule());
      end = End::Done;
      return bound;
    }
    void failed(const BoundSchedule&) override {
      end = End::Failed;
      storeRelease(node_.memory_->board().poison(), uint64_t{1});
    }
    bool giveUp(const BoundSchedule*, bool) override {
      const auto patience = node_.options_.patience;
      if (patience.count() != 0 && Clock::now() - begun_ > patience)
        storeRelease(node_.memory_->board().poison(), uint64_t{1});
      if (loadAcquire(node_.memory_->board().poison()) == 0) return false;
      end = End::GaveUp;
      return true;
    }

    End end = End::GaveUp;

   private:
    using Clock = std::chrono::steady_clock;

    void fillContext(const Schedule& schedule) {
      combine = hostCombine(request_.type, request_.op);
      context.in = static_cast<const unsigned char*>(in_);
      context.out = static_cast<unsigned char*>(out_);
      context.elementBytes = static_cast<uint32_t>(elementBytes(request_.type));
      context.map = makeChunkMap(request_.count, context.elementBytes, schedule.chunks, request_.slotBytes,
                                 schedule.slotChunks, schedule.blocks);
      scratch_.resize(schedule.scratchChunks == 0 ? 0 : request_.count * context.elementBytes + 64);
      context.scratch = scratch_.data();
      context.call = mix(number_, request_.count);
      context.streamed = request_.streamed;
      const auto ranks = static_cast<uint32_t>(node_.ranks_);
      if (request_.op == Operator::Avg && isFloating(request_.type)) {
        context.scaled = true;
        context.scale = averageScale(request_.type, ranks);
      } else if (request_.op == Operator::Avg) {
        context.divisor = ranks;
      }
      if (in_ != out_ || !schedule.copyInPlace) context.referenceBytes = request_.directBytes;
      context.attachBytes = context.referenceBytes;
      context.offerBytes = request_.directBytes;
      context.guard = {&node_.memory_->board().touch(rank_).touching, node_.memory_->board().poison()};
    }

    NodeRanks& node_;
    const Request request_;
    int rank_;
    const void* in_;
    void* out_;
    uint64_t number_;
    Clock::time_point begun_;
    std::vector<unsigned char> scratch_;
  };

  std::unique_ptr<RankWork> makeWork(const Request& request, int rank, const void* in, void* out,
                                     uint64_t number) {
    return std::make_unique<RankWork>(*this, request, rank, in, out, number);
  }

  // Runs works of one rank in order, on the calling thread.
  void driveRank(int rank, std::span<Work* const> works) {
    Doorbell* bells[] = {&memory_->board().doorbell(rank)};
    WorkQueue queue;
    queue.works = works;
    Waiter waiter;
    waiter.reset(options_.waiting, bells, 1);
    drive({&queue, 1}, waiter);
  }

  // Runs `request` on all ranks, one thread each. in[r] and out[r] are rank r's buffers.
  std::vector<End> run(const Request& request, const std::vector<const void*>& in,
                       const std::vector<void*>& out) {
    const auto works = makeWorks(request, in, out);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks_; ++rank)
      threads.emplace_back([&, rank] {
        Work* const work = works[static_cast<size_t>(rank)].get();
        driveRank(rank, {&work, 1});
      });
    for (std::thread& thread : threads) thread.join();
    return endsOf(works);
  }

  // Runs on one thread: it drives all ranks.
  std::vector<End> runOnOneThread(const Request& request, const std::vector<const void*>& in,
                                  const std::vector<void*>& out) {
    const auto works = makeWorks(request, in, out);
    std::vector<Work*> pointers;
    std::vector<Doorbell*> bells;
    std::vector<WorkQueue> queues(static_cast<size_t>(ranks_));
    for (const auto& work : works) pointers.push_back(work.get());
    for (int rank = 0; rank < ranks_; ++rank) bells.push_back(&memory_->board().doorbell(rank));
    for (size_t r = 0; r < queues.size(); ++r) queues[r].works = {&pointers[r], 1};
    Waiter waiter;
    waiter.reset(options_.waiting, bells.data(), static_cast<uint32_t>(bells.size()));
    drive(queues, waiter);
    return endsOf(works);
  }

 private:
  struct Bound {
    std::vector<Endpoint> endpoints;
    Schedule schedule;
    size_t connected = 0;
    std::unique_ptr<BoundSchedule> ready;
  };
  using Works = std::vector<std::unique_ptr<RankWork>>;

  Works makeWorks(const Request& request, const std::vector<const void*>& in, const std::vector<void*>& out) {
    ++calls_;
    Works works;
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto r = static_cast<size_t>(rank);
      works.push_back(makeWork(request, rank, in[r], out[r], calls_));
    }
    return works;
  }

  static std::vector<End> endsOf(const Works& works) {
    std::vector<End> ends;
    for (const auto& work : works) ends.push_back(work->end);
    return ends;
  }

  std::unique_ptr<Connector> makeConnector(int rank) {
    std::vector<RankPlace> places;
    for (int peer = 0; peer < ranks_; ++peer) places.push_back({peer, transport_ != Transport::Shm});
    auto connector = std::make_unique<NodeConnector>(memory_, rank, std::move(places), options_.fetching);
    if (transport_ != Transport::Faulty) return connector;
    return std::make_unique<FaultyConnector>(std::move(connector), rank, &memory_->board().doorbell(rank),
                                             policy_);
  }

  BoundSchedule* bind(const Request& request, int rank) {
    auto& bound = bound_[static_cast<size_t>(rank)][request.plan()];
    if (!bound) {
      bound = std::make_unique<Bound>();
      bound->schedule =
          row(Collective::AllReduce, request.algorithm).emit(flatLayout(ranks_, request.channels), rank, 0);
      bound->endpoints.resize(bound->schedule.connections.size());
    }
    if (bound->ready) return bound->ready.get();
    Connector& connector = *connectors_[static_cast<size_t>(rank)];
    // Own rings first: in a test with threads nobody may wait for a ring that waits for another.
    if (bound->connected == 0) {
      for (size_t i = 0; i < bound->endpoints.size(); ++i)
        if (bound->schedule.connections[i].from == rank) connect(connector, request, *bound, i);
    }
    for (; bound->connected < bound->endpoints.size(); ++bound->connected)
      if (bound->schedule.connections[bound->connected].from != rank &&
          !connect(connector, request, *bound, bound->connected))
        return nullptr;
    std::vector<Endpoint*> ends;
    for (Endpoint& endpoint : bound->endpoints) ends.push_back(&endpoint);
    bound->ready = std::make_unique<BoundSchedule>(bound->schedule, std::move(ends));
    return bound->ready.get();
  }

  bool connect(Connector& connector, const Request& request, Bound& bound, size_t index) {
    const Connection& connection = bound.schedule.connections[index];
    if (bound.endpoints[index].bells != nullptr) return true;
    uint64_t key = mix(static_cast<uint64_t>(connection.from), static_cast<uint64_t>(connection.channel));
    key = mix(key, static_cast<uint64_t>(connection.tag));
    for (const int reader : connection.readers) key = mix(key, static_cast<uint64_t>(reader));
    key = mix(key, static_cast<uint64_t>(request.algorithm) << 8 | static_cast<uint64_t>(request.protocol));
    key = mix(mix(key, static_cast<uint64_t>(request.channels)), mix(request.slots, request.slotBytes));
    const RingShape shape{std::max(request.slots, std::bit_ceil(bound.schedule.minSlots)), request.slotBytes,
                          static_cast<uint32_t>(connection.readers.size())};
    return connector.connect({&connection, key, shape, request.protocol}, bound.endpoints[index]);
  }

  using Plan = decltype(Request().plan());

  int ranks_;
  Transport transport_;
  FatePolicy policy_;
  NodeOptions options_;
  std::shared_ptr<NodeMemory> memory_;
  std::vector<std::unique_ptr<Connector>> connectors_;
  std::vector<std::map<Plan, std::unique_ptr<Bound>>> bound_;  // per rank
  uint64_t calls_ = 0;
};

}  // namespace topoccl::test
