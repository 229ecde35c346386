// leat try: what a model, or an application, makes of some pictures, without a daemon to set up.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "leat/client.hpp"
#include "tools/base/cli/json_output.h"
#include "tools/base/documents/text_file.h"
#include "tools/base/json/json.h"
#include "tools/leat/answers/answer_json.h"
#include "tools/leat/commands.h"
#include "tools/leat/feed/source/picture_source.h"
#include "tools/leat/feed/source/source_options.h"
#include "tools/leat/feed/video/shot.h"
#include "tools/leat/feed/video/video_file.h"
#include "tools/leat/top/sample.h"
#include "tools/leat/try/answer_text.h"
#include "tools/leat/try/batch_times.h"
#include "tools/leat/try/known_list.h"
#include "tools/leat/try/model_config.h"
#include "tools/leat/try/picture_file.h"
#include "tools/leat/try/private_daemon.h"
#include "tools/leat/try/readings.h"

namespace leat::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr cli::Option kOptions[] = {
    LEAT_MODEL_OPTIONS,
    {.name = "application",
     .type = cli::Type::text,
     .value = "NAME",
     .help = "of a configuration with several; default: the first"},
    {.name = "output",
     .letter = 'o',
     .type = cli::Type::path,
     .value = "FILE",
     .help = "draw what was found: a .png or .jpg (of the first picture), or a video (.mp4, .mkv)"},
    cli::integer_option("pictures", "0", 0, 1e9, "at most so many of each source; 0: all"),
    kAsStoredOption,
    {.name = "list", .help = "print the known models, which --as chooses from, and try nothing"},
    cli::json_option("print one JSON object in place of the table"),
};
constexpr cli::Positional kPositionals[] = {
    {.name = "MODEL-and-SOURCES",
     .help = "an ONNX file or a configuration of leatd (.toml), then pictures, videos, devices or URLs",
     .min = 0,
     .max = 10001}};
constexpr cli::Example kExamples[] = {
    {.line = "leat try yolo11n.onnx street.jpg -o found.png", .text = "what the model finds in a picture, and where"},
    {.line = "leat try leatd.toml camera.mp4 --pictures 100 --json", .text = "an application's answers as JSON"}};
constexpr cli::Command kCommand = {
    .name = "leat try",
    .summary = "shows what a model or an application makes of some pictures",
    .description =
        "Starts a leatd of its own, heard by nobody else and ended with this command, on one partition of every core, "
        "without deadlines and one picture at a time. Each picture's answer is printed with the milliseconds that its "
        "parts took: decoding, each module, and the whole way from the frame to its answer.\n\n"
        "What a model does not say of itself can be given in the words of docs/guide/configuration.md, or by --as, the "
        "name "
        "of "
        "a known model. What cannot be known is assumed, and said: as the likely words, or the outputs are shown as "
        "they "
        "are.",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .see_also = "leat-serve(1), leat-check(1), leatd(8)",
    .exit_status = "0 when every picture was answered with a result, 1 when one was not, 2 on bad input.",
};

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// What is done with each answer, besides keeping it for the JSON.
class Output {
 public:
  explicit Output(std::string path) : path_(std::move(path)) {}

  Status draw(const leat_answer& answer, const PictureFormat& format) {
    if (path_.empty() || (is_picture_path(path_) && drawn_ > 0)) return Done{};
    leat_frame frame;
    if (leat_answer_frame(&answer, &frame) != LEAT_ERROR_ok) return Done{};
    const draw::Picture drawing = draw::draw_answer(draw::picture_of(frame), view_of(answer));
    if (is_picture_path(path_)) {
      ++drawn_;
      return write_picture(path_, drawing);
    }
    if (!video_) {
      video_ = std::make_unique<VideoFile>();
      if (const Status opened = video_->open(path_, drawing.size, format.rate); !opened.ok()) return opened;
    }
    return video_->write(drawn_++, drawing);
  }
  Status finish() { return video_ ? video_->finish() : Status(Done{}); }

 private:
  std::string path_;
  std::unique_ptr<VideoFile> video_;
  std::uint64_t drawn_ = 0;
};

class Trial {
 public:
  Trial(PrivateDaemon& daemon, Client client, BatchTimes times, std::string application, SourceOptions sources,
        Output output)
      : daemon_(daemon),
        client_(std::move(client)),
        times_(std::move(times)),
        application_(std::move(application)),
        sources_(std::move(sources)),
        output_(std::move(output)) {}

