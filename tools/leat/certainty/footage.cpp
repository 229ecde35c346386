#include "tools/leat/certainty/footage.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "engine/daemon/configuration/config.h"
#include "leat/client.hpp"
#include "tools/base/json/json.h"
#include "tools/leat/feed/own_picture.h"
#include "tools/leat/feed/small_grey.h"
#include "tools/leat/try/private_daemon.h"

namespace leat::tools {

Result<scene::Footage> read_footage(const std::string& video, const SourceOptions& options, std::uint64_t most,
                                    const Detect& detect) {
  auto source = open_source(video, options);
  if (!source.ok()) return Error{source.error()};
  const PictureFormat format = (*source)->format();
  if (raw_layout(format.format, format.width, format.height).planes == 0)
    return Error{"'" + shown_name(video) + "' has no pixels to track; name a video"};
  OwnPicture picture(format);
  SmallGrey grey(format, kTrackedWidth);
  scene::Footage out{.video = shown_name(video), .width = grey.view().width, .height = grey.view().height};
  if (format.rate > 0) out.fps = format.rate;
  const float s = 1 / static_cast<float>(grey.scale());
  while (out.detected.size() < most) {
    auto time = (*source)->next();
    if (!time.ok()) return Error{time.error()};
    if (!time->has_value()) break;
    const PictureFormat& now = (*source)->format();
    if (!now.same_slots(format))
      return Error{"'" + shown_name(video) + "' changes its pictures from " + std::to_string(format.width) + "x" +
                   std::to_string(format.height) + " to " + std::to_string(now.width) + "x" +
                   std::to_string(now.height) + "; cut it there, and name its parts one after the other"};
    picture.frame.color_range = now.color().range;
    picture.frame.color_matrix = now.color().matrix;
    const auto written = (*source)->write(picture.frame);
    if (!written.ok()) return Error{written.error()};
    if (!*written) break;
    auto boxes = detect(picture.frame);
    if (!boxes.ok()) return Error{boxes.error()};
    for (TrackedBox& b : *boxes) b.x0 *= s, b.y0 *= s, b.x1 *= s, b.y1 *= s;
    grey.take(picture.frame);
    const GreyFrame small = grey.view();
    out.pixels.insert(out.pixels.end(), small.pixels, small.pixels + small.stride * small.height);
    out.detected.push_back(std::move(*boxes));
  }
  out.truth = out.detected;
  return out;
}

Result<Detect> detections_of(const std::string& answers) {
  std::ifstream file(answers);
  if (!file)
    return Error{"the answers '" + answers + "' cannot be opened; 'leat feed --answers FILE VIDEO' writes them"};
  std::vector<std::optional<std::vector<TrackedBox>>> pictures;
  std::optional<std::string> stream;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const auto unfit = [&](const std::string& what) {
      return Error{answers + ":" + std::to_string(number) + ": " + what};
    };
    try {
      const Json json = Json::parse(line);
      if (json.contains("lost"))
        return unfit("lines are missing here; let 'leat feed' write the file anew, on a disk that keeps up");
      const auto of = json.at("stream").get<std::string>();
      if (stream && *stream != of)
        return unfit("a second stream, '" + of + "'; feed one video at a time, and give a file for each");
      stream = of;
      const auto picture = json.at("picture").get<std::uint64_t>();
      if (picture >= 10'000'000) return unfit("there is no picture " + std::to_string(picture));
      if (!json.contains("detections")) continue;  // it was not answered
      pictures.resize(std::max<std::size_t>(pictures.size(), picture + 1));
      std::vector<TrackedBox>& boxes = pictures[picture].emplace();
      for (const Json& found : json["detections"]) {
        const auto box = found.at("box").get<std::array<float, 4>>();
        boxes.push_back({box[0], box[1], box[2], box[3]});
      }
    } catch (const std::exception& problem) {
      return unfit(std::string("not a line of 'leat feed --answers': ") + problem.what());
    }
  }
  return Detect([answers, pictures = std::move(pictures),
                 next = std::size_t{0}](const leat_frame&) mutable -> Result<std::vector<TrackedBox>> {
    const std::size_t at = next++;
    if (at >= pictures.size() || !pictures[at])
      return Error{answers + ": picture " + std::to_string(at) +
                   " has no answer; 'leat feed --answers FILE VIDEO', without --realtime, has every picture answered"};
    return std::move(*pictures[at]);
  });
}

