// A job that reads a short body whole and answers at once. Thread rule: the gateway's thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "tools/leat/gateway/http/job.h"

namespace leat::gateway {

class TextJob : public Job {
 public:
  static constexpr std::uint64_t kMaxBytes = 64 * 1024;
  using Answer = std::function<Reply(std::string_view body, const Channel& channel)>;
  explicit TextJob(Answer answer) : answer_(std::move(answer)) {}
  // The same whatever the body says.
  explicit TextJob(Reply reply)
      : answer_([reply = std::move(reply)](std::string_view, const Channel&) { return reply; }), needs_body_(false) {}

  void start(Channel& channel) override {
    if (channel.body_left() > kMaxBytes)
      return channel.reply(needs_body_ ? error_reply(413, "that is too long for this request") : answer_({}, channel));
    if (channel.body_left() == 0) return channel.reply(answer_({}, channel));
    body_.resize(channel.body_left());
    channel.read(std::as_writable_bytes(std::span(body_)),
                 [this, &channel] { channel.reply(answer_(body_, channel)); });
  }

 private:
  Answer answer_;
  std::string body_;
  bool needs_body_ = true;
};

}  // namespace leat::gateway
