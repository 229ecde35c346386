// DeepStack's request: a picture in a form, boxes out. POST /v1/vision/detection, and /v1/vision/custom/NAME for the
// application NAME. Fields: image (a file), min_confidence. Thread rule: the gateway's thread; decoding is a thread's.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <thread>

#include "tools/leat/gateway/deepstack/picture.h"
#include "tools/leat/gateway/serving/frame_job.h"

namespace leat::gateway {

// The thread that decodes.
class Decoder {
 public:
  explicit Decoder(boost::asio::io_context& io);
  ~Decoder();
  using Then = std::function<void(Result<DecodedPicture>)>;
  // `file` is kept until then; both are let go of on the gateway's thread.
  void decode(std::shared_ptr<HeldMemory> body, std::span<const std::byte> file, Then then);

 private:
  boost::asio::io_context& io_;
  boost::asio::io_context work_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_;
  std::thread thread_;
};

class PictureJob final : public FrameJob {
 public:
  PictureJob(Serving& serving, std::shared_ptr<const Catalogue> catalogue, const Model& model, Decoder& decoder)
      : FrameJob(serving, std::move(catalogue), model), decoder_(decoder) {}

 private:
  void begin() override;
  void fill() override;
  void complete(std::uint32_t item, Answer answer) override;
  Reply failure(int status, std::string_view why) const override;
  void body_read();
  void decoded(Result<DecodedPicture> picture);

  Decoder& decoder_;
  std::shared_ptr<HeldMemory> body_;
  DecodedPicture picture_;
  double min_confidence_ = 0.4;
};

}  // namespace leat::gateway
