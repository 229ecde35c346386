// The scheduler thread between a hostile client and a hostile worker: the submission side of the client's segment, its
// slots, and the worker's channel, with any bytes at any moment. The input is a list of moves. Whatever they are, the
// process goes on, every submission is answered once, and when client and workers are gone nothing of them is left.
#include <array>
#include <memory>

#include "shm/src/client/client_port.h"
#include "tests/fuzz/stepped/served.h"

namespace leat::fuzz {
namespace {

using core::PartitionId;
using daemon::Command;
using daemon::SchedulerEvent;
using shm::RecordKind;

constexpr std::uint32_t kModules = 2, kStreams = 2;
constexpr shm::PoolSpec kSpec{LEAT_FORMAT_gray8, 16, 16, {}, 4, LEAT_SLOT_HOST};
constexpr std::size_t kMaxMoves = 256;

enum class Move : std::uint8_t {
  submit,          // as the library does
  submit_changed,  // a sound descriptor with some bytes of it changed
  poke_uplink,     // eight bytes anywhere in what the client can write
  move_slot,       // a slot's word, by any of the client's moves
  turn,            // the scheduler thread's, some time later
  work,            // a worker ends its batches, as it should
  report_changed,  // a worker reports a batch with some bytes changed
  poke_channel,    // eight bytes anywhere in what the worker can write
  lose_worker,     // it died; another comes
  take_answers,
  close_stream,  // and open it again
  cancel,
  count_
};

class Rig {
 public:
  Rig() {
    events_ = std::move(shm::Doorbell::create()).value();
    begin_records(RecordKind::client, 1);
    begin_records(RecordKind::stream, kStreams);
    begin_records(RecordKind::module, kModules);
    begin_records(RecordKind::partition, kPartitions);
    const core::Topology served = topology({kModules});
    daemon::LoopOptions options = options_of(served);
    options.limits = {.streams = kStreams, .requests = 16, .tasks = 64, .batches = 16, .actions = 256};
    options.clients = 1;
    loop_ = std::move(daemon::SchedulerLoop::create(served, core::Policy{}, std::move(options), metrics(), events_,
                                                    std::move(shm::Doorbell::create()).value()))
                .value();
    client_ = std::move(shm::ClientPort::create()).value();
    const shm::Fd up = std::move(client_->uplink_for_client()).value();
    const shm::Fd down = std::move(client_->downlink_for_client()).value();
    uplink_ = std::move(shm::Mapping::map(up.get(), kUp.bytes, shm::Access::read_write, true)).value();
    downlink_ = std::move(shm::Mapping::map(down.get(), kDown.bytes, shm::Access::read_only, true)).value();
    producer_ = {uplink_.at<shm::SubmissionDescriptor>(kUp.cells_offset), kUp.capacity,
                 downlink_.at<shm::IndexLine>(kDown.index_offset)};
    consumer_ = {downlink_.at<shm::CompletionDescriptor>(kDown.cells_offset), kDown.capacity,
                 uplink_.at<shm::IndexLine>(kUp.index_offset)};
    insist(client_->secure().ok(), "an uplink that cannot be sealed");
    loop_->command({.kind = Command::Kind::add_client, .client = 0, .port = client_.get()});
    connected_ = true;
    for (std::uint32_t s = 0; s < kStreams; ++s) open(s);
    for (PartitionId p = 0; p < kPartitions; ++p) start_worker(p);
    turn(1);
  }
  ~Rig() {
    for (auto& s : streams_) delete s.returned;
  }

