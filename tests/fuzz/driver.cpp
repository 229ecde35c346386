// Runs a harness without libFuzzer: its seeds, then mutations of them for some seconds, with any compiler. No coverage
// guides it; that is libFuzzer's part, by hand (docs/internals/fuzzing.md). An input that ends the process is left in a
// file.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

#include "tests/fuzz/harness.h"
#include "tools/base/cli/command.h"
#include "tools/base/cli/json_output.h"
#include "tools/base/cli/progress.h"
#include "tools/base/text/formatted.h"

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace leat::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongest = 4096;

constexpr cli::Option kOptions[] = {
    cli::real_option("seconds", "1", 0, 1e7, "how long", "S"),
    {.name = "seed", .type = cli::Type::integer, .value = "N", .min = 0, .help = "repeats a run; random by default"},
    {.name = "write-seeds",
     .type = cli::Type::path,
     .value = "DIR",
     .help = "write the seeds there, for libFuzzer, and end"},
    cli::json_option("print the figures as one JSON object")};
constexpr cli::Positional kPositionals[] = {
    {.name = "INPUT", .help = "files to run instead of mutations, as a crash left them", .min = 0, .max = 1'000'000}};
constexpr cli::Command kCommand = {.name = "fuzz",
                                   .summary = "runs one fuzz harness on mutations of its seeds",
                                   .options = kOptions,
                                   .positionals = kPositionals};

std::array<char, kLongest> g_input;  // what runs now, for the last words
std::size_t g_size = 0;

void leave_input() {
  const int fd = open("fuzz-crash.input", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return;
  (void)!write(fd, g_input.data(), g_size);
  (void)close(fd);
  constexpr char kSaid[] = "fuzz: the input is in fuzz-crash.input; give it as INPUT\n";
  (void)!write(2, kSaid, sizeof(kSaid) - 1);
}

void on_signal(int number) {
  leave_input();
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

void execute(std::string_view input) {
  g_size = std::min(input.size(), kLongest);
  std::copy_n(input.begin(), g_size, g_input.begin());
  (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(g_input.data()), g_size);
}

// Words and numbers of the seeds: what a text format is made of.
std::vector<std::string> tokens_of(const std::vector<std::string>& inputs) {
  std::vector<std::string> out{"0", "-1", "1e308", "18446744073709551615", "\"\"", "[]", "{}", "null", "true", "nan"};
  for (const auto& input : inputs) {
    std::string word;
    for (const char c : input) {
      const auto u = static_cast<unsigned char>(c);
      if (std::isalnum(u) != 0 || c == '_') {
        word += c;
      } else if (!word.empty()) {
        out.push_back(std::exchange(word, {}));
      }
    }
  }
  return out;
}

class Mutator {
 public:
  Mutator(std::vector<std::string> inputs, std::uint64_t seed)
      : inputs_(std::move(inputs)), tokens_(tokens_of(inputs_)), random_(seed) {}

  const std::string& next() {
    if (random_() % 8 != 0 || made_.empty()) made_ = inputs_[random_() % inputs_.size()];
    for (auto changes = 1 + random_() % 6; changes > 0; --changes) change();
    if (made_.size() > kLongest) made_.resize(kLongest);
    return made_;
  }

 private:
  std::size_t somewhere() { return made_.empty() ? 0 : random_() % made_.size(); }
  void change() {
    const std::size_t at = somewhere();
    switch (random_() % 8) {
      case 0:
        if (!made_.empty()) made_[at] = static_cast<char>(made_[at] ^ (1 << random_() % 8));
        return;
      case 1:
        if (!made_.empty()) made_[at] = static_cast<char>(random_());
        return;
      case 2:
        made_.erase(at, 1 + random_() % 16);
        return;
      case 3:
        made_.insert(at, made_.substr(somewhere(), 1 + random_() % 64));
        return;
      case 4: {  // a token for what stands there
        const std::string& token = tokens_[random_() % tokens_.size()];
        made_.replace(at, random_() % (token.size() + 1), token);
        return;
      }
      case 5: {  // a number that is often one too large
        constexpr std::uint64_t kNumbers[] = {0,
                                              1,
                                              2,
                                              63,
                                              64,
                                              127,
                                              255,
                                              256,
                                              0x7fff,
                                              0xffff,
                                              0x7fff'ffff,
                                              0xffff'ffff,
                                              0x7fff'ffff'ffff'ffff,
                                              0xffff'ffff'ffff'ffff};
        const std::uint64_t number = kNumbers[random_() % std::size(kNumbers)];
        const std::size_t width = std::size_t{1} << random_() % 4;
        if (at + width <= made_.size()) std::memcpy(made_.data() + at, &number, width);
        return;
      }
      case 6:
        made_.resize(at);
        return;
      default: {  // the end of another
        const std::string& other = inputs_[random_() % inputs_.size()];
        if (!other.empty()) made_.replace(at, std::string::npos, other, random_() % other.size(), std::string::npos);
      }
    }
  }

  std::vector<std::string> inputs_, tokens_;
  std::mt19937_64 random_;
  std::string made_;
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int write_seeds(const std::string& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const auto& seed : seeds()) std::ofstream(folder + "/seed" + std::to_string(number++), std::ios::binary) << seed;
  return 0;
}

int run(const cli::Arguments& arguments) {
  if (arguments.given("write-seeds")) return write_seeds(arguments.text("write-seeds"));
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) (void)signal(number, on_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(leave_input);
  const std::uint64_t seed =
      arguments.given("seed") ? static_cast<std::uint64_t>(arguments.integer("seed")) : std::random_device{}();
  std::fprintf(stderr, "seed %llu (--seed repeats it)\n", static_cast<unsigned long long>(seed));
  std::uint64_t executions = 0;
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  for (const auto& path : arguments.positionals()) {
    execute(read_file(path));
    ++executions;
  }
  if (arguments.positionals().empty()) {
    const auto good = seeds();
    insist(!good.empty(), "a harness without seeds");
    for (const auto& input : good) execute(input);
    if (after_seeds != nullptr) after_seeds();
    Mutator mutator(good, seed);
    const double limit = arguments.real("seconds");
    cli::Progress progress("fuzz", static_cast<std::uint64_t>(limit * 1000), "ms");
    for (double past = 0; past < limit; past = seconds()) {
      for (int i = 0; i < 16; ++i) execute(mutator.next());
      executions += 16;
      progress.set(static_cast<std::uint64_t>(past * 1000));
    }
  }
  const cli::JsonOutput json(arguments);
  const double took = seconds();
  const auto count = static_cast<unsigned long long>(executions);
  if (!json.alone()) std::printf("%llu executions in %.1f s, nothing found\n", count, took);
  return json.write(formatted("{\"executions\": %llu, \"seconds\": %.3f, \"seed\": %llu}", count, took,
                              static_cast<unsigned long long>(seed)));
}

}  // namespace
}  // namespace leat::fuzz

int main(int argc, char** argv) { return leat::fuzz::run(leat::cli::parse_or_exit(leat::fuzz::kCommand, argc, argv)); }
