// The folders of checkpoints: which are complete, which are moved and removed, which a command line
// means; and files that are damaged or cannot be written.
#include "runtime/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "tests/runtime/state_job.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

namespace fs = std::filesystem;
using test::Random;
using test::TemporaryFolder;
using Steps = std::vector<std::uint64_t>;

void add_complete(const TemporaryFolder& folder, const std::string& name) {
  folder.write(name + "/" + kManifestName, "of " + name);
  folder.write(name + "/model.safetensors", "");
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CheckpointFolders, OnlyCompleteStepsCount) {
  const TemporaryFolder folder;
  EXPECT_TRUE(complete_steps(folder.path()).empty());
  EXPECT_TRUE(complete_steps(folder.path() / "none").empty());
  for (const char* name : {"step-9", "step-10", "step-200", "step-0", "step-18446744073709551615"})
    add_complete(folder, name);
  for (const char* name : {"step-007", "step-", "step-1x", "step--1", "step-18446744073709551616",
                           "Step-3", "step-3 ", ".step-4.partial", ".step-4.removed", "step-+5"})
    add_complete(folder, name);
  fs::create_directory(folder.path() / "step-11");  // without a manifest
  folder.write("step-12", "a file");
  fs::create_directories(folder.path() / "step-13" / kManifestName);
  fs::create_directory_symlink(folder.path() / "step-9", folder.path() / "step-14");
  fs::create_directory(folder.path() / "step-15");
  fs::create_symlink(folder.path() / "step-9" / kManifestName,
                     folder.path() / "step-15" / kManifestName);
  EXPECT_EQ(complete_steps(folder.path()), (Steps{0, 9, 10, 200, UINT64_MAX}));
}

TEST(CheckpointFolders, RemainsOfKilledRunsAreRemoved) {
  const TemporaryFolder folder;
  for (const char* name : {".step-3.partial", ".step-2.removed", "step-1", "step-3.partial",
                           ".other.partial", "notes"})
    add_complete(folder, name);
  ASSERT_FALSE(remove_partial_checkpoints(folder.path()));
  EXPECT_EQ(names_in(folder.path()),
            (std::vector<std::string>{".other.partial", "notes", "step-1", "step-3.partial"}));
  EXPECT_FALSE(remove_partial_checkpoints(folder.path() / "none"));
}

/// A link is removed, and not the folder that it names.
TEST(CheckpointFolders, NothingOutsideIsRemoved) {
  const TemporaryFolder folder, other;
  other.write("mine", "");
  fs::create_directory_symlink(other.path(), folder.path() / ".step-3.partial");
  ASSERT_FALSE(remove_partial_checkpoints(folder.path()));
  EXPECT_TRUE(names_in(folder.path()).empty());
  EXPECT_EQ(names_in(other.path()), std::vector<std::string>{"mine"});
}

TEST(CheckpointFolders, OldOnesAreRemoved) {
  struct Row {
    std::uint64_t keep;
    Steps left;
  };
  for (const Row& row : {Row{0, {8, 9, 10, 11}}, Row{1, {11}}, Row{2, {10, 11}},
                         Row{4, {8, 9, 10, 11}}, Row{UINT64_MAX, {8, 9, 10, 11}}}) {
    const TemporaryFolder folder;
    for (const char* name : {"step-9", "step-10", "step-8", "step-11"}) add_complete(folder, name);
    fs::create_directory(folder.path() / "step-1");  // not complete
    ASSERT_FALSE(remove_old_checkpoints(folder.path(), row.keep)) << row.keep;
    EXPECT_EQ(complete_steps(folder.path()), row.left) << row.keep;
    EXPECT_EQ(names_in(folder.path()).size(), row.left.size() + 1) << row.keep;
  }
}

TEST(CheckpointFolders, TheBestOneIsLeftBesideTheNewest) {
  for (const auto& [best, left] :
       {std::pair<std::uint64_t, Steps>{8, {8, 11}}, {10, {10, 11}}, {11, {11}}, {7, {11}}}) {
    const TemporaryFolder folder;
    for (const char* name : {"step-9", "step-10", "step-8", "step-11"}) add_complete(folder, name);
    ASSERT_FALSE(remove_old_checkpoints(folder.path(), 1, best)) << best;
    EXPECT_EQ(complete_steps(folder.path()), left) << best;
  }
}