  void move(Move what, Reader& in) {
    switch (what) {
      case Move::submit:
        return push(good(in.below(kStreams)));
      case Move::submit_changed: {
        shm::SubmissionDescriptor d = good(in.below(kStreams));
        change(&d, sizeof(d), in);
        return push(d);
      }
      case Move::poke_uplink:
        return poke(uplink_.at<std::uint8_t>(0), kUp.bytes, in);
      case Move::move_slot:
        return move_slot(in);
      case Move::turn:
        return turn(in.take<std::uint16_t>() * std::int64_t{1000});
      case Move::work:
        return work(in.below(kPartitions), nullptr);
      case Move::report_changed:
        return work(in.below(kPartitions), &in);
      case Move::poke_channel:
        return poke(workers_[in.below(kPartitions)].channel.at<std::uint8_t>(0), worker::channel_layout().bytes, in);
      case Move::lose_worker:
        return lose(in.below(kPartitions));
      case Move::take_answers: {
        shm::CompletionDescriptor d;
        for (int i = 0; i < 8 && consumer_.pop(d); ++i)
          if (d.stream < kStreams && streams_[d.stream].open) (void)streams_[d.stream].slots.free(d.slot, d.generation);
        return;
      }
      case Move::close_stream: {
        const std::uint32_t s = in.below(kStreams);
        if (!connected_ || !streams_[s].open) return;
        streams_[s].open = false;
        return loop_->command({.kind = Command::Kind::close_stream, .client = 0, .stream = s});
      }
      case Move::cancel: {
        shm::SubmissionDescriptor d = last_;
        d.kind = shm::SubmissionKind::cancel;
        return push(d);
      }
      case Move::count_:
        return;
    }
  }

  // Client and workers go; nothing may be left of them.
  void end() {
    disconnect();
    for (int i = 0; i < 64 && !gone_; ++i) {
      for (PartitionId p = 0; p < kPartitions; ++p) lose(p);
      turn(1'000'000);
    }
    insist(gone_, "a client that never leaves: a submission without an answer, or a slot that is held");
    insist_on_ledger();
  }

 private:
  static constexpr auto kUp = shm::uplink_layout();
  static constexpr auto kDown = shm::downlink_layout();
  struct OneStream {
    bool open = false;
    shm::FrameSlots slots;
    shm::StreamPool* returned = nullptr;
  };

  void open(std::uint32_t s) {
    auto pool = std::make_unique<shm::StreamPool>(std::move(shm::StreamPool::create(kSpec)).value());
    streams_[s].open = true;
    streams_[s].slots = {uplink_.at<shm::SlotWord>(kUp.stream_words(s)), kSpec.slots, s};
    Command c{.kind = Command::Kind::open_stream, .client = 0, .stream = s};
    c.pool = pool.release();
    c.granted.settings.depth = kSpec.slots;
    c.granted.settings.slo_ns = c.granted.slo_ns = 50'000'000;
    c.granted.pool = s;
    c.granted.frame_bytes = 256;
    loop_->command(c);
  }
  void start_worker(PartitionId p) {
    workers_[p].start();
    loop_->command({.kind = Command::Kind::worker_ready, .partition = p, .worker = workers_[p].port.get()});
    lost_[p] = false;
  }
  void lose(PartitionId p) {
    if (!lost_[p]) loop_->command({.kind = Command::Kind::worker_lost, .partition = p});
    lost_[p] = true;
  }
  void disconnect() {
    if (connected_) loop_->command({.kind = Command::Kind::remove_client, .client = 0});
    connected_ = false;
  }

  void turn(std::int64_t later) {
    now_ += later;
    (void)loop_->turn(now_);
    (void)loop_->turn(now_);
    for (SchedulerEvent n; loop_->next_event(n);) handle(n);
  }
  // What the control thread does.
  void handle(const SchedulerEvent& n) {
    switch (n.kind) {
      case SchedulerEvent::Kind::client_violated:
        return disconnect();
      case SchedulerEvent::Kind::client_drained:
        gone_ = true;
        return;
      case SchedulerEvent::Kind::stream_closed:
        delete n.pool;
        streams_[n.stream].open = false;
        if (connected_) open(n.stream);
        return;
      case SchedulerEvent::Kind::stream_refused:
        delete n.pool;
        streams_[n.stream].open = false;
        return;
      case SchedulerEvent::Kind::worker_broken:
        return lose(n.partition);
      case SchedulerEvent::Kind::worker_released:
        return start_worker(n.partition);
      default:
        return;
    }
  }