struct ModelDetector::State {
  std::string application;
  std::unique_ptr<PrivateDaemon> daemon;
  std::optional<Client> client;

  [[nodiscard]] std::string why() const {
    const std::string said = daemon->last_complaint();
    return said.empty() ? leat_last_error() : said;
  }
};

ModelDetector::ModelDetector() : state_(std::make_unique<State>()) {}
ModelDetector::~ModelDetector() = default;

Result<std::unique_ptr<ModelDetector>> ModelDetector::start(ModelWords model, std::string application) {
  std::unique_ptr<ModelDetector> out(new ModelDetector);
  const bool configuration = std::filesystem::path(model.model).extension() == ".toml";
  if (configuration) {
    const auto read = daemon::read_config(model.model);
    if (!read.ok()) return Error{read.error()};
    out->state_->application =
        application.empty() ? read->applications.front().application.name : std::move(application);
  } else {
    const auto question = ask_model(model);
    if (!question.ok()) return Error{question.error()};
    if (!question->empty()) return Error{*question + "; 'leat try' shows what its outputs could mean"};
    out->state_->application = name_of_model(model.model);
  }
  const auto text = configuration ? Result<std::string>(model.model) : text_behind_descriptor(config_of_model(model));
  if (!text.ok()) return Error{text.error()};
  auto started = PrivateDaemon::start(*text, configuration ? std::string() : model.model);
  if (!started.ok()) return Error{started.error()};
  out->state_->daemon = std::move(*started);
  auto client = Client::connect(out->state_->daemon->socket(), "leat certainty");
  if (!client.ok()) return Error{client.error()};
  out->state_->client.emplace(std::move(*client));
  return out;
}

Detect ModelDetector::detect() {
  // One stream for each video, opened with its first picture.
  auto stream = std::make_shared<std::optional<Stream>>();
  return [s = state_.get(), stream](const leat_frame& picture) -> Result<std::vector<TrackedBox>> {
    if (!*stream) {
      StreamOptions options;
      options.application = s->application.c_str();
      options.format = static_cast<leat_format>(picture.format);
      options.width = picture.width;
      options.height = picture.height;
      options.depth = 1;
      options.slots = 1;
      options.overload = LEAT_OVERLOAD_never_drop;
      auto opened = s->client->open_stream(options);
      if (!opened.ok()) return Error{opened.error()};
      stream->emplace(std::move(*opened));
    }
    auto frame = (*stream)->acquire();
    if (!frame) return Error{leat_last_error()};
    copy_picture(picture, frame->raw());
    leat_submit_options submit{};
    submit.color_range = picture.color_range;
    submit.color_matrix = picture.color_matrix;
    if (frame->submit(submit) != LEAT_ERROR_ok) return Error{leat_last_error()};
    const auto answer = s->client->next_answer(std::chrono::hours(24));
    if (!answer) return Error{s->why()};
    const leat_result* const result = answer->raw().result;
    if (result == nullptr) return Error{"a picture was not answered: " + s->why()};
    if (result->kind != LEAT_RESULT_DETECTIONS)
      return Error{"the model's answers are no detections; boxes alone can be tracked"};
    std::vector<TrackedBox> boxes;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(result->detection_count, LEAT_MAX_DETECTIONS); ++i) {
      const leat_detection& d = result->detections[i];
      boxes.push_back({d.x0, d.y0, d.x1, d.y1, d.class_id});
    }
    return boxes;
  };
}

}  // namespace leat::tools
