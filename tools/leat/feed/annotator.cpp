#include "tools/leat/feed/annotator.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "tools/leat/feed/av_text.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
}

namespace leat::tools {
namespace {

constexpr std::size_t kQueue = 48;    // pictures waiting for the encoder
constexpr std::size_t kReorder = 16;  // an answer may overtake this many earlier ones

class Writer : public Annotator {
 public:
  ~Writer() override {
    stop();
    ::av_packet_free(&packet_);
    ::av_frame_free(&picture_);
    ::avcodec_free_context(&encoder_);
    if (output_ != nullptr) ::avio_closep(&output_->pb);
    ::avformat_free_context(output_);
  }

  Status open(const std::string& path, std::uint32_t width, std::uint32_t height, double rate) {
    path_ = path;
    ::av_log_set_level(AV_LOG_FATAL);
    ::avformat_alloc_output_context2(&output_, nullptr, nullptr, path.c_str());
    if (output_ == nullptr) return Error{"'" + path + "': no container has this ending; use .mp4 or .mkv"};
    const AVCodec* codec = ::avcodec_find_encoder_by_name("libx264");
    if (codec == nullptr) codec = ::avcodec_find_encoder(AV_CODEC_ID_H264);
    if (codec == nullptr) codec = ::avcodec_find_encoder(AV_CODEC_ID_MPEG4);
    if (codec == nullptr) return Error{"libavcodec has no encoder for H.264 or MPEG-4; install its full build"};
    stream_ = ::avformat_new_stream(output_, codec);
    encoder_ = ::avcodec_alloc_context3(codec);
    encoder_->width = static_cast<int>(width & ~1U);
    encoder_->height = static_cast<int>(height & ~1U);
    encoder_->pix_fmt = AV_PIX_FMT_YUV420P;
    encoder_->time_base = ::av_inv_q(::av_d2q(rate > 0 ? rate : 30, 1'000'000));
    encoder_->framerate = ::av_inv_q(encoder_->time_base);
    encoder_->thread_count = 1;
    encoder_->gop_size = 60;
    if ((output_->oformat->flags & AVFMT_GLOBALHEADER) != 0) encoder_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    ::av_opt_set(encoder_->priv_data, "preset", "ultrafast", 0);
    ::av_opt_set(encoder_->priv_data, "crf", "20", 0);
    int error = ::avcodec_open2(encoder_, codec, nullptr);
    if (error >= 0) error = ::avcodec_parameters_from_context(stream_->codecpar, encoder_);
    stream_->time_base = encoder_->time_base;
    if (error >= 0) error = ::avio_open(&output_->pb, path.c_str(), AVIO_FLAG_WRITE);
    if (error >= 0) error = ::avformat_write_header(output_, nullptr);
    if (error < 0)
      return Error{"'" + path + "' cannot be written: " + av_text(error) + "; name a writable file with room"};
    picture_ = ::av_frame_alloc();
    packet_ = ::av_packet_alloc();
    thread_ = std::thread([this] { encode_all(); });
    return Done{};
  }

  void add(std::uint64_t index, Canvas canvas) override {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kQueue || index < next_) {
      ++left_out_;
      return;
    }
    waiting_.emplace(index, std::move(canvas));
    wake_.notify_one();
  }