  // Every picture of a source, at most `most` where that is not 0. Each is given to `show` as JSON.
  template <class Show>
  Status run(const std::string& name, std::uint64_t max, Show&& show) {
    auto source = open_source(name, sources_);
    if (!source.ok()) return Error{source.error()};
    PictureFormat format = (*source)->format();
    auto stream = open_stream(format);
    if (!stream.ok()) return Error{stream.error()};
    for (std::uint64_t n = 0; max == 0 || n < max; ++n) {
      const auto begun = Clock::now();
      auto time = (*source)->next();
      if (!time.ok()) return Error{time.error()};
      if (!time->has_value()) break;
      const bool goes_on = (*source)->format().same_slots(format);
      format = (*source)->format();
      if (!goes_on) {
        stream = open_stream(format);
        if (!stream.ok()) return Error{stream.error()};
      }
      auto frame = stream->acquire();
      if (!frame) return Error{leat_last_error()};
      const auto written = (*source)->write(frame->raw());
      if (!written.ok()) return Error{written.error()};
      if (!*written) break;
      const auto decoded = Clock::now();
      leat_submit_options submit{};
      submit.flags = (*source)->damaged() ? LEAT_SUBMIT_DAMAGED : 0;
      submit.color_range = format.color().range;
      submit.color_matrix = format.color().matrix;
      if (frame->submit(submit) != LEAT_ERROR_ok) return Error{leat_last_error()};
      const auto answer = client_.next_answer(std::chrono::hours(24));
      const auto answered = Clock::now();
      if (!answer) return Error{ended()};
      Json json = {{"source", name},
                   {"picture", n},
                   {"size", std::vector<std::uint32_t>{format.width, format.height}},
                   {"format", name_of(format.format)},
                   {"color", text_of(format.coding, format.height)}};
      json.update(answer_json(answer->raw()));
      json["ms"]["decode"] = ms_between(begun, decoded);
      for (const auto& [module, ms] : times_.since_last()) json["ms"][module] = ms;
      json["ms"]["answer"] = ms_between(decoded, answered);
      for (const auto& [module, count] : times_.squeezed_since_last()) json["squeezed"][module] = count;
      if (answer->result() == nullptr) {
        all_answered_ = false;
        if (const std::string why = daemon_.last_complaint(); !why.empty()) json["log"] = why;
      }
      if (const Status drawn = output_.draw(answer->raw(), format); !drawn.ok()) return drawn;
      show(json);
    }
    return Done{};
  }
  Status finish() { return output_.finish(); }
  bool all_answered() const { return all_answered_; }

 private:
  Result<Stream> open_stream(const PictureFormat& format) {
    StreamOptions options;
    options.application = application_.c_str();
    options.format = format.format;
    options.width = format.width;
    options.height = format.height;
    options.depth = 1;
    options.slots = 1;
    options.overload = LEAT_OVERLOAD_never_drop;
    return client_.open_stream(options);
  }
  std::string ended() const {
    const std::string why = daemon_.last_complaint();
    return why.empty() ? leat_last_error() : why;
  }

  PrivateDaemon& daemon_;
  Client client_;
  BatchTimes times_;
  std::string application_;
  SourceOptions sources_;
  Output output_;
  bool all_answered_ = true;
};

// What a source's pictures are, where it is not what was said of the one before.
class FormatLines {
 public:
  std::string line(const Json& json) {
    const std::string line = json["source"].get<std::string>() + ": " + json["size"][0].dump() + "x" +
                             json["size"][1].dump() + ", taken as " + json["format"].get<std::string>() + ": " +
                             json["color"].get<std::string>() + "\n";
    return std::exchange(said_, line) == line ? "" : line;
  }

 private:
  std::string said_;
};

