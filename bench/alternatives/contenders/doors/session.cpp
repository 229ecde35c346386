// leat.onnxruntime before leatd: a Python program a camera, as one that used ONNX Runtime's sessions before
// (session_camera.py). leatd has the two models for whoever sends tensors.
#include <unistd.h>

#include <cstdio>

#include "bench/alternatives/contenders/leatd_run.h"
#include "bench/serving/leatd_child.h"
#include "tools/base/json/json.h"
#include "tools/base/text/fd.h"

namespace leat::bench::alternatives {

namespace {

std::string tensors_application(std::int64_t deadline_ns) {
  std::string text;
  for (const std::string name : {"detect", "classify"})
    text += "[[application]]\nname = \"" + name +
            "\"\nslo_ms = " + std::to_string(static_cast<double>(deadline_ns) / 1e6) +
            "\n  [[application.module]]\n  name = \"" + name + "\"\n  model = \"" LEAT_MODELS "/" + name +
            ".onnx\"\n  preprocess = \"tensors\"\n  postprocess = \"tensors\"\n  batch = " +
            (name == "detect" ? "4" : "16") + "\n";
  return text;
}

struct Closed {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

class Program {
 public:
  Status start(const std::string& socket, const Run& run, std::uint32_t camera, const RawPart& part) {
    auto in = subprocess::make_pipe(), out = subprocess::make_pipe();
    if (!in.ok()) return Error{in.error()};
    if (!out.ok()) return Error{out.error()};
    const Json description = {{"socket", socket},
                              {"deadline_ns", run.deadline_ns},
                              {"detect", LEAT_MODELS "/detect.onnx"},
                              {"classify", LEAT_MODELS "/classify.onnx"},
                              {"width", kWidth},
                              {"height", kHeight},
                              {"first", part.first},
                              {"count", part.count}};
    auto process = subprocess::Process::start({.words = {LEAT_BENCH_PYTHON, LEAT_BENCH_SESSION, description.dump()},
                                               .environment = {{"PYTHONPATH", LEAT_BENCH_PACKAGE},
                                                               {"PYTHONDONTWRITEBYTECODE", "1"},
                                                               {"LEAT_LIBRARY", LEAT_BENCH_LIBRARY},
                                                               {"OMP_NUM_THREADS", "1"},
                                                               {"OPENBLAS_NUM_THREADS", "1"}},
                                               .fds = {{in->read.get(), 0}, {out->write.get(), 1}, {part.file, 3}}});
    if (!process.ok()) return Error{process.error()};
    process_ = std::move(*process);
    in_ = std::move(in->write);
    out_.reset(::fdopen(out->read.release(), "r"));
    camera_ = camera;
    return Done{};
  }

  bool says(const std::string& word) { return next() == word; }

  Status begin(const Timetable& times) {
    const Json said = {
        {"first_ns", times.due_ns(camera_, 0)}, {"period_ns", times.period_ns}, {"pictures", times.pictures}};
    const std::string line = said.dump() + "\n";
    const auto bytes = static_cast<ssize_t>(line.size());
    return ::write(in_.get(), line.data(), line.size()) == bytes ? Status(Done{}) : Error{"a camera's program is gone"};
  }

  Status read_answers(Record& record) {
    for (std::string line = next(); line != "end"; line = next()) {
      unsigned long long picture = 0;
      long long answered_ns = 0;
      if (std::sscanf(line.c_str(), "%llu %lld", &picture, &answered_ns) != 2)
        return Error{"a camera's program ended early"};
      if (answered_ns == 0)
        record.pass(camera_, picture);
      else
        record.answered(camera_, picture, answered_ns);
    }
    return Done{};
  }

 private:
  std::string next() {
    char line[256];
    if (std::fgets(line, sizeof line, out_.get()) == nullptr) return {};
    std::string text = line;
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  subprocess::Process process_;
  Fd in_;
  std::unique_ptr<std::FILE, Closed> out_;
  std::uint32_t camera_ = 0;
};

Status film_in_python(const std::string& socket, const Run& run) {
  std::vector<Program> programs(run.cameras);
  for (std::uint32_t c = 0; c < run.cameras; ++c) {
    const auto part = run.pictures->raw(c);
    if (!part) return Error{"it cannot decode video; give --source raw"};
    if (const Status started = programs[c].start(socket, run, c, *part); !started) return started;
  }
  for (Program& program : programs)
    if (!program.says("ready")) return Error{"a camera's program did not start"};
  run.record->say_ready();
  const Timetable times = run.record->wait_to_begin();
  for (Program& program : programs)
    if (const Status began = program.begin(times); !began) return began;
  for (Program& program : programs)
    if (const Status read = program.read_answers(*run.record); !read) return read;
  run.record->done_and_wait();
  return Done{};
}

}  // namespace

Result<std::unique_ptr<Running>> start_leat_session(const Run& run) {
  return start_with_leatd(
      run, [&](const std::string& socket, std::uint32_t) { return film_in_python(socket, run); },
      tensors_application(run.deadline_ns));
}

}  // namespace leat::bench::alternatives
