#include "bench/gpu/ask.h"

#include <algorithm>
#include <sstream>

#include "tools/base/subprocess/run.h"

namespace leat::probe {

using std::chrono::seconds;

Answer Asker::blank(const Question& question) const {
  return {.group = question.id.substr(0, question.id.find('.')),
          .id = question.id,
          .question = question.question,
          .how = question.how,
          .conditions = question.conditions,
          .verdict = Verdict::failed,
          .number = std::nullopt,
          .unit = {},
          .note = {},
          .device = device_};
}

void Asker::send(const Answer& answer) {
  if (auto sent = channel_.send("answer", to_json(answer)); !sent) throw std::runtime_error(sent.error());
}

namespace {

// Runs what fills the answer; a question that throws is answered by its exception.
template <class Fill>
Answer filled(Answer answer, Fill&& fill) {
  try {
    fill(answer);
  } catch (const NotApplicable& reason) {
    answer.verdict = Verdict::not_applicable;
    answer.note = reason.what();
  } catch (const std::exception& problem) {
    answer.verdict = Verdict::failed;
    answer.note = problem.what();
  }
  return answer;
}

}  // namespace

void Asker::yes_no(const Question& question, const std::function<YesNo()>& find) {
  send(filled(blank(question), [&](Answer& answer) {
    YesNo found = find();
    answer.verdict = found.yes ? Verdict::yes : Verdict::no;
    answer.note = std::move(found.note);
  }));
}

void Asker::number(const Question& question, const std::string& unit, const std::function<Samples()>& measure) {
  send(filled(blank(question), [&](Answer& answer) {
    Samples samples = measure();
    answer.number = summarise(std::move(samples.values));
    if (!answer.number) throw ProbeFailed("no sample was taken");
    answer.verdict = Verdict::number;
    answer.unit = unit;
    answer.note = std::move(samples.note);
  }));
}

void Asker::not_applicable(const Question& question, const std::string& note) {
  send(filled(blank(question), [&](Answer&) { throw NotApplicable(note); }));
}

void Asker::failed(const Question& question, const std::string& note) {
  send(filled(blank(question), [&](Answer&) { throw ProbeFailed(note); }));
}

Result<Environment> Asker::start_mps(const std::vector<std::string>& arguments) {
  std::string body;
  for (const std::string& argument : arguments) body += argument + '\n';
  if (auto sent = channel_.send("start_mps", body); !sent) return Error{sent.error()};
  auto answer = channel_.expect("mps", after(seconds(60)));
  if (!answer) return Error{answer.error()};
  std::istringstream lines(answer->body);
  std::getline(lines, mps_program_);
  Environment environment;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    environment.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return environment;
}

Status Asker::stop_mps() {
  if (auto sent = channel_.send("stop_mps"); !sent) return sent;
  auto answer = channel_.expect("mps", after(seconds(60)));
  if (!answer) return Error{answer.error()};
  return Done{};
}

Result<std::string> Asker::mps_command(const Environment& environment, const std::string& command) {
  return subprocess::output_of(
      {.words = {mps_program_}, .environment = environment},
      {.limit = seconds(10), .errors = subprocess::Errors::with_output, .input = command + "\n"});
}

}  // namespace leat::probe
