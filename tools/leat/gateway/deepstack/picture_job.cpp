#include "tools/leat/gateway/deepstack/picture_job.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <utility>

#include "tools/base/json/json.h"
#include "tools/leat/gateway/http/multipart.h"

namespace leat::gateway {
namespace {

constexpr std::uint64_t kMaxFileBytes = 32U << 20;

}  // namespace

Decoder::Decoder(boost::asio::io_context& io)
    : io_(io), keep_(boost::asio::make_work_guard(work_)), thread_([this] { work_.run(); }) {}

Decoder::~Decoder() {
  work_.stop();
  thread_.join();
}

void Decoder::decode(std::shared_ptr<HeldMemory> body, std::span<const std::byte> file, Then then) {
  boost::asio::post(work_, [this, body = std::move(body), file, then = std::move(then)]() mutable {
    auto picture = std::make_shared<Result<DecodedPicture>>(decode_picture(file));
    boost::asio::post(io_, [body = std::move(body), picture, then = std::move(then)] { then(std::move(*picture)); });
  });
}

Reply PictureJob::failure(int status, std::string_view why) const {
  Reply out;
  out.status = status;
  out.body = Json{{"success", false}, {"error", why}}.dump();
  return out;
}

void PictureJob::begin() {
  const std::uint64_t bytes = channel_->body_left();
  if (bytes == 0 || bytes > kMaxFileBytes)
    return refuse(bytes == 0 ? 400 : 413, "bad_request",
                  "a picture has 1 to " + std::to_string(kMaxFileBytes) + " bytes; send it as a form's file 'image'");
  body_ = std::make_shared<HeldMemory>();
  if (!body_->take(serving_.held, bytes)) return refuse(503, "memory", "too many bodies at once; try again");
  channel_->read(body_->bytes(), guarded(this, &PictureJob::body_read));
}

void PictureJob::body_read() {
  const std::string boundary = boundary_of(channel_->head().field("content-type"));
  std::span<const std::byte> file;
  for (const FormPart& part : form_parts(body_->text(), boundary)) {
    if (part.name == "min_confidence") {
      double value = 0;
      const auto [end, error] = std::from_chars(part.data.data(), part.data.data() + part.data.size(), value);
      if (error == std::errc()) min_confidence_ = std::clamp(value, 0.0, 1.0);
    } else if (file.empty() && (part.file || part.name == "image")) {
      file = std::as_bytes(std::span(part.data));
    }
  }
  if (boundary.empty()) file = body_->bytes();  // the picture alone
  if (file.empty()) return refuse(400, "bad_request", "the form holds no file 'image'");
  decoder_.decode(std::exchange(body_, nullptr), file, guarded(this, &PictureJob::decoded));
}

void PictureJob::decoded(Result<DecodedPicture> picture) {
  if (!picture.ok()) return refuse(400, "bad_request", picture.error());
  picture_ = std::move(*picture);
  auto terms = terms_of(*channel_, model_, 0, LEAT_PRIORITY_NORMAL);
  if (!terms.ok()) return refuse(400, "bad_request", terms.error());
  terms->key.format = picture_.format;
  if (picture_.format == LEAT_FORMAT_i420)  // as JPEG means it
    terms->key.color_range = LEAT_COLOR_RANGE_full, terms->key.color_matrix = LEAT_COLOR_MATRIX_bt601;
  terms->key.width = picture_.shown_width();
  terms->key.height = picture_.shown_height();
  ask_for_stream(std::move(*terms), {});
}

void PictureJob::fill() {
  if (!take_slot()) return;
  picture_.write(frame_->raw());
  picture_ = {};
  submit();
}

void PictureJob::complete(std::uint32_t, Answer answer) {
  const leat_result* const result = answer.result();
  Json found = Json::array();
  const std::uint32_t count = result != nullptr && result->kind == LEAT_RESULT_DETECTIONS
                                  ? std::min<std::uint32_t>(result->detection_count, LEAT_MAX_DETECTIONS)
                                  : 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const leat_detection& d = result->detections[i];
    if (static_cast<double>(d.score) < min_confidence_) continue;
    const char* const name = leat_class_name(link_->raw(), 0, d.class_id);
    const auto pixel = [](float at) { return static_cast<std::int64_t>(std::clamp(at, 0.0F, 65535.0F)); };
    found.push_back({{"label", name != nullptr ? std::string(name) : std::to_string(d.class_id)},
                     {"confidence", d.score},
                     {"x_min", pixel(d.x0)},
                     {"y_min", pixel(d.y0)},
                     {"x_max", pixel(d.x1)},
                     {"y_max", pixel(d.y1)}});
  }
  Reply out;
  out.body = Json{{"success", true}, {"predictions", found}, {"duration", 0}}.dump();
  add_fields(out, serving_.node.options().name, "none", spent_of(answer.raw()));
  done(std::move(out));
}

}  // namespace leat::gateway
