// What the documents show can be typed: blocks of TOML and JSON parse, whole configurations are what leatd's reader
// accepts, and command lines name commands and options that there are.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/daemon/configuration/config.h"
#include "planner/io/application_io.h"
#include "tests/rules/source_files.h"
#include "tools/base/documents/toml.h"
#include "tools/base/json/json.h"
#include "tools/base/subprocess/run.h"

namespace {

namespace fs = std::filesystem;
using leat::test::kRoot;

struct Block {
  std::string language;  // behind the fence; "": none, or an indented block
  std::string place;     // FILE:LINE
  std::string text;
};
struct Document {
  std::vector<Block> blocks;
  std::vector<Block> spans;  // `between backticks`
};

std::vector<fs::path> pages() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(kRoot))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

void add_spans(const std::string& line, const std::string& place, std::vector<Block>& spans) {
  for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at)) {
    const std::size_t end = line.find('`', at + 1);
    if (end == std::string::npos) return;
    spans.push_back({"", place, line.substr(at + 1, end - at - 1)});
    at = end + 1;
  }
}

Document read(const fs::path& page) {
  Document document;
  std::ifstream in(page);
  const std::string name = fs::relative(page, kRoot).generic_string();
  bool fenced = false, indented = false, after_empty = true;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string place = name + ":" + std::to_string(++number);
    if (line.starts_with("```")) {
      fenced = !fenced;
      if (fenced) document.blocks.push_back({line.substr(3), place, ""});
      after_empty = false;
      continue;
    }
    const bool deep = line.starts_with("    ");
    if (!fenced && deep && (indented || after_empty)) {
      if (!indented) document.blocks.push_back({"", place, ""});
      indented = true;
      line.erase(0, 4);
    } else if (!fenced && !line.empty()) {
      indented = false;
    }
    if (fenced || indented)
      document.blocks.back().text += line + "\n";
    else
      add_spans(line, place, document.spans);
    after_empty = line.empty();
  }
  EXPECT_FALSE(fenced) << name << ": a fence is not closed";
  return document;
}

// A folder with a small file in the place of every model, because the reader looks whether they exist.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("leat-docs-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  void put_models(const std::string& text) const {
    static const std::regex kModel(R"re(model = "([A-Za-z0-9_.-]+)")re");
    for (std::sregex_iterator at(text.begin(), text.end(), kModel), end; at != end; ++at)
      std::ofstream(path_ / std::string((*at)[1])) << "model";
  }
  [[nodiscard]] std::string file() const { return (path_ / "leatd.toml").string(); }

 private:
  fs::path path_;
};

bool has_any(const toml::table& root, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) { return root.contains(key); });
}

// What a page shows of a configuration, with the rest that makes it whole: the reader knows every key.
std::string completed(const toml::table& root, std::string text) {
  if (!has_any(root, {"cpu", "partition"})) text.insert(0, "cpu = \"auto\"\n");
  if (!root.contains("application"))
    text +=
        "\n[[application]]\nname = \"a\"\nslo_ms = 100\n[[application.module]]\nname = \"m\"\nexecutor = \"emulated\"\n"
        "latency_ms = [4.0]\n";
  // Users and groups that this host need not have.
  text = std::regex_replace(text, std::regex(R"(\[limits\.(users|groups)\.[a-z]+\])"), "[limits.$1.4711]");
  return text;
}

