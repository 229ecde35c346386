// Whatever is wrong before leatd serves: one line that says what and what to do, exit status 2, nothing left behind.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/serving/bad_config/bad_config_cases.h"
#include "tests/serving/daemon_fixture.h"
#include "tests/serving/on_terminal.h"

namespace leat::test {
namespace {

using namespace std::chrono_literals;

const std::string kGood = sound_config();

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  const auto start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? 0 : start + 1) + 1);
}

// What it says behind its own name; log lines before the last one are not it.
std::string verdict(const std::string& line, const std::string& program) {
  EXPECT_EQ(line.rfind(program + ": ", 0), 0U) << line;
  return line.substr(std::min(line.size(), program.size() + 2));
}

// One for each file that is not sound; what is said of sound ones is not among them.
std::vector<std::string> complaints(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.rfind("leat check: ", 0) == 0) lines.push_back(line);
  return lines;
}

// Every case in a folder of its own, `leat check` over all of them at once, leatd on each.
TEST(BadConfig, CheckAndDaemonSayTheSameLineAndWhatIsToBeDone) {
  const std::vector<BadCase> cases = bad_cases(LEAT_MODELS, FAILING_EXECUTOR);
  ASSERT_GE(cases.size(), 60U);
  const ScratchFolder folder;
  std::vector<std::string> check{LEAT_BINARY, "check", "--worker", LEAT_WORKER_BINARY}, files;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string own = folder.path() + "/" + std::to_string(i);
    std::filesystem::create_directory(own);
    for (const auto& [name, text] : cases[i].files) (void)folder.write(std::to_string(i) + "/" + name, text);
    files.push_back(folder.write(std::to_string(i) + "/c.toml", cases[i].config));
    check.push_back(files.back());
  }
  ASSERT_EQ(setenv("LEAT_SOCKET", (folder.path() + "/s.sock").c_str(), 1), 0);
  const Exit checked = run_to_end(check, 100s);
  EXPECT_EQ(checked.status, 2) << checked.err;
  const std::vector<std::string> said = complaints(checked.err);
  ASSERT_EQ(said.size(), cases.size()) << checked.err;  // one line each
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].name);
    const Exit started = run_to_end({LEATD_BINARY, "--worker", LEAT_WORKER_BINARY, files[i]});
    EXPECT_EQ(started.status, 2) << started.err;
    const std::string line = verdict(last_line(started.err), "leatd");
    EXPECT_EQ(verdict(said[i], "leat check"), line);
    EXPECT_EQ(line.rfind(files[i] + ":", 0), 0U) << line;
    for (const auto& word : cases[i].says)
      EXPECT_NE(line.find(word), std::string::npos) << word << " is not in: " << line;
    EXPECT_FALSE(std::filesystem::exists(folder.path() + "/s.sock"));
  }
}

