#include "tools/leat/gateway/serving/node.h"

#include <chrono>
#include <utility>

namespace leat::gateway {
namespace {

constexpr auto kAsk = std::chrono::milliseconds(200);
// How long leatd may be silent is counted in moments of this process, for a host that stands still stops both.
constexpr auto kBeat = std::chrono::milliseconds(250);
constexpr unsigned kStaleBeats = 6;

}  // namespace

// On the asking thread.
Node::Seen Node::seen() {
  Seen out;
  if (!watch_ || watch_->daemon_gone()) {
    watch_.reset();
    auto watch = tools::Watch::connect(options_.socket);
    if (!watch.ok()) {
      out.catalogue.phase = watch.error();
      return out;
    }
    watch_.emplace(std::move(*watch));
  }
  const auto status = watch_->status_json();
  auto catalogue = status.ok() ? catalogue_of(*status) : Result<Catalogue>(Error{status.error()});
  if (!catalogue.ok()) {
    out.catalogue.phase = catalogue.error();
    watch_.reset();
    return out;
  }
  out.catalogue = std::move(*catalogue);
  out.sample = watch_->sample();
  return out;
}

Node::Node(boost::asio::io_context& io, NodeOptions options)
    : io_(io), options_(std::move(options)), timer_(io), beat_(io) {
  auto none = std::make_shared<Catalogue>();
  none->phase = "leatd has not been asked yet";
  catalogue_ = std::move(none);
  ask();
  beat();
}

Node::~Node() {
  *alive_ = false;
  links_.clear();  // disposes of them on the streams' thread
  asking_.end();
  streams_.end();
}

bool Node::ready() const noexcept { return catalogue_->ready() && silent_beats_ < kStaleBeats; }

std::string Node::why_not() const {
  if (silent_beats_ >= kStaleBeats) return "leatd does not answer";
  return catalogue_->serving ? "no partition is up" : catalogue_->phase;
}

void Node::ask() {
  asking_.post([this, alive = alive_] {
    auto seen = std::make_shared<Seen>(this->seen());
    boost::asio::post(io_, [this, alive, seen] {
      if (*alive) told(std::move(*seen));
    });
  });
}

void Node::told(Seen seen) {
  if (!seen.catalogue.serving && seen.catalogue.models.empty()) seen.catalogue.models = catalogue_->models;
  catalogue_ = std::make_shared<const Catalogue>(std::move(seen.catalogue));
  silent_beats_ = 0;
  window_.before = std::move(window_.now);
  window_.now = seen.sample ? std::move(*seen.sample) : tools::Sample{};
  sweep();
  if (looked) looked();
  timer_.expires_after(kAsk);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) ask();
  });
}

void Node::beat() {
  beat_.expires_after(kBeat);
  beat_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    ++silent_beats_;
    beat();
  });
}

void Node::sweep() {
  const std::int64_t now = ::leat_now_ns();
  std::erase_if(links_, [&](const auto& entry) {
    const Link& link = *entry.second;
    return link.gone() || (link.unused() && entry.second.use_count() == 1 && now - link.used_ns() > options_.unused_ns);
  });
}

bool Node::make_room() {
  if (links_.size() + opening_.size() < options_.streams) return true;
  auto longest = links_.end();
  for (auto it = links_.begin(); it != links_.end(); ++it) {
    if (!it->second->unused() || it->second.use_count() != 1) continue;
    if (longest == links_.end() || it->second->used_ns() < longest->second->used_ns()) longest = it;
  }
  if (longest == links_.end()) return false;
  links_.erase(longest);
  return true;
}

void Node::with_link(const StreamKey& key, std::vector<leat_tensor_shape> tensors, OnLink then) {
  if (const auto found = links_.find(key); found != links_.end()) {
    if (!found->second->gone()) return then(found->second, {});
    links_.erase(found);
  }
  if (const auto found = opening_.find(key); found != opening_.end()) {
    found->second.push_back(std::move(then));
    return;
  }
  if (!make_room())
    return then(nullptr, {.status = 503,
                          .why = "all " + std::to_string(options_.streams) +
                                 " streams of this gateway are in use; raise --streams, or name fewer"});
  opening_[key].push_back(std::move(then));
  StreamSpec spec{.key = key, .tensors = std::move(tensors), .depth = options_.depth, .slots = options_.depth + 4};
  streams_.post([this, alive = alive_, spec = std::move(spec)] {
    auto opening = std::make_shared<Link::Opening>(Link::open(options_.socket, spec));
    boost::asio::post(io_, [this, alive, spec, opening] {
      if (*alive) opened(spec, std::move(*opening));
    });
  });
}

void Node::opened(const StreamSpec& spec, Link::Opening opening) {
  const std::vector<OnLink> waiting = std::move(opening_[spec.key]);
  opening_.erase(spec.key);
  std::shared_ptr<Link> link;
  if (opening.opened) {
    auto dispose = [this](Link::Opened closed) {  // the thread outlives every link
      auto kept = std::make_shared<Link::Opened>(std::move(closed));
      streams_.post([kept]() mutable { kept.reset(); });
    };
    link = std::make_shared<Link>(io_, spec, std::move(*opening.opened), std::move(dispose));
    links_[spec.key] = link;
  }
  for (const OnLink& one : waiting) one(link, opening.refusal);
}

}  // namespace leat::gateway