void print(const Json& json) {
  std::printf("%s, picture %llu: %.1f ms (", json["source"].get<std::string>().c_str(),
              json["picture"].get<unsigned long long>(), json["ms"]["answer"].get<double>());
  const char* comma = "";
  for (const auto& [part, ms] : json["ms"].items()) {
    if (part == "answer") continue;
    std::printf("%s%s %.1f", comma, part.c_str(), ms.get<double>());
    comma = ", ";
  }
  std::printf(")\n%s", answer_table(json).c_str());
  if (json.contains("squeezed"))
    for (const auto& [module, count] : json["squeezed"].items())
      std::printf(
          "  %s: %llu too wide for its model, and squeezed: write wide=split (text), wide=start or more widths= in its "
          "preprocess\n",
          module.c_str(), count.get<unsigned long long>());
  if (json.contains("not_finite"))
    std::printf("  some of the model's numbers are NaN or infinite: check the range of its input and its precision\n");
  if (json.contains("log")) std::printf("  %s\n", json["log"].get<std::string>().c_str());
  std::fflush(stdout);
}

bool is_config(const std::string& path) { return std::filesystem::path(path).extension() == ".toml"; }

int list(const cli::Arguments& args) {
  const auto known = known_list();
  if (!known.ok()) return cli::fail(kCommand.name, known.error());
  const cli::JsonOutput output(args);
  if (!output.alone()) std::fputs(known_table(*known).c_str(), stdout);
  return output.write(known->dump(2));
}

struct Started {
  std::unique_ptr<PrivateDaemon> daemon;
  std::string assumed;               // what was assumed of the model, and why; empty: nothing
  std::vector<ModelWords> readings;  // what else its outputs could mean
  std::string picture;               // how frames become its input: words of preprocess; empty: a configuration says
};

// The way to resize that words of preprocess stand for.
std::string resize_of(const std::string& words) {
  constexpr std::string_view kKey = "resize=";
  const std::size_t at = words.find(kKey);
  if (at == std::string::npos) return "linear";
  const std::size_t from = at + kKey.size();
  return words.substr(from, words.find(' ', from) - from);
}

Result<std::unique_ptr<PrivateDaemon>> start_with(const ModelWords& words) {
  const Result<std::string> text = text_behind_descriptor(config_of_model(words));
  if (!text.ok()) return Error{text.error()};
  return PrivateDaemon::start(*text, words.model);
}

// The model with its own words; where they are not certain with the likely ones, else with its outputs as they are.
Result<Started> start_model(ModelWords words) {
  const bool given = !words.postprocess.empty();
  const auto question = ask_model(words);
  if (!question.ok()) return Error{question.error()};
  const auto said = [&](const ModelWords& w, const char* what) {
    return std::string(what) + ": --preprocess \"" + w.preprocess + "\" --postprocess \"" + w.postprocess + "\" (" +
           *question + ")";
  };
  if (question->empty() || !words.postprocess.empty()) {
    auto daemon = start_with(words);
    if (daemon.ok())
      return Started{
          std::move(*daemon), question->empty() ? "" : said(words, "assumed what is likely"), {}, words.picture};
    if (question->empty() || given) return Error{daemon.error()};
  }
  // What the outputs mean is not known: they are shown, of a picture that the model's input takes.
  words.postprocess = "tensors", words.labels.clear();
  std::vector<std::string> pictures = {words.preprocess};
  for (const char* const colours : {"stretch rgb norm=unit", "stretch gray norm=unit"})
    for (const char* const size : {"", " size=640x640", " size=224x224"})
      pictures.push_back(colours + std::string(size));
  std::string why;
  for (const std::string& picture : pictures) {
    if (picture.empty()) continue;
    words.preprocess = picture;
    auto daemon = start_with(words);
    if (!daemon.ok()) {
      if (why.empty()) why = daemon.error();
      continue;
    }
    Started out{std::move(*daemon), said(words, "its outputs as they are"), {}, picture};
    for (const std::string& reading : readings_in(*question)) {
      out.readings.push_back(words);
      out.readings.back().postprocess = reading;
    }
    return out;
  }
  return Error{why + " (" + *question + ")"};
}

Result<Started> start_config(const std::string& config) {
  auto daemon = PrivateDaemon::start(config);
  if (!daemon.ok()) return Error{daemon.error()};
  return Started{std::move(*daemon), "", {}, ""};
}

Result<Trial> connect(PrivateDaemon& daemon, const std::string& application, const SourceOptions& sources,
                      const std::string& drawn) {
  auto client = Client::connect(daemon.socket(), "leat try");
  if (!client.ok()) return Error{client.error()};
  auto times = BatchTimes::connect(daemon.socket());
  if (!times.ok()) return Error{times.error()};
  return Trial(daemon, std::move(*client), std::move(*times), application, sources, Output(drawn));
}

