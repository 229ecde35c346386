#include "tools/leat/bridge/crop_exchange.h"

#include <sys/eventfd.h>

#include <utility>

namespace leat::tools {
namespace {

Fd make_bell() { return Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }
void ring(const Fd& bell) {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell.get(), &one, sizeof one));  // full: it rings already
}
void silence(const Fd& bell) {
  std::uint64_t rings;
  static_cast<void>(!::read(bell.get(), &rings, sizeof rings));
}

}  // namespace

CropExchange::CropExchange(ModelNames names)
    : names_(std::move(names)), crops_bell_(make_bell()), answers_bell_(make_bell()) {}

void CropExchange::put(Crop crop) {
  const std::lock_guard lock(mutex_);
  crops_.push_back(std::move(crop));
  ring(crops_bell_);
}

std::vector<CropAnswer> CropExchange::take_answers() {
  const std::lock_guard lock(mutex_);
  silence(answers_bell_);
  return std::exchange(answers_, {});
}

void CropExchange::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  ring(crops_bell_);
}

std::deque<Crop> CropExchange::take_crops() {
  const std::lock_guard lock(mutex_);
  if (!stopped_) silence(crops_bell_);  // who was told to stop must not wait any more
  return std::exchange(crops_, {});
}

void CropExchange::put(CropAnswer answer) {
  const std::lock_guard lock(mutex_);
  answers_.push_back(answer);
  ring(answers_bell_);
}

bool CropExchange::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void CropExchange::set_served(std::vector<std::string> names) {
  const std::lock_guard lock(mutex_);
  names_.served = std::move(names);
}

void CropExchange::set_connected(bool connected) {
  const std::lock_guard lock(mutex_);
  connected_ = connected;
}

Result<std::string> CropExchange::application_of(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  return names_.application_of(model);
}

bool CropExchange::connected() const {
  const std::lock_guard lock(mutex_);
  return connected_;
}

}  // namespace leat::tools
