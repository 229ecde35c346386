#include <stdlib.h>

#include <filesystem>

#include "bench/alternatives/pictures.h"
#include "bench/serving/street_videos.h"
#include "tools/leat/feed/source/picture_source.h"

namespace leat::bench::alternatives {

namespace {

// A reader that is more pictures behind gives up those before the next key picture.
constexpr std::uint64_t kFarBehind = 3;

class CodedFilm final : public Film {
 public:
  CodedFilm(std::unique_ptr<tools::PictureSource> source, std::uint64_t pictures)
      : source_(std::move(source)), pictures_(pictures) {}

  Got go_to(std::uint64_t picture) override {
    if (picture > next_ + kFarBehind && !jump(picture)) return Got::failed;
    if (picture < next_) return Got::passed;
    do {
      if (!decode()) return Got::failed;
    } while (next_ <= picture);
    return next_ == picture + 1 ? Got::ready : Got::passed;
  }
  bool write(const leat_frame& into) override {
    const auto written = source_->write(into);
    return written.ok() && *written;
  }

 private:
  // Makes picture number next_ ready, and counts it.
  bool decode() {
    auto time = source_->next();
    if (time.ok() && !time->has_value()) {
      if (!rewind()) return false;
      time = source_->next();
    }
    if (!time.ok() || !time->has_value()) return false;
    next_ = first_ + source_->index() + 1;
    return true;
  }
  // The video is over: its first picture is the next.
  bool rewind() {
    first_ += pictures_;
    next_ = first_;
    return source_->rewind().ok();
  }
  // To the first key picture not before `picture`; at most to the video's end.
  bool jump(std::uint64_t picture) {
    while (picture >= first_ + pictures_)
      if (!rewind()) return false;
    if (picture <= next_ + kFarBehind) return true;
    if (next_ == first_ && !decode()) return false;  // times are counted from the first
    const auto passed = source_->jump(static_cast<std::int64_t>(picture - first_) * 1'000'000'000 / kRate);
    if (!passed.ok()) return false;
    next_ += passed->pictures;
    return next_ < first_ + pictures_ || rewind();
  }

  std::unique_ptr<tools::PictureSource> source_;
  std::uint64_t pictures_;              // of the video
  std::uint64_t first_ = 0, next_ = 0;  // the video's first picture, and the one to be decoded next
};

class CodedPictures final : public Pictures {
 public:
  explicit CodedPictures(std::string folder, std::uint64_t each) : folder_(std::move(folder)), each_(each) {}
  ~CodedPictures() override {
    std::error_code none;
    std::filesystem::remove_all(folder_, none);
  }
  CodedPictures(const CodedPictures&) = delete;
  CodedPictures& operator=(const CodedPictures&) = delete;

  Status draw() {
    auto videos = street_videos("", folder_, each_);
    if (!videos.ok()) return Error{videos.error()};
    videos_ = std::move(*videos);
    return Done{};
  }
  [[nodiscard]] leat_format format() const override { return LEAT_FORMAT_i420; }
  [[nodiscard]] std::vector<std::string> videos() const override { return videos_; }
  [[nodiscard]] Result<std::unique_ptr<Film>> open(std::uint32_t camera) const override {
    auto source = tools::open_source(videos_[camera % videos_.size()], {});
    if (!source.ok()) return Error{source.error()};
    return std::unique_ptr<Film>(std::make_unique<CodedFilm>(std::move(*source), each_));
  }

 private:
  std::string folder_;
  std::uint64_t each_;
  std::vector<std::string> videos_;
};

}  // namespace

Result<std::unique_ptr<Pictures>> draw_coded(std::uint64_t pictures) {
  char folder[] = "/tmp/leat-alternatives-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return Error{"no folder can be made in /tmp"};
  auto out = std::make_unique<CodedPictures>(folder, pictures);
  if (const Status drawn = out->draw(); !drawn) return Error{drawn.error()};
  return std::unique_ptr<Pictures>(std::move(out));
}

}  // namespace leat::bench::alternatives