TEST(Documents, TomlIsWhatItsReaderAccepts) {
  const Folder folder;
  std::size_t parsed = 0, accepted = 0;
  for (const fs::path& page : pages()) {
    for (const Block& block : read(page).blocks) {
      const leat::ParsedToml toml = leat::parse_toml(block.text);
      if (block.language != "toml") {
        EXPECT_FALSE(block.language.empty() && toml.error.empty() && !toml.root.empty())
            << block.place << ": this block is TOML; begin it with ```toml, so that it is read here";
        continue;
      }
      ++parsed;
      EXPECT_EQ(toml.error, "") << block.place << ", line " << toml.line << " of the block";
      if (!toml.error.empty()) continue;
      if (has_any(toml.root, {"cpu", "partition", "limits", "workers", "policy", "daemon"})) {
        ++accepted;
        const std::string text = completed(toml.root, block.text);
        folder.put_models(text);
        const auto config = leat::daemon::parse_config(text, folder.file());
        EXPECT_TRUE(config.ok()) << block.place << ": " << config.error();
      } else if (toml.root.contains("application")) {
        ++accepted;
        const auto applications = leat::planner::parse_applications(block.text, "page.toml");
        EXPECT_TRUE(applications.ok()) << block.place << ": " << applications.error();
      }
    }
  }
  EXPECT_GE(parsed, 8U);
  EXPECT_GE(accepted, 6U);
}

TEST(Documents, JsonParses) {
  std::size_t parsed = 0;
  for (const fs::path& page : pages()) {
    for (const Block& block : read(page).blocks) {
      leat::JsonError why("");
      const bool is_json = leat::Json::try_parse(block.text, &why).has_value();
      if (block.language == "json") {
        ++parsed;
        EXPECT_TRUE(is_json) << block.place << ": " << why.what();
      } else {
        EXPECT_FALSE(is_json) << block.place << ": this block is JSON; begin it with ```json, so that it is read here";
      }
    }
  }
  EXPECT_GE(parsed, 5U);
}

// ---- command lines ----

struct Help {
  std::set<std::string> commands, options;
};

std::string program_file(const std::string& name) {
  static const std::map<std::string, std::string> kPrograms = {{"leat", LEAT_BINARY},
                                                               {"leatd", LEATD_BINARY},
#ifdef LEAT_GPU_BINARY
                                                               {"leat-gpu", LEAT_GPU_BINARY},
#endif
#ifdef LEAT_GPU_PROBE_BINARY
                                                               {"leat-gpu-probe", LEAT_GPU_PROBE_BINARY},
#endif
                                                               {"leat-plan", LEAT_PLAN_BINARY}};
  if (name.starts_with("tools/")) return (kRoot / name).string();
  const auto found = kPrograms.find(name);
  return found == kPrograms.end() ? "" : found->second;
}

// What `PROGRAM [COMMAND] --help` says there is.
const Help& help_of(const std::string& program, const std::string& command) {
  static std::map<std::pair<std::string, std::string>, Help> known;
  const auto [at, is_new] = known.try_emplace({program, command});
  if (!is_new) return at->second;
  leat::subprocess::Command line{.words = {program_file(program)}};
  if (!command.empty()) line.words.push_back(command);
  line.words.emplace_back("--help");
  const auto said = leat::subprocess::output_of(line, {.limit = std::chrono::seconds(20)});
  EXPECT_TRUE(said.ok()) << program << " " << command << " --help: " << said.error();
  if (!said.ok()) return at->second;
  const std::string text = *said;
  // A program's table stands in columns; a script's help is free text.
  static const std::regex kCommand(R"(^  ([a-z]+) {2,}\S.*)"), kOption(R"(^ {2,6}(?:(-\w), )?(--[a-z0-9-]+).*)"),
      kAnyOption(R"(--[a-z0-9-]+|-h\b)");
  if (program.starts_with("tools/")) {
    for (std::sregex_iterator found(text.begin(), text.end(), kAnyOption), end; found != end; ++found)
      at->second.options.insert(found->str());
    at->second.options.insert("--help");
    return at->second;
  }
  std::istringstream lines(text);
  for (std::string one; std::getline(lines, one);) {
    std::smatch match;
    if (command.empty() && std::regex_match(one, match, kCommand)) at->second.commands.insert(match[1]);
    if (std::regex_match(one, match, kOption)) at->second.options.insert({match[1], match[2]});
  }
  return at->second;
}

