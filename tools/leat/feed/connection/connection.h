// One connection to leatd for all streams of a feeder, made anew whenever leatd has come back. (A connection holds 64
// streams and 512 slots; who needs more gets another.)
//
// A thread of the connection's own takes all answers, puts each into the inbox of its stream, and opens and closes
// streams. Submissions of different streams come from different threads, and take turns for as long as a descriptor
// takes. While a stream opens or closes the others wait, for as long as leatd takes for it, and to answer what a
// closing one has in flight: so let it be answered before.
//
// Thread rule: any thread; a stream's functions are for one thread at a time. Errors: one line with what to do.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "leat/client.hpp"
#include "tools/leat/feed/connection/inbox.h"

namespace leat::tools {

class Link;

class SharedStream {
 public:
  ~SharedStream();  // closes it, in a moment
  SharedStream(const SharedStream&) = delete;
  SharedStream& operator=(const SharedStream&) = delete;

  // From now on no answer comes to the inbox, which may go before the stream does.
  void detach();
  [[nodiscard]] leat_stream* raw() const noexcept { return raw_; }
  [[nodiscard]] bool ends() const noexcept;  // leatd has said that it takes no more, and will be gone soon
  [[nodiscard]] bool lost() const noexcept;  // leatd has gone: nothing more comes of it
  std::optional<Frame> acquire() noexcept;
  leat_error submit(Frame& frame, const leat_submit_options& options) noexcept;
  // Whether a frame taken then is wanted now (leat_wanted).
  [[nodiscard]] bool wanted(std::int64_t capture_ns) noexcept;
  // What tracking lost, of a coordinated stream (leat.h).
  void observe(std::uint32_t stride, double drop, double expected) noexcept;  // expected: below 0, it is not said
  void observe_far(std::uint32_t stride, double drop) noexcept;

 private:
  friend class Connection;
  SharedStream(std::shared_ptr<Link> link, leat_stream* raw, std::uint32_t slots, Inbox& inbox)
      : link_(std::move(link)), raw_(raw), slots_(slots), inbox_(&inbox) {}
  std::shared_ptr<Link> link_;
  leat_stream* raw_;
  std::uint32_t slots_;
  Inbox* inbox_;  // null: detached
};

class Connection {
 public:
  // socket: empty: the default one. name: shown by `leat top`.
  Connection(std::string socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {}
  // Connects where it must. `inbox` outlives the stream, or its detach().
  Result<std::shared_ptr<SharedStream>> open(const leat_stream_options& options, Inbox& inbox);
  // The application that leatd serves, where it serves one alone.
  [[nodiscard]] Result<std::string> only_application() const;
  // Why a stream must say which it is for; empty: it need not, or leatd cannot be asked now.
  [[nodiscard]] std::string several_applications() const;
  [[nodiscard]] std::size_t links();  // connections there are now

 private:
  [[nodiscard]] Result<std::vector<std::string>> applications() const;
  Result<std::shared_ptr<Link>> link_for(std::uint32_t slots);

  const std::string socket_, name_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Link>> links_;
  std::int64_t tried_ns_ = 0;  // when connecting failed last, and
  std::string why_;            // why
};

}  // namespace leat::tools