TEST(BadConfig, WhatIsSoundIsSoundForBoth) {
  const ScratchFolder folder;
  ASSERT_EQ(setenv("LEAT_SOCKET", (folder.path() + "/s.sock").c_str(), 1), 0);
  const std::string files[] = {folder.write("a.toml", kGood), folder.write("b.toml", sound_model_config(LEAT_MODELS))};
  const Exit checked = run_to_end({LEAT_BINARY, "check", "--worker", LEAT_WORKER_BINARY, files[0], files[1]});
  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_EQ(complaints(checked.err).size(), 0U) << checked.err;
  for (const auto& file : files) {
    const Exit e = run_to_end({LEATD_BINARY, "--check", "--worker", LEAT_WORKER_BINARY, file});
    EXPECT_EQ(e.status, 0) << e.err;
    EXPECT_EQ(e.err, "");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/s.sock"));
}

TEST(BadConfig, ACheckEndsThoughAModelNeverLoads) {
  const ScratchFolder folder;
  const std::string file = folder.write(
      "c.toml", replaced(sound_model_config(LEAT_MODELS), "model = ",
                         "executor = \"" FAILING_EXECUTOR "\"\n  options = { open = \"hang\" }\n  model = "));
  const Exit e = run_to_end({LEAT_BINARY, "check", "--socket", folder.path() + "/s.sock", "--seconds", "5", "--worker",
                             LEAT_WORKER_BINARY, file});
  EXPECT_EQ(e.status, 2) << e.err;
  const std::string line = verdict(last_line(e.err), "leat check");
  EXPECT_EQ(line.rfind(file + ":12: application.module.model: ", 0), 0U) << line;
  EXPECT_NE(line.find("longer than 5 s"), std::string::npos) << line;
}

// A configuration whose model loads until the worker is ended for it.
std::string hanging(const ScratchFolder& folder, int timeout_ms) {
  return folder.write("c.toml",
                      replaced(sound_model_config(LEAT_MODELS), "model = ",
                               "executor = \"" FAILING_EXECUTOR "\"\n  options = { open = \"hang\" }\n  model = ") +
                          "\n[workers]\nworker_start_timeout_ms = " + std::to_string(timeout_ms) + "\n");
}

TEST(BadConfig, AWorkerThatLoadsForTooLongIsEnded) {
  const ScratchFolder folder;
  const std::string file = hanging(folder, 5000);  // enough for a worker to begin on a busy machine
  const Exit e =
      run_to_end({LEATD_BINARY, "--socket", folder.path() + "/s.sock", "--worker", LEAT_WORKER_BINARY, file});
  EXPECT_EQ(e.status, 2) << e.err;
  const std::string line = verdict(last_line(e.err), "leatd");
  EXPECT_EQ(line.rfind(file + ":12: application.module.model: ", 0), 0U) << line;
  EXPECT_NE(line.find("loading for 5000 ms"), std::string::npos) << line;
}

TEST(SlowStart, TheLogSaysWhatIsWaitedFor) {
  const ScratchFolder folder;
  const Exit e = run_to_end(
      {LEATD_BINARY, "--socket", folder.path() + "/s.sock", "--worker", LEAT_WORKER_BINARY, hanging(folder, 8000)});
  EXPECT_TRUE(std::regex_search(e.err, std::regex("\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{3} leatd: info: "
                                                  "starting for \\d+ s, 0 % done: .* loads ")))
      << e.err;
}

TEST(SlowStart, ATerminalShowsABarThatGoesAwayAgain) {
  const ScratchFolder folder;
  const std::string file = hanging(folder, 5000), socket = folder.path() + "/s.sock";
  OnTerminal leatd({LEATD_BINARY, "--socket", socket, "--worker", LEAT_WORKER_BINARY, file});
  EXPECT_EQ(leatd.end(), 2);
  const std::string& shown = leatd.shown();
  const std::size_t bar = shown.rfind("\r\033[Kstarting");
  ASSERT_NE(bar, std::string::npos) << shown;
  EXPECT_NE(shown.find(" loads ", bar), std::string::npos) << shown;
  EXPECT_NE(shown.find("\r\033[Kleatd: " + file, bar), std::string::npos) << "taken away, then the fault: " << shown;
}

// The journal adds the time itself.
TEST(Log, HasNoTimesForTheJournal) {
  const ScratchFolder folder;
  const std::string log = folder.write("log", ""), file = folder.write("c.toml", kGood), socket = folder.path() + "/s";
  struct stat info {};
  ASSERT_EQ(::stat(log.c_str(), &info), 0);
  const std::string stream = std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
  const Exit e = run_to_end({"/bin/sh", "-c",
                             "JOURNAL_STREAM=" + stream + " " LEATD_BINARY " --socket " + socket +
                                 " --worker /no/such/worker " + file + " 2>" + log});
  std::ifstream in(log);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(("\n" + text).find("\nleatd: info: "), std::string::npos) << text << e.err;
  EXPECT_EQ(text.find(" leatd: info"), std::string::npos) << text;
}

TEST(BadConfig, ASecondDaemonIsRefusedAndTheFirstServesOn) {
  Leatd first(kGood);
  const ScratchFolder folder;
  const Exit e = run_to_end(
      {LEATD_BINARY, "--worker", LEAT_WORKER_BINARY, "--socket", first.socket(), folder.write("c.toml", kGood)});
  EXPECT_EQ(e.status, 2) << e.err;
  EXPECT_NE(last_line(e.err).find(first.socket()), std::string::npos) << e.err;
  EXPECT_FALSE(first.status_json().empty());
}

TEST(BadConfig, ADeadDaemonsSocketIsTakenOver) {
  Leatd leatd(kGood);
  leatd.kill();
  EXPECT_TRUE(std::filesystem::exists(leatd.socket()));
  leatd.start();
  EXPECT_FALSE(leatd.status_json().empty());
}

TEST(BadConfig, AnUnwritableSocketIsNamed) {
  const ScratchFolder folder;
  const Exit e = run_to_end({LEATD_BINARY, "--worker", LEAT_WORKER_BINARY, "--socket",
                             folder.path() + "/no/such/folder/s.sock", folder.write("c.toml", kGood)});
  EXPECT_EQ(e.status, 2) << e.err;
  EXPECT_NE(last_line(e.err).find("/no/such/folder"), std::string::npos) << e.err;
}

TEST(BadConfig, NoMemoryForASegmentIsAnAnswer) {
  Leatd leatd(std::string("[limits]\nmemory_mib = 8\n") + kGood);
  auto client = Client::connect(leatd.socket(), "greedy");
  ASSERT_TRUE(client.ok());
  leat_stream_options o;
  leat_stream_options_init(&o);
  o.application = "echo";
  o.format = LEAT_FORMAT_rgb24;
  o.width = 4096;
  o.height = 2160;
  const auto stream = client->open_stream(o);
  ASSERT_FALSE(stream.ok());
  EXPECT_NE(stream.error().find("memory_mib"), std::string::npos) << stream.error();
  EXPECT_FALSE(leatd.status_json().empty());
}

TEST(BadConfig, AMissingWorkerIsNamed) {
  const ScratchFolder folder;
  const Exit e = run_to_end({LEATD_BINARY, "--worker", folder.path() + "/leat-worker", "--socket",
                             folder.path() + "/s.sock", folder.write("c.toml", kGood)});
  EXPECT_EQ(e.status, 2) << e.err;
  EXPECT_NE(last_line(e.err).find("leat-worker"), std::string::npos) << e.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/s.sock"));
}

}  // namespace
}  // namespace leat::test