// What the first picture of a source would be with these words. Error: they do not fit the model.
Result<Json> read_as(const ModelWords& words, const std::string& application, const SourceOptions& sources,
                     const std::string& source) {
  auto daemon = start_with(words);
  if (!daemon.ok()) return Error{daemon.error()};
  auto trial = connect(**daemon, application, sources, "");
  if (!trial.ok()) return Error{trial.error()};
  Json answer;
  const Status done = trial->run(source, 1, [&](const Json& json) { answer = json; });
  if (!done.ok()) return Error{done.error()};
  return answer;
}

int run(const cli::Arguments& args) {
  if (args.flag("list")) return list(args);
  if (args.positionals().size() < 2)
    return cli::fail(kCommand.name, "name a model or a configuration, and a picture to try it on");
  const std::string& subject = args.positionals()[0];
  std::error_code none;
  if (!std::filesystem::is_regular_file(subject, none))
    return cli::fail(kCommand.name, no_file_at(subject) + "; name an ONNX model or a configuration");
  if (const std::string out = args.text("output"); !out.empty() && !is_picture_path(out) && !VideoFile::takes(out))
    return cli::fail(kCommand.name,
                     "'" + out + "' has the ending of no picture and no video; use .png, .jpg, .mp4 or .mkv");
  std::string application = args.text("application");
  if (is_config(subject)) {
    for (const char* word : {"preprocess", "postprocess", "labels", "as"})
      if (args.given(word))
        return cli::fail(kCommand.name, "--" + std::string(word) + " is for a model; a configuration says its own");
    auto read = daemon::read_config(subject);
    if (!read.ok()) return cli::fail(kCommand.name, read.error());
    if (application.empty()) application = read->applications.front().application.name;
  } else {
    application = name_of_model(subject);
  }
  auto started = is_config(subject) ? start_config(subject) : start_model(model_words(args, subject));
  if (!started.ok()) return cli::fail(kCommand.name, started.error());
  SourceOptions sources;
  sources.as_stored = args.flag("as-stored");
  const std::unique_ptr<PrivateDaemon>* const daemon = &started->daemon;
  if (!started->assumed.empty()) std::fprintf(stderr, "leat try: %s\n", started->assumed.c_str());
  auto trial = connect(**daemon, application, sources, args.text("output"));
  if (!trial.ok()) return cli::fail(kCommand.name, trial.error());
  Json all = {{"subject", subject}, {"application", application}, {"pictures", Json::array()}};
  if (!started->assumed.empty()) all["assumed"] = started->assumed;
  const cli::JsonOutput output(args);
  if (!started->picture.empty()) {
    const std::string way = resize_of(started->picture);
    all["preprocess"] = started->picture, all["resize"] = way;
    if (!output.alone())
      std::fprintf(stderr, "leat try: preprocess \"%s\", resized with resize=%s\n", started->picture.c_str(),
                   way.c_str());
  }
  const auto max = static_cast<std::uint64_t>(args.integer("pictures"));
  FormatLines formats;
  for (std::size_t i = 1; i < args.positionals().size(); ++i) {
    const Status done = trial->run(args.positionals()[i], max, [&](const Json& json) {
      all["pictures"].push_back(json);
      if (output.alone()) return;
      std::fputs(formats.line(json).c_str(), stdout);
      print(json);
    });
    if (!done.ok()) return cli::fail(kCommand.name, done.error());
  }
  if (const Status finished = trial->finish(); !finished.ok()) return cli::fail(kCommand.name, finished.error());
  for (const ModelWords& words : started->readings) {
    const auto answer = read_as(words, application, sources, args.positionals()[1]);
    if (!answer.ok()) continue;  // it contradicts the model's shapes
    const std::string line = try_line(subject, args.positionals()[1], words.preprocess, words.postprocess);
    all["readings"].push_back({{"command", line}, {"answer", *answer}});
    if (!output.alone()) std::printf("or as %s\n%s", line.c_str(), answer_table(*answer).c_str());
  }
  if (const int failed = output.write(all.dump(2)); failed != 0) return failed;
  return trial->all_answered() ? 0 : 1;
}

}  // namespace

extern const cli::Subcommand kLeatTry;
const cli::Subcommand kLeatTry = {.command = &kCommand, .run = run};

}  // namespace leat::tools