  // What the library would submit: the next free slot of the stream. Without one, a slot that is in use.
  shm::SubmissionDescriptor good(std::uint32_t s) {
    shm::SubmissionDescriptor d;
    d.stream = static_cast<std::uint16_t>(s);
    d.capture_ns = now_;
    d.items = 1;
    if (streams_[s].open) {
      if (const auto got = streams_[s].slots.acquire()) {
        (void)streams_[s].slots.submit(got->slot, got->generation);
        d.slot = got->slot;
        d.generation = got->generation;
      }
    }
    return last_ = d;
  }
  void push(const shm::SubmissionDescriptor& d) { (void)producer_.push(d); }
  void move_slot(Reader& in) {
    OneStream& s = streams_[in.below(kStreams)];
    const std::uint32_t slot = in.below(kSpec.slots);
    const std::uint32_t how = in.below(5), by = in.below(3);
    if (!s.open) return;
    const std::uint32_t generation = s.slots.load(slot).generation + by;
    switch (how) {
      case 0:
        (void)s.slots.acquire();
        return;
      case 1:
        (void)s.slots.submit(slot, generation);
        return;
      case 2:
        (void)s.slots.abandon(slot, generation);
        return;
      case 3:
        (void)s.slots.withdraw(slot, generation);
        return;
      default:
        (void)s.slots.free(slot, generation);
    }
  }

  void work(PartitionId p, Reader* changes) {
    if (!lost_[p]) workers_[p].work(now_, changes);
  }

  shm::Doorbell events_;
  std::unique_ptr<shm::ClientPort> client_;
  std::array<FakeWorker, kPartitions> workers_;
  std::unique_ptr<daemon::SchedulerLoop> loop_;
  shm::Mapping uplink_, downlink_;
  shm::RingProducer<shm::SubmissionDescriptor> producer_;
  shm::RingConsumer<shm::CompletionDescriptor> consumer_;
  std::array<OneStream, kStreams> streams_;
  std::array<bool, kPartitions> lost_{};
  shm::SubmissionDescriptor last_;
  std::int64_t now_ = 1'000'000'000;
  bool connected_ = false, gone_ = false;
};

std::string moves(std::initializer_list<std::pair<Move, std::string>> list) {
  std::string out;
  for (const auto& [what, rest] : list) out += static_cast<char>(what) + rest;
  return out;
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string first(2, '\0'), second("\1\0", 2), ms("\xe8\x03", 2), byte("\0\0\1\0\xff", 5);
  return {moves({{Move::submit, first},
                 {Move::turn, ms},
                 {Move::work, first},
                 {Move::work, second},
                 {Move::turn, ms},
                 {Move::work, first},
                 {Move::work, second},
                 {Move::turn, ms},
                 {Move::take_answers, ""}}),
          moves({{Move::submit, first},
                 {Move::submit, second},
                 {Move::turn, ms},
                 {Move::lose_worker, first},
                 {Move::turn, ms},
                 {Move::work, second},
                 {Move::turn, ms},
                 {Move::cancel, ""},
                 {Move::turn, ms}}),
          moves({{Move::submit, first},
                 {Move::turn, ms},
                 {Move::close_stream, first},
                 {Move::turn, ms},
                 {Move::submit, first},
                 {Move::turn, ms},
                 {Move::work, first},
                 {Move::turn, ms}}),
          moves({{Move::submit_changed, first + byte}, {Move::turn, ms}, {Move::submit, second}, {Move::turn, ms}}),
          moves({{Move::submit, first},
                 {Move::turn, ms},
                 {Move::report_changed, first + byte},
                 {Move::turn, ms},
                 {Move::report_changed, second + byte},
                 {Move::turn, ms}}),
          moves({{Move::poke_uplink, std::string(12, '\1')},
                 {Move::turn, ms},
                 {Move::poke_channel, std::string(14, '\2')},
                 {Move::turn, ms},
                 {Move::move_slot, std::string(8, '\1')},
                 {Move::turn, ms}})};
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat::fuzz;
  Reader in(data, size);
  Rig rig;
  for (std::size_t i = 0; i < kMaxMoves && !in.empty(); ++i)
    rig.move(static_cast<Move>(in.take<std::uint8_t>() % static_cast<std::uint8_t>(Move::count_)), in);
  rig.end();
  return 0;
}