TEST(CheckpointFolders, LaterOnesAreMovedAside) {
  struct Row {
    std::optional<std::uint64_t> after;
    Steps left, moved;
  };
  for (const Row& row : {Row{{}, {}, {2, 10, 30}}, Row{0, {}, {2, 10, 30}}, Row{2, {2}, {10, 30}},
                         Row{9, {2}, {10, 30}}, Row{30, {2, 10, 30}, {}}}) {
    const TemporaryFolder folder;
    for (const char* name : {"step-10", "step-2", "step-30"}) add_complete(folder, name);
    folder.write("checkpoints.1/step-5/" + std::string(kManifestName), "of an earlier run");
    folder.write("checkpoints.2", "a file");
    std::string kept_as = "before";
    fs::create_directory(folder.path() / "step-31");  // not complete
    ASSERT_FALSE(move_checkpoints_aside(folder.path(), row.after, kept_as));
    EXPECT_FALSE(fs::exists(folder.path() / "step-31"));
    EXPECT_TRUE(fs::exists(fs::path(kept_as) / "step-31"));
    EXPECT_EQ(complete_steps(folder.path()), row.left);
    EXPECT_EQ(complete_steps(folder.path() / "checkpoints.1"), Steps{5});
    EXPECT_EQ(kept_as, (folder.path() / "checkpoints.3").string());
    EXPECT_EQ(complete_steps(kept_as), row.moved);
  }
}

struct Search {
  const char* text;    // below the folder
  const char* folder;  // of the checkpoint; null: there is none
  const char* run;     // the folder that holds it, or the message
  const char* hint = "";
};

constexpr Search kSearches[] = {
    {"run", "run/step-300", "run"},
    {"run/", "run/step-300", "run"},
    {"./run", "./run/step-300", "./run"},
    {"run:20", "run/step-20", "run"},
    {"run/:20", "run/step-20", "run"},
    {"run/step-20", "run/step-20", "run"},
    {"run/step-20/", "run/step-20", "run"},
    {"run/checkpoints.1", "run/checkpoints.1/step-5", "run/checkpoints.1"},
    {"renamed", "renamed", "."},
    {"at:7", "at:7/step-1", "at:7"},
    {"at:7:1", "at:7/step-1", "at:7"},
    {"run/step-20/.", "run/step-20/.", "run/step-20/./.."},
    {"link", "link/step-300", "link"},
    {"run:21", nullptr, "`run` has no checkpoint of step 21", "it has those of steps 20, 300"},
    {"run:", nullptr, "there is no folder `run:`"},
    {"run:x", nullptr, "there is no folder `run:x`"},
    {"run:-20", nullptr, "there is no folder `run:-20`"},
    {"run:18446744073709551616", nullptr, "there is no folder `run:18446744073709551616`"},
    {"run/step-21", nullptr, "there is no folder `run/step-21`"},
    {"run/step-30", nullptr, "`run/step-30` has no complete checkpoint"},
    {"none", nullptr, "there is no folder `none`"},
    {"none:3", nullptr, "there is no folder `none`"},
    {"file", nullptr, "there is no folder `file`"},
    {"empty", nullptr, "`empty` has no complete checkpoint"},
    {"empty:3", nullptr, "`empty` has no complete checkpoint"},
    {"", nullptr, "there is no folder ``"},
    {":3", nullptr, "there is no folder ``"},
};