// The words of a command line, quoted ones whole, without what a page puts around them: brackets, a comment.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? '\0' : c;
      if (quote == 0) word += "_";  // quoted text is never an option
    } else if (quote == 0 && (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '[' || c == ']')) {
      if (word == "#") return words;
      if (!word.empty()) words.push_back(std::exchange(word, ""));
    } else if (quote == 0) {
      word += c;
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

bool is_checked(const std::string& program) {
  static const std::regex kTool("tools/[a-z]+");
  return std::regex_match(program, kTool) ? fs::is_regular_file(kRoot / program) : !program_file(program).empty();
}

// What is wrong with one command of a pipeline that begins with a program of this project; "": nothing, or it does not.
std::string problem_of(const std::vector<std::string>& words, std::size_t& checked) {
  if (words.empty() || !is_checked(words[0])) return "";
  const std::string& program = words[0];
  if (words.size() == 1) return "";
  ++checked;
  std::string command;
  std::size_t first = 1;
  if (program.starts_with("leat") && !help_of(program, "").commands.empty() && !words[1].starts_with("-")) {
    command = words[1];
    if (!help_of(program, "").commands.contains(command)) return program + " has no command '" + command + "'";
    first = 2;
  }
  for (std::size_t i = first; i < words.size(); ++i) {
    if (!words[i].starts_with("-") || words[i] == "-") continue;
    if (program == "tools/test" && !words[i].starts_with("--")) continue;  // ctest's
    const std::string option = words[i].substr(0, words[i].find('='));
    if (!help_of(program, command).options.contains(option))
      return program + (command.empty() ? "" : " " + command) + " has no option " + option;
  }
  return "";
}

// Every command of a pipeline; a program may be a path of a build folder.
void check_line(const std::string& line, const std::string& place, std::size_t& checked) {
  static const std::regex kPipe(R"( \\?\| | && |\$\()");
  for (std::sregex_token_iterator part(line.begin(), line.end(), kPipe, -1), end; part != end; ++part) {
    std::vector<std::string> words = words_of(*part);
    while (!words.empty() && (words[0] == "sudo" || words[0] == "$" || words[0].find('=') != std::string::npos))
      words.erase(words.begin());
    if (!words.empty() && words[0].starts_with("build/") && words[0].find("/leat") != std::string::npos)
      words[0] = fs::path(words[0]).filename().string();
    const std::string problem = problem_of(words, checked);
    EXPECT_EQ(problem, "") << place << ": " << line;
  }
}

TEST(Documents, CommandLinesNameWhatThereIs) {
  std::size_t checked = 0;
  for (const fs::path& page : pages()) {
    const Document document = read(page);
    for (const Block& span : document.spans) check_line(span.text, span.place, checked);
    for (const Block& block : document.blocks) {
      if (!block.language.empty() && block.language != "sh") continue;
      const bool prompted = block.text.starts_with("$ ");  // all other lines are what the commands print
      std::istringstream lines(block.text);
      for (std::string line; std::getline(lines, line);)
        if (!prompted || line.starts_with("$ ")) check_line(line, block.place, checked);
    }
  }
  EXPECT_GT(checked, 150U);
}

// A row behind an empty line begins a table of its own, which needs its head; a long cell is a paragraph.
TEST(Documents, TablesAreWholeAndTheirCellsShort) {
  constexpr std::size_t kMaxCell = 400;  // letters
  static const std::regex kRule(R"(\|( *:?-+:? *\|)+)");
  for (const fs::path& page : pages()) {
    std::ifstream in(page);
    const std::string name = fs::relative(page, kRoot).generic_string();
    std::string head;  // the row before this line, where that began a table
    bool in_table = false;
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
      const std::string place = name + ":" + std::to_string(++number);
      const bool headed = head.empty() || std::regex_match(line, kRule);
      EXPECT_TRUE(headed) << place << ": the table above has no head: " << head;
      const bool row = line.starts_with("|");
      head = row && !in_table ? line : "";
      in_table = row;
      if (!row) continue;
      std::istringstream cells(line.substr(1));
      for (std::string cell; std::getline(cells, cell, '|');)
        EXPECT_LE(cell.size(), kMaxCell) << place << ": say it below the table: " << cell.substr(0, 60);
    }
  }
}

}  // namespace
