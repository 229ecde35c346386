#include "tests/attacks/arena/raw_client.h"

#include <fcntl.h>

#include "leat/leat.h"

namespace leat::test {

bool RawClient::connect(const std::string& path) {
  leat_error error{};
  auto made = shm::connect_to(path, &error, kReplyNs);
  if (!made.ok()) return false;
  socket = std::move(*made);
  return true;
}

bool RawClient::hello(const std::string& name) {
  shm::Hello m;
  shm::set_text(m.name, name);
  auto reply = ask(m);
  if (!reply || reply->fds.size() != 3) return false;
  constexpr shm::LinkLayout kUp = shm::uplink_layout(), kDown = shm::downlink_layout();
  auto up = shm::Mapping::map(reply->fds[0].get(), kUp.bytes, shm::Access::read_write, false);
  auto down = shm::Mapping::map(reply->fds[1].get(), kDown.bytes, shm::Access::read_only, false);
  if (!up.ok() || !down.ok()) return false;
  uplink = std::move(*up);
  downlink = std::move(*down);
  links = std::move(reply->fds[0]);
  bell = std::move(reply->fds[2]);
  producer = {uplink.at<shm::SubmissionDescriptor>(kUp.cells_offset), kUp.capacity,
              downlink.at<shm::IndexLine>(kDown.index_offset)};
  consumer = {downlink.at<shm::CompletionDescriptor>(kDown.cells_offset), kDown.capacity,
              uplink.at<shm::IndexLine>(kUp.index_offset)};
  if (seals_first) (void)fcntl(links.get(), F_ADD_SEALS, F_SEAL_SEAL);
  return mapped(shm::kLinks);
}

bool RawClient::mapped(std::uint32_t part) {
  shm::Mapped m;
  m.stream = part;
  return ask(m).has_value();
}

bool RawClient::open(const shm::PoolSpec& spec, const std::string& application) {
  return open_unmapped(spec, application) && mapped(stream);
}

bool RawClient::open_unmapped(const shm::PoolSpec& spec, const std::string& application) {
  shm::OpenStream m;
  shm::set_text(m.application, application);
  m.pool = spec;
  m.settings.depth = std::min(spec.slots, shm::kMaxDepth);
  auto reply = ask(m);
  shm::StreamOpened opened;
  if (!reply || reply->fds.size() != 2 || shm::decode(reply->packet, &opened) != nullptr) return false;
  stream = opened.stream;
  frames = std::move(*shm::duplicate(reply->fds[0].get()));
  auto made = shm::StreamView::map_for_client(
      opened.pool, std::move(reply->fds[0]), std::move(reply->fds[1]),
      shm::FrameSlots(uplink.at<shm::SlotWord>(shm::uplink_layout().stream_words(stream)), opened.pool.slots, stream));
  if (!made.ok()) {
    refusal = made.error();
    return false;
  }
  view = std::move(*made);
  return true;
}

shm::SubmissionDescriptor RawClient::good() {
  shm::SubmissionDescriptor d;
  d.stream = static_cast<std::uint16_t>(stream);
  d.capture_ns = leat_now_ns();
  if (const auto got = view.slots().acquire()) {
    (void)view.slots().submit(got->slot, got->generation);
    d.slot = got->slot;
    d.generation = got->generation;
  }
  return d;
}

void RawClient::ring() {
  const char byte = 1;
  (void)::send(bell.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool RawClient::hung_up() {
  char byte;
  return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

std::uint32_t RawClient::take_answers() {
  std::uint32_t count = 0;
  shm::CompletionDescriptor d;
  for (; consumer.pop(d); ++count)
    if (d.stream == stream) (void)view.slots().free(d.slot, d.generation);
  return count;
}

void RawClient::tear_words(std::uint64_t value) {
  auto* words = uplink.at<shm::SlotWord>(shm::uplink_layout().stream_words(stream));
  for (std::uint32_t i = 0; i < view.slots().count(); ++i)
    std::atomic_ref(words[i].value).store(value, std::memory_order_relaxed);
}

}  // namespace leat::test