  Result<std::uint64_t> finish() override {
    stop();
    if (error_ >= 0) error_ = send(nullptr);
    if (error_ >= 0) error_ = ::av_write_trailer(output_);
    if (error_ < 0) return Error{"'" + path_ + "' could not be completed: " + av_text(error_) + "; is the disk full?"};
    return left_out_;
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      wake_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

  void encode_all() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] {
        return ended_ || (!waiting_.empty() && (waiting_.begin()->first == next_ || waiting_.size() > kReorder));
      });
      if (waiting_.empty()) return;
      auto first = waiting_.extract(waiting_.begin());
      next_ = first.key() + 1;
      lock.unlock();
      if (error_ >= 0) error_ = encode(first.key(), first.mapped());
      lock.lock();
    }
  }

  int encode(std::uint64_t index, Canvas& canvas) {
    picture_->format = AV_PIX_FMT_YUV420P;
    picture_->width = encoder_->width;
    picture_->height = encoder_->height;
    picture_->pts = static_cast<std::int64_t>(index);
    if (const int error = ::av_frame_get_buffer(picture_, 0); error < 0) return error;
    const std::vector<std::uint8_t>* planes[] = {&canvas.y, &canvas.u, &canvas.v};
    for (int p = 0; p < 3; ++p) {
      const std::size_t row_bytes = p == 0 ? canvas.width : canvas.width / 2,
                        rows = p == 0 ? canvas.height : canvas.height / 2;
      for (std::size_t row = 0; row < rows; ++row)
        std::copy_n(planes[p]->data() + row * row_bytes, row_bytes,
                    picture_->data[p] + static_cast<std::ptrdiff_t>(row) * picture_->linesize[p]);
    }
    const int error = send(picture_);
    ::av_frame_unref(picture_);
    return error;
  }

  // nullptr: the end.
  int send(const AVFrame* picture) {
    int error = ::avcodec_send_frame(encoder_, picture);
    while (error >= 0) {
      error = ::avcodec_receive_packet(encoder_, packet_);
      if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return 0;
      if (error < 0) return error;
      if (packet_->duration == 0) packet_->duration = 1;  // without it the last picture has no length and is not shown
      ::av_packet_rescale_ts(packet_, encoder_->time_base, stream_->time_base);
      packet_->stream_index = stream_->index;
      error = ::av_interleaved_write_frame(output_, packet_);
    }
    return error;
  }

  std::string path_;
  AVFormatContext* output_ = nullptr;
  AVCodecContext* encoder_ = nullptr;
  AVStream* stream_ = nullptr;
  AVFrame* picture_ = nullptr;
  AVPacket* packet_ = nullptr;
  std::thread thread_;
  std::mutex mutex_;  // guards what follows, but error_, which the encoding thread owns until it has ended
  std::condition_variable wake_;
  std::map<std::uint64_t, Canvas> waiting_;
  std::uint64_t next_ = 0, left_out_ = 0;
  bool ended_ = false;
  int error_ = 0;
};

// The colour of a label's own name where it is one, so that box and label say the same.
Ink ink_of_label(std::string_view name) {
  if (name == "red") return ink_of_rgb(255, 60, 60);
  if (name == "green") return ink_of_rgb(60, 255, 60);
  if (name == "blue") return ink_of_rgb(110, 140, 255);
  if (name == "yellow") return ink_of_rgb(255, 255, 60);
  if (name == "magenta") return ink_of_rgb(255, 80, 255);
  if (name == "cyan") return ink_of_rgb(60, 255, 255);
  return ink_of_rgb(255, 255, 255);
}

std::string name_or_number(const leat_stream* stream, std::uint32_t head, std::int32_t class_id) {
  const char* name = ::leat_class_name(stream, head, class_id);
  return name != nullptr ? name : std::to_string(class_id);
}

constexpr Ink kPartInk{.y = 200, .u = 60, .v = 100};

void draw_quad(Canvas& canvas, const float (&quad)[8], int thickness) {
  for (int corner = 0; corner < 4; ++corner) {
    const int next = (corner + 1) % 4;
    draw_line(canvas, quad[2 * corner], quad[2 * corner + 1], quad[2 * next], quad[2 * next + 1], thickness, kPartInk);
  }
}

