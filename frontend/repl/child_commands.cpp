// Commands that write files for other programs, and run these: pages, trains, the editor.

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "frontend/pictures/timeline_page.h"
#include "frontend/repl/command_functions.h"
#include "frontend/repl/session.h"
#include "frontend/source/write_file.h"

namespace piper::repl {
namespace {

/// A file of its own, which is gone with it.
class TemporaryFile {
 public:
  /// A file beside `beside`, so that paths in it are relative to the same folder; its path is empty
  /// if it could not be made.
  TemporaryFile(const std::filesystem::path& folder, const std::string& text) {
    std::string path = (folder / ".session-XXXXXX.pipe").string();
    const int file = mkstemps(path.data(), 5);
    if (file < 0) return;
    close(file);
    path_ = path;
    std::ofstream(path_, std::ios::binary) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::filesystem::path folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

}  // namespace

bool html(Session& session, const Words& words) {
  const std::string& path = words.plain.front();
  std::vector<pictures::Picture> pictures;
  for (std::size_t i = 1; i < words.plain.size() || pictures.empty(); ++i) {
    const std::optional<Chosen> chosen =
        session.choose(i < words.plain.size() ? words.plain[i] : "");
    if (!chosen) return false;
    auto simulated = session.simulate(*chosen);
    if (!simulated) return false;
    pictures.push_back(pictures::make_picture(chosen->title(), std::move(simulated->timeline),
                                              &simulated->plan->dag,
                                              session.shown(*chosen).locations()));
  }
  if (path.ends_with(".pipe"))
    return session.fail(Code::unwritable_output, "write `:html " + path + ".html`",
                        "`{}` is the name of a program, and not of a page", path);
  if (const std::error_code error = source::write_file(path, pictures::timeline_page(pictures)))
    return session.fail(Code::unwritable_output, "", "`{}` cannot be written: {}", path,
                        error.message());
  session.say("`" + path + "` is written: open it in a browser\n");
  return true;
}

bool train(Session& session, const Words& words) {
  std::string name, steps;
  for (const std::string& word : words.plain)
    (word.find_first_not_of("0123456789") == std::string::npos ? steps : name) = word;
  const std::optional<Chosen> chosen = session.choose(name);
  if (!chosen) return false;
  if (!chosen->is_train)
    return session.fail(Code::nothing_chosen, "name a train, which has a model and data",
                        "`{}` is a schedule, which nothing can be trained with alone",
                        chosen->name);
  if (!session.host().run_program)
    return session.fail(Code::child_failed, "", "this session cannot run programs");
  const std::string text = session.sources().saved();
  const bool as_loaded = session.sources().has_file() && text == session.sources().file_text();
  std::optional<TemporaryFile> written;
  if (!as_loaded) written.emplace(folder_of(session.sources().path()), text);
  const std::string& path = as_loaded ? session.sources().file() : written->path();
  if (path.empty())
    return session.fail(Code::unwritable_output, "", "no file can be made in `{}`: {}",
                        folder_of(session.sources().path()).string(),
                        std::string(std::strerror(errno)));
  std::vector<std::string> line = {"train", path, chosen->name};
  if (!steps.empty()) line.insert(line.end(), {"--steps", steps});
  for (const lower::Override& value : chosen->values)
    line.insert(line.end(), {"-D", value.name + "=" + value.value});
  const int code = session.host().run_program(line);
  return code == 0 || session.fail(Code::child_failed, "", "the run ended with exit code {}", code);
}

bool edit(Session& session, const Words& words) {
  const std::string name = words.first();
  if (!session.host().run_editor)
    return session.fail(Code::child_failed, "", "this session cannot run programs");
  std::string before = session.draft(name).value_or("");
  if (before.empty())
    before =
        session.sources().definition(name).value_or("schedule " + name + "(p: axis, m: int) {\n}");
  const TemporaryFile file(std::filesystem::temp_directory_path(), before + "\n");
  if (file.path().empty())
    return session.fail(Code::unwritable_output, "",
                        "no file can be made in the folder for temporary ones: {}",
                        std::string(std::strerror(errno)));
  const int code = session.host().run_editor(file.path());
  if (code != 0)
    return session.fail(Code::child_failed, "the environment variable EDITOR names the program",
                        "the editor ended with exit code {}", code);
  const source::ReadResult read = source::RealFileSystem().read(file.path(), source::kMaxFileSize);
  if (!read.text)
    return session.fail(Code::unreadable_file, "", "what the editor wrote cannot be read: {}",
                        read.too_large > 0 ? "it is too large" : read.error);
  std::string text = *read.text;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text == before && !session.draft(name)) {
    session.say("`" + name + "` is as it was\n");
    return true;
  }
  // A refused text is not lost: the next `:edit` goes on with it.
  session.keep_draft(name, text);
  if (read_entry(text).sort != EntrySort::item)
    return session.fail(Code::bad_command_words, "`:edit " + name + "` goes on with it",
                        "what the editor wrote is no item");
  const bool good = session.define(read_entry(text));
  if (session.sources().definition(name) == text) session.drop_draft(name);
  return good;
}

}  // namespace piper::repl