TEST(CheckpointFolders, ACommandLineNamesOne) {
  const TemporaryFolder folder;
  for (const char* name : {"run/step-20", "run/step-300", "run/.step-400.partial",
                           "run/checkpoints.1/step-5", "renamed", "at:7/step-1"})
    add_complete(folder, name);
  fs::create_directory(folder.path() / "run/step-30");
  fs::create_directory(folder.path() / "empty");
  folder.write("file", "");
  fs::create_directory_symlink("run", folder.path() / "link");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  for (const Search& row : kSearches) {
    SCOPED_TRACE(row.text);
    Failure failure;
    const auto found = find_checkpoint(row.text, failure);
    EXPECT_EQ(found.has_value(), row.folder != nullptr) << failure.message;
    if (found && row.folder) {
      EXPECT_EQ(found->folder, row.folder);
      EXPECT_EQ(found->run, row.run);
    } else if (!found) {
      EXPECT_EQ(failure.code, kCheckpointMissing);
      EXPECT_EQ(failure.message, row.run);
      EXPECT_NE(failure.hint, "");
      if (*row.hint) {
        EXPECT_EQ(failure.hint, row.hint);
      }
    }
  }
  fs::current_path(folder.path() / "run/step-20");
  Failure failure;
  const auto here = find_checkpoint(".", failure);
  ASSERT_TRUE(here) << failure.message;
  EXPECT_TRUE(fs::equivalent(here->run, folder.path() / "run"));
  fs::current_path(before);
}

// ---- damage

/// A checkpoint with two files and its folder.
class Damaged {
 public:
  Damaged()
      : job_({{.name = "w", .dims = {4, 5}, .slots = 1}, {.name = "v", .dims = {3}, .slots = 1}}) {
    job_.fill();
    CheckpointWriter writer(job_.memory(), {.out_folder = folder_.path(),
                                            .run = {.train = "drawn", .data = "synthetic"}});
    EXPECT_FALSE(writer.save(4));
    EXPECT_FALSE(writer.finish());
    path_ = writer.folder(4);
  }

  fs::path file(const std::string& name) const { return path_ / name; }
  const TemporaryFolder& folder() const { return folder_; }

  /// The failure of opening, comparing and loading it; a refused one has changed nothing.
  std::optional<Failure> use() {
    job_.clear();
    Failure failure;
    const auto checkpoint = Checkpoint::open(path_, failure);
    if (!checkpoint) return failure;
    const Manifest facts{.train = "drawn", .data = "synthetic"};
    if (auto differs = checkpoint->compare(job_.parameters(), facts, Restored::all)) return differs;
    return checkpoint->load(job_.memory(), Restored::all);
  }
  bool is_loaded() const { return job_.difference(Restored::all).empty(); }

 private:
  const TemporaryFolder folder_;
  StateJob job_;
  fs::path path_;
};

constexpr const char* kFiles[] = {"model.safetensors", "optimizer.safetensors", kManifestName};

TEST(DamagedCheckpoint, IsLegalWithoutDamage) {
  Damaged checkpoint;
  const auto failure = checkpoint.use();
  ASSERT_FALSE(failure) << describe(*failure);
  EXPECT_TRUE(checkpoint.is_loaded());
}

TEST(DamagedCheckpoint, EveryFlippedByteIsSeen) {
  Damaged checkpoint;
  for (const char* const name : kFiles) {
    const std::string legal = test::read_text(checkpoint.file(name)).value();
    for (std::size_t i = 0; i < legal.size(); ++i) {
      std::string text = legal;
      text[i] = static_cast<char>(text[i] ^ (1 << i % 8));
      test::write_text(checkpoint.file(name), text);
      const auto failure = checkpoint.use();
      ASSERT_TRUE(failure) << name << ", byte " << i;
      EXPECT_EQ(failure->code, kCheckpointUnreadable)
          << name << ", byte " << i << ": " << describe(*failure);
    }
    test::write_text(checkpoint.file(name), legal);
  }
  EXPECT_FALSE(checkpoint.use());
}

TEST(DamagedCheckpoint, EveryOtherLengthIsSeen) {
  Damaged checkpoint;
  for (const char* const name : kFiles) {
    const std::string legal = test::read_text(checkpoint.file(name)).value();
    for (std::size_t size = 0; size <= legal.size() + 8; ++size) {
      if (size == legal.size()) continue;
      std::string text = legal;
      text.resize(size, ' ');
      test::write_text(checkpoint.file(name), text);
      const auto failure = checkpoint.use();
      ASSERT_TRUE(failure) << name << ", " << size;
      EXPECT_EQ(failure->code, kCheckpointUnreadable) << describe(*failure);
    }
    test::write_text(checkpoint.file(name), legal);
  }
}