// What lies behind the head of a result and can be drawn: boxes, turned boxes, points, masks, lines of text.
void draw_part(Canvas& canvas, const leat_stream* stream, const leat_part_view& part, int scale) {
  const auto each = [&]<class T>(T row, auto&& draw) {
    for (std::uint64_t i = 0; i < part.count; ++i) {
      std::memcpy(&row, static_cast<const char*>(part.data) + i * sizeof row, sizeof row);
      draw(row);
    }
  };
  if (part.kind == LEAT_PART_boxes)
    each(leat_box{}, [&](const leat_box& b) {
      draw_box(canvas, b.x0, b.y0, b.x1, b.y1, scale + 1, kPartInk);
      draw_text(canvas, static_cast<int>(b.x0), static_cast<int>(b.y0) - text_height(scale),
                name_or_number(stream, 0, b.class_id), scale, kPartInk);
    });
  if (part.kind == LEAT_PART_oriented)
    each(leat_oriented_box{}, [&](const leat_oriented_box& b) {
      const float c = std::cos(b.angle), s = std::sin(b.angle), w = b.width / 2, h = b.height / 2;
      draw_quad(canvas,
                {b.cx - w * c + h * s, b.cy - w * s - h * c, b.cx + w * c + h * s, b.cy + w * s - h * c,
                 b.cx + w * c - h * s, b.cy + w * s + h * c, b.cx - w * c - h * s, b.cy - w * s + h * c},
                scale + 1);
    });
  if (part.kind == LEAT_PART_keypoints)
    each(leat_keypoint{}, [&](const leat_keypoint& k) {
      if (k.score > .3F) draw_line(canvas, k.x, k.y, k.x, k.y, 3 * scale, kPartInk);
    });
  for (std::uint32_t i = 0; i < part.count && part.kind == LEAT_PART_masks; ++i) {
    leat_mask mask;
    if (const std::uint8_t* bits = leat_mask_at(&part, i, &mask)) draw_mask(canvas, mask, bits, kPartInk);
  }
  for (std::uint32_t i = 0; i < part.count && part.kind == LEAT_PART_text; ++i) {
    leat_text line;
    const char* text = leat_text_at(&part, i, &line);
    if (text == nullptr) continue;
    draw_quad(canvas, line.quad, scale);
    draw_text(canvas, static_cast<int>(line.quad[0]), static_cast<int>(line.quad[1]) - text_height(scale),
              std::string_view(text, line.length), scale, kPartInk);
  }
}

}  // namespace

Result<std::unique_ptr<Annotator>> Annotator::open(const std::string& path, std::uint32_t width, std::uint32_t height,
                                                   double rate) {
  auto writer = std::make_unique<Writer>();
  if (const Status opened = writer->open(path, width, height, rate); !opened.ok()) return Error{opened.error()};
  return std::unique_ptr<Annotator>(std::move(writer));
}

void draw_answer(Canvas& canvas, const leat_answer& answer) {
  const int scale = canvas.height >= 600 ? 2 : 1;
  const auto outcome = static_cast<Outcome>(answer.outcome);
  char head[96];
  if (answer.result == nullptr) {
    std::snprintf(head, sizeof head, "%s (%s)", std::string(name_of(outcome)).c_str(),
                  std::string(name_of(static_cast<Reason>(answer.reason))).c_str());
    draw_text(canvas, 4, 4, head, scale + 1, ink_of_rgb(255, 160, 60));
    return;
  }
  const leat_result& result = *answer.result;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result.detection_count, LEAT_MAX_DETECTIONS); ++i) {
    const leat_detection& found = result.detections[i];
    std::string text;
    Ink ink = ink_of_label("");
    for (std::uint32_t l = std::min<std::uint32_t>(found.label_count, LEAT_MAX_LABELS); l-- > 0;) {
      const std::string name = name_or_number(answer.stream, 1 + found.labels[l].head, found.labels[l].class_id);
      text += name + " ";
      if (found.labels[l].head == 1) ink = ink_of_label(name);
    }
    if (found.label_count == 0) text = name_or_number(answer.stream, 0, found.class_id) + " ";
    text += std::to_string(static_cast<int>(std::lround(found.score * 100))) + "%";
    draw_box(canvas, found.x0, found.y0, found.x1, found.y1, scale + 1, ink);
    draw_text(canvas, static_cast<int>(found.x0), static_cast<int>(found.y0) - text_height(scale), text, scale, ink);
  }
  std::uint32_t index = 0;
  for (leat_part_view part; leat_next_part(&result, answer.result_bytes, &index, &part) != 0;)
    draw_part(canvas, answer.stream, part, scale);
  std::snprintf(head, sizeof head, "%s, %.1f ms, %u found", std::string(name_of(outcome)).c_str(),
                static_cast<double>(answer.answered_ns - answer.capture_ns) / 1e6, result.detection_count);
  draw_text(canvas, 4, 4, head, scale, outcome == Outcome::late ? ink_of_rgb(255, 160, 60) : ink_of_rgb(255, 255, 255));
}

}  // namespace leat::tools