/// Nothing that is no plain file is opened or waited for.
TEST(DamagedCheckpoint, OtherKindsOfFilesAreRefused) {
  struct Row {
    const char* reason;
    std::function<void(const fs::path& path, const fs::path& moved)> put;
  };
  const Row table[] = {
      {"No such file", [](const fs::path&, const fs::path&) {}},
      {"it is no plain file",
       [](const fs::path& path, const fs::path&) { fs::create_directory(path); }},
      {"it is no plain file",
       [](const fs::path& path, const fs::path&) { ASSERT_EQ(mkfifo(path.c_str(), 0666), 0); }},
      {"it is a link",
       [](const fs::path& path, const fs::path& moved) { fs::create_symlink(moved, path); }},
      {"it is a link",
       [](const fs::path& path, const fs::path&) { fs::create_symlink("/dev/zero", path); }},
      {"it is a link",
       [](const fs::path& path, const fs::path&) { fs::create_symlink(path, path); }},
  };
  Damaged checkpoint;
  for (const char* const name : kFiles) {
    const fs::path path = checkpoint.file(name), moved = checkpoint.folder().path() / "moved";
    for (const Row& row : table) {
      fs::rename(path, moved);
      row.put(path, moved);
      const auto failure = checkpoint.use();
      ASSERT_TRUE(failure) << name << ", " << row.reason;
      EXPECT_EQ(failure->code, kCheckpointUnreadable);
      EXPECT_NE(failure->message.find(row.reason), std::string::npos) << failure->message;
      fs::remove_all(path);
      fs::rename(moved, path);
    }
  }
  EXPECT_FALSE(checkpoint.use());
}

/// Files of another checkpoint with sizes that fit.
TEST(DamagedCheckpoint, FilesThatAreSwappedAreSeen) {
  Damaged checkpoint;
  fs::copy_file(checkpoint.file("model.safetensors"), checkpoint.file("optimizer.safetensors"),
                fs::copy_options::overwrite_existing);
  const auto failure = checkpoint.use();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, kCheckpointUnreadable);
}

// ---- files that cannot be written

TEST(UnwritableCheckpoint, IsAFailureAndLeavesEarlierOnes) {
  struct Row {
    const char* reason;
    std::function<std::string(const TemporaryFolder&)> out_folder;
  };
  const Row table[] = {
      {"Not a directory",
       [](const TemporaryFolder& folder) { return folder.write("file", "") + "/out"; }},
      {"No such file", [](const TemporaryFolder& folder) { return folder.path() / "none"; }},
      {"Not a directory",  // the partial folder is a file
       [](const TemporaryFolder& folder) {
         folder.write(".step-5.partial", "");
         return folder.path();
       }},
      {"Is a directory",
       [](const TemporaryFolder& folder) {
         fs::create_directories(folder.path() / ".step-5.partial/model.safetensors");
         return folder.path();
       }},
      {"it is a link",
       [](const TemporaryFolder& folder) {
         fs::create_directory(folder.path() / ".step-5.partial");
         fs::create_symlink(folder.path() / "elsewhere",
                            folder.path() / ".step-5.partial/model.safetensors");
         return folder.path();
       }},
      {"it is a link",
       [](const TemporaryFolder& folder) {
         fs::create_directory(folder.path() / ".step-5.partial");
         fs::create_symlink(folder.path() / "elsewhere",
                            folder.path() / ".step-5.partial" / kManifestName);
         return folder.path();
       }},
      {"it is no plain file",  // and is not waited for
       [](const TemporaryFolder& folder) {
         fs::create_directory(folder.path() / ".step-5.partial");
         mkfifo((folder.path() / ".step-5.partial/model.safetensors").c_str(), 0666);
         return folder.path();
       }},
      {"Directory not empty",
       [](const TemporaryFolder& folder) {
         folder.write("step-5/mine", "");
         return folder.path();
       }},
  };
  for (const Row& row : table) {
    SCOPED_TRACE(row.reason);
    const TemporaryFolder folder;
    add_complete(folder, "step-4");
    StateJob job({{.name = "w", .dims = {4}}});
    CheckpointWriter writer(job.memory(), {.out_folder = row.out_folder(folder), .keep = 1});
    EXPECT_FALSE(writer.save(5));  // it is written by another thread
    for (int again = 0; again < 2; ++again) {
      const auto failure = again == 0 ? writer.save(6) : writer.finish();
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, kOutputUnwritable);
      EXPECT_NE(failure->message.find(row.reason), std::string::npos) << failure->message;
    }
    EXPECT_EQ(complete_steps(folder.path()), Steps{4});
    EXPECT_FALSE(fs::exists(folder.path() / "elsewhere"));
  }
}

/// Links that take the name of the folder, or of its files, lead nothing out of it.
TEST(UnwritableCheckpoint, LinksAndSecondNamesAreNotWritten) {
  const auto failure_of = [](const fs::path& out_folder) {
    StateJob job({{.name = "w", .dims = {4}}});
    job.fill();
    CheckpointWriter writer(job.memory(), {.out_folder = out_folder});
    EXPECT_FALSE(writer.save(5));
    const auto failure = writer.finish();
    return failure ? failure->message : "";
  };
  const TemporaryFolder folder, other;
  fs::create_directory_symlink(other.path(), folder.path() / ".step-5.partial");
  EXPECT_EQ(failure_of(folder.path()), "cannot write `" + folder.path().string() +
                                           "/.step-5.partial`: it is a link; earlier checkpoints "
                                           "are unchanged");
  EXPECT_TRUE(names_in(other.path()).empty());
  EXPECT_TRUE(names_in(folder.path()).empty()) << "the link itself is removed";

  const std::string mine = other.write("mine", "of another file, and longer than the manifest");
  for (const char* const name : {"model.safetensors", kManifestName}) {
    fs::create_directory(folder.path() / ".step-5.partial");
    fs::create_hard_link(mine, folder.path() / ".step-5.partial" / name);
    EXPECT_NE(failure_of(folder.path()).find("the file has a second name, a hard link"),
              std::string::npos);
    EXPECT_EQ(test::read_text(mine), "of another file, and longer than the manifest");
  }
  // A checkpoint of that name which is a link keeps what it leads to.
  fs::create_directory_symlink(other.path(), folder.path() / "step-5");
  EXPECT_NE(failure_of(folder.path()).find("step-5`: Not a directory"), std::string::npos);
  EXPECT_EQ(names_in(other.path()), std::vector<std::string>{"mine"});
  fs::remove(folder.path() / "step-5");
  // The folder of `--out` itself may be one.
  fs::create_directory_symlink(folder.path(), other.path() / "out");
  EXPECT_EQ(failure_of(other.path() / "out"), "");
  EXPECT_EQ(complete_steps(folder.path()), Steps{5});
}

/// A run that was killed may have left longer files of the same checkpoint, and others.
TEST(CheckpointFiles, LongerFilesOfAKilledRunAreCut) {
  const TemporaryFolder folder;
  StateJob job({{.name = "w", .dims = {4}}});
  job.fill();
  const std::string left(100'000, 'x');
  for (const char* const name : {"model.safetensors", "optimizer.safetensors", kManifestName})
    folder.write(".step-5.partial/" + std::string(name), left);
  CheckpointWriter writer(job.memory(), {.out_folder = folder.path()});
  ASSERT_FALSE(writer.save(5));
  ASSERT_FALSE(writer.finish());
  Failure failure;
  const auto checkpoint = Checkpoint::open(writer.folder(5), failure);
  ASSERT_TRUE(checkpoint) << describe(failure);
  ASSERT_FALSE(checkpoint->load(job.memory(), Restored::all));
  EXPECT_EQ(job.difference(Restored::all), "");
}

/// A limit on the size of files stands for a full disk.
TEST(UnwritableCheckpoint, AFullDiskLeavesNothingOfIt) {
  const TemporaryFolder folder;
  StateJob job({{.name = "w", .dims = {100'000}}});
  CheckpointWriter writer(job.memory(), {.out_folder = folder.path()});
  EXPECT_FALSE(writer.save(1));
  EXPECT_FALSE(writer.finish());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 100'000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_FALSE(writer.save(2));
  const auto failure = writer.finish();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, kOutputUnwritable);
  EXPECT_NE(failure->message.find("File too large"), std::string::npos) << failure->message;
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"step-1"});
}

}  // namespace
}  // namespace piper::runtime
