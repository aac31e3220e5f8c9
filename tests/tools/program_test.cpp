// The program itself, as a process, and the examples with it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "llvm/Support/JSON.h"
#include "runtime/weights/weight_files.h"
#include "tests/support/golden.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/shell.h"
#include "tests/tools/transcript.h"

namespace piper::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// The dynamic linker lists every library that a process opens, so none is missed, whenever it is
// loaded.
TEST(Program, CheckLoadsNoTensorLibrary) {
  ProcessOptions options;
  options.environment = {{"LD_DEBUG", "files"}};
  const ProcessResult checked =
      run_process({program_path("piper"), "check", "zbv", "-D", "p=4", "-D", "m=8"}, options);
  EXPECT_EQ(checked.exit_code, 0);
  ASSERT_THAT(checked.err, HasSubstr("libstdc++")) << "the linker says what it loads";
  for (const char* library :
       {"libtorch", "libc10", "libgomp", "libcuda", "libnccl", "libmpi", "piper_torch"})
    EXPECT_THAT(checked.err, Not(HasSubstr(library)));
}

TEST(Program, ExitCodes) {
  const auto exit_code = [](std::vector<std::string> words) {
    words.insert(words.begin(), program_path("piper"));
    return run_process(words).exit_code;
  };
  EXPECT_EQ(exit_code({"check", "zbv", "-D", "p=4", "-D", "m=8"}), 0);
  EXPECT_EQ(exit_code({"check", "zbw"}), 1);
  EXPECT_EQ(exit_code({"chekc"}), 2);
  EXPECT_EQ(exit_code({}), 2);
}

TEST(Program, StreamsAreSeparate) {
  const ProcessResult shown =
      run_process({program_path("piper"), "show", "orders", "gpipe", "-D", "p=2", "-D", "m=2"});
  EXPECT_EQ(shown.out, "rank 0: F0 F1 B0 B1\nrank 1: F0 F1 B0 B1\n");
  EXPECT_EQ(shown.err, "");
  const ProcessResult failed = run_process({program_path("piper"), "show", "orders", "gpipe"});
  EXPECT_EQ(failed.out, "");
  EXPECT_THAT(failed.err, HasSubstr("error P2322"));
}

// An output that takes no more is one diagnostic, not a silent half.
TEST(Program, FullOutputIsADiagnostic) {
  const ProcessResult shown =
      run_process({"/bin/sh", "-c", "exec \"$0\" show orders gpipe -D p=2 -D m=2 >/dev/full",
                   program_path("piper")});
  EXPECT_EQ(shown.exit_code, 1);
  EXPECT_THAT(shown.err, HasSubstr("error P6102"));
}

/// Three lines of metrics and nothing else.
void expect_metrics(const TemporaryFolder& folder) {
  const std::string metrics = read_text(folder.path() / "out" / "metrics.jsonl").value_or("");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3) << metrics;
  EXPECT_THAT(metrics, testing::StartsWith("{\"schema\":1"));
  EXPECT_THAT(metrics, Not(HasSubstr("train tiny")));
}

/// A train on the bytes of `corpus` with an evaluation, on two devices; `declarations` go before
/// it.
std::string text_train(const std::string& model, const std::string& declarations = "") {
  return "use std.models.gpt\n"
         "mesh two(d: 2)\n"
         "param corpus = \"\"\n" +
         declarations + "train text = " + model +
         " on two {\n"
         "    data:     bytes(corpus, batch: 4, seq: 8)\n"
         "    held_out: bytes(corpus, batch: 4, seq: 8)\n"
         "    optim:    adamw(lr: 1e-3)\n"
         "    steps:    2\n"
         "    replicate model over d\n"
         "}\n";
}

constexpr const char* kSmallGpt = "gpt(layers: 1, dim: 16, heads: 2, vocab: 256)";

// A text that can be read only once is read once: by the early check, the run and the bigram model
// together.
TEST(Program, DataIsReadOnce) {
  const TemporaryFolder folder;
  folder.write("text.pipe", text_train(kSmallGpt));
  const ProcessResult run = shell(
      folder,
      "mkfifo text; cat text.pipe >text & exec \"$0\" train text.pipe --interpret -D corpus=text");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("bigram model on the same text"));
}

// Therefore `train` checks the text it has read, also where `check` does not.
TEST(Program, ATextFromAPipeIsLookedThrough) {
  const TemporaryFolder folder;
  folder.write("text.pipe", text_train("gpt(layers: 1, dim: 16, heads: 2, vocab: 100)"));
  const ProcessResult run = shell(
      folder,
      "mkfifo text; cat text.pipe >text & exec \"$0\" train text.pipe --interpret -D corpus=text");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(
      run.err,
      HasSubstr(
          "warning P6108: `text` has the byte `117` at `0`, but the table that is looked up has 100 rows"));
}

TEST(Program, CheckSaysThatItDoesNotLookIntoAPipe) {
  const TemporaryFolder folder;
  folder.write("text.pipe", text_train(kSmallGpt));
  const ProcessResult run =
      shell(folder, "mkfifo text; exec \"$0\" check text.pipe -D corpus=text");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("warning P6107: `text` is a pipe, which is not looked into"));
}

// A program may come from a pipe; an endless file is not waited for.
TEST(Program, ASourceThatHasNoEndIsRefused) {
  const TemporaryFolder folder;
  folder.write("mesh.pipe", "mesh m(p: 2)\n");
  const ProcessResult piped =
      shell(folder, "mkfifo text.pipe; cat mesh.pipe >text.pipe & exec \"$0\" show ast text.pipe");
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_THAT(piped.out, HasSubstr("mesh"));
  std::filesystem::create_symlink("/proc/kmsg", folder.path() / "log.pipe");
  if (!std::ifstream(folder.path() / "log.pipe"))
    GTEST_SKIP() << "the log of the kernel is not for this user";
  const ProcessResult log = shell(folder, "exec \"$0\" check log.pipe");
  EXPECT_EQ(log.exit_code, 1);
  EXPECT_THAT(
      log.err,
      HasSubstr(
          "error P1001: cannot read `log.pipe`: it gives its bytes only as they come, and has no end"));
}

// As with other tools, a reader that goes away ends a command quietly, by the signal.
TEST(Program, AReaderThatIsGoneEndsItQuietly) {
  const TemporaryFolder folder;
  const ProcessResult shown =
      shell(folder, "{ sleep 0.2; \"$0\" show orders gpipe -D p=2 -D m=2; echo $? >code; } | true");
  EXPECT_EQ(read_text(folder.path() / "code"), "141\n");
  EXPECT_EQ(shown.err, "");
}

// A run goes on without readers, of either stream, and keeps its files.
TEST(Program, ARunOutlivesItsReader) {
  const TemporaryFolder folder;
  folder.write("tiny.pipe", kTiny);
  for (const char* streams : {"", "2>&1"}) {
    const ProcessResult run =
        shell(folder, "{ sleep 0.2; \"$0\" train tiny.pipe --interpret --out out " +
                          std::string(streams) + "; echo $? >code; } | true");
    EXPECT_EQ(read_text(folder.path() / "code"), "141\n") << streams << run.err;
    EXPECT_THAT(run.err, Not(HasSubstr("error"))) << streams;
    expect_metrics(folder);
  }
}

// The number of a closed stream is not that of the next file.
TEST(Program, ClosedStreams) {
  const TemporaryFolder folder;
  folder.write("tiny.pipe", kTiny);
  const ProcessResult shown = shell(folder, "\"$0\" show orders tiny.pipe >&-");
  EXPECT_EQ(shown.exit_code, 1);
  EXPECT_EQ(shown.err,
            "error P6102: standard output cannot be written: the output is incomplete\n");
  EXPECT_EQ(shell(folder, "\"$0\" show orders tiny.pipe -o orders.txt <&- >&- 2>&-").exit_code, 0);
  EXPECT_EQ(read_text(folder.path() / "orders.txt"), "rank 0: F0 B0\n");
  EXPECT_EQ(shell(folder, "\"$0\" explain >/dev/full").exit_code, 1);
  const ProcessResult run = shell(folder, "\"$0\" train tiny.pipe --interpret --out out <&- >&-");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("error P6102"));
  expect_metrics(folder);
  EXPECT_EQ(shell(folder, "\"$0\" train tiny.pipe --interpret --out out 2>&-").exit_code, 0);
  expect_metrics(folder);
}

/// A model of two matrix products per step, compared with one device until Ctrl-C comes before the
/// one that `when` names.
llvm::json::Object interrupted_comparison(const std::string& when, int exit_code,
                                          const std::string& words) {
  const TemporaryFolder folder;
  folder.write("products.pipe",
               "mesh one(d: 1)\n"
               "model products() {\n"
               "    input x: tensor[batch, features: 4], label: i64[batch]\n"
               "    weight w[features, class: 3] = normal(1.0)\n"
               "    loss cross_entropy(x @ w, label)\n"
               "}\n"
               "train compared = products() on one {\n"
               "    data:  synthetic(batch: 8, classes: 3)\n"
               "    optim: sgd(lr: 0.1)\n"
               "    steps: 3\n"
               "    place model on d[0]\n"
               "}\n");
  ProcessOptions options;
  options.environment = {{"PIPER_MATH", "auto"},
                         {"PIPER_PLUGINS", program_path("interrupting_library")},
                         {"INTERRUPT", when}};
  options.working_directory = folder.path().string();
  const ProcessResult run = run_process({program_path("piper"), "train", "products.pipe",
                                         "--interpret", "--reference", "--format", "json"},
                                        options);
  EXPECT_EQ(run.exit_code, exit_code) << when << run.err;
  EXPECT_THAT(run.err, HasSubstr(words)) << when;
  auto parsed = llvm::json::parse(run.out);
  if (parsed) return *parsed->getAsObject();
  llvm::consumeError(parsed.takeError());
  ADD_FAILURE() << when << ": no JSON: " << run.out << run.err;
  return {};
}

// The step in which Ctrl-C arrives is finished, on both sides; the complete comparisons are
// reported.
TEST(Program, AnInterruptedComparisonSaysSo) {
  const auto expect = [](const std::string& when, std::size_t comparisons, bool interrupted,
                         const std::string& words) {
    const llvm::json::Object told = interrupted_comparison(when, interrupted ? 130 : 0, words);
    EXPECT_EQ(told.getBoolean("interrupted"), interrupted) << when;
    ASSERT_NE(told.getArray("reference"), nullptr) << when;
    EXPECT_EQ(told.getArray("reference")->size(), comparisons) << when;
  };
  expect("f64 1", 0, true, "stopped after step 1 in f64");
  expect("f64 12", 1, true, "stopped after step 3 in f64");  // the last one of that comparison
  expect("f32 1", 1, true, "stopped after step 1 in f32");
  expect("f32 12", 2, false, "");  // nothing was left to do
}

/// A compiler that starts a child, sends the signal once to its parent, and goes on with
/// `afterwards`.
void write_compiler(const TemporaryFolder& folder, const std::string& signal,
                    const std::string& afterwards) {
  const std::string path =
      folder.write("compiler",
                   "#!/bin/sh\n"
                   "if [ \"$1\" = --version ]; then echo compiler; exit 0; fi\n"
                   "sleep 600 & echo $! >>parts\n"
                   "mkdir once 2>/dev/null && kill -" +
                       signal + " $PPID\n" + afterwards + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

/// Trains with that compiler; the shell waits until no part of it is there.
ProcessResult train_with_compiler(const TemporaryFolder& folder, const std::string& more) {
  folder.write("tiny.pipe", kTiny);
  return shell(
      folder,
      "ulimit -c 0; rm -rf once parts; CXX=./compiler PIPER_CACHE=cache \"$0\" train tiny.pipe --format json " +
          more +
          "; code=$?\n"
          "for part in $(cat parts); do while grep -q 'State:.[^ZX]' /proc/$part/status 2>/dev/null; do sleep 0.02; done; done\n"
          "exit $code");
}

// Also before the first step: compilers end with their children, and no partial file stays.
TEST(Program, CtrlCEndsTheBuild) {
  for (const char* signal : {"INT", "TERM"}) {
    const TemporaryFolder folder;
    write_compiler(folder, signal, "wait");
    ProcessResult run = train_with_compiler(folder, "");
    EXPECT_EQ(run.exit_code, 130) << run.err;
    EXPECT_FALSE(run.timed_out) << "a part of the compiler lives on";
    EXPECT_EQ(run.err, "stopped before step 1\n");
    EXPECT_EQ(run.out,
              "{\"interrupted\":true,\"schema\":1,\"seconds\":0,\"steps\":0,\"train\":\"tiny\"}\n");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() / "cache"))
      EXPECT_NE(entry.path().extension(), ".part") << entry.path();
    run = train_with_compiler(folder, "--reference");
    EXPECT_EQ(run.exit_code, 130) << run.err;
    EXPECT_EQ(run.err, "stopped before step 1 in f64\n");
    EXPECT_EQ(run.out, "{\"interrupted\":true,\"reference\":[],\"schema\":1,\"train\":\"tiny\"}\n");
  }
}

// However the program ends, its compilers end with it; the next run removes their partial files.
TEST(Program, CompilersEndWithTheProgram) {
  for (const auto& [signal, exit_code] : {std::pair{"HUP", 130}, std::pair{"QUIT", 131},
                                          std::pair{"PIPE", 141}, std::pair{"KILL", 137}}) {
    const TemporaryFolder folder;
    write_compiler(folder, signal, "for last; do :; done; echo half >\"$last\"; wait");
    const ProcessResult run = train_with_compiler(folder, "");
    EXPECT_FALSE(run.timed_out) << signal << ": a part of the compiler lives on";
    EXPECT_EQ(run.exit_code, exit_code) << signal << run.err;
    EXPECT_EQ(shell(folder, "PIPER_CACHE=cache exec \"$0\" train tiny.pipe").exit_code, 0);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() / "cache"))
      EXPECT_NE(entry.path().extension(), ".part") << entry.path();
  }
}

// An ignored signal does not end it either.
TEST(Program, AnIgnoredCtrlCDoesNotEndTheBuild) {
  const TemporaryFolder folder;
  write_compiler(folder, "INT", "kill $(tail -n 1 parts)\nexec g++ \"$@\"");
  folder.write("tiny.pipe", kTiny);
  const ProcessResult run =
      shell(folder, "trap '' INT; CXX=./compiler PIPER_CACHE=cache exec \"$0\" train tiny.pipe");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 steps in "));
}

// A disk that fills while programs are built: whatever could still be written, those of this run
// are built where there is room.
TEST(Program, AFullCacheDisk) {
  const TemporaryFolder folder;
  folder.write("tiny.pipe", kTiny);
  std::filesystem::create_directory(folder.path() / "cache");
  const std::string mount =
      "unshare -rm /bin/sh -c 'mount -t tmpfs -o mode=700,size=\"$1\" none cache && ";
  if (const ProcessResult tried = shell(folder, mount + "true' - 64k"); tried.exit_code != 0)
    GTEST_SKIP() << "no file system can be mounted: " << tried.err;
  for (const char* size : {"4k", "64k", "80k", "100k"}) {
    const ProcessResult run =
        shell(folder, mount + "PIPER_CACHE=cache exec \"$0\" train tiny.pipe' \"$0\" " + size);
    EXPECT_EQ(run.exit_code, 0) << size;
    EXPECT_THAT(run.out, HasSubstr("generated code")) << size;
    EXPECT_THAT(
        run.err,
        HasSubstr(
            "warning P5101: nothing more can be written to the cache folder `cache`; programs are built in a temporary folder"))
        << size;
  }
}

// A limit on the size of files is reported like a full disk, by the writer: the signal of that
// limit would end the program without a message.
TEST(Program, ALimitOnTheSizeOfFilesIsADiagnostic) {
  const TemporaryFolder folder;
  folder.write("tiny.pipe", kTiny);
  ProcessResult run = shell(folder, "ulimit -f 1; exec \"$0\" show dag tiny.pipe -o tiny.pir");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err, "error P6102: `tiny.pir` cannot be written: file too large\n");
  run = shell(folder, "ulimit -f 1; exec \"$0\" train tiny.pipe --interpret --out out");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("error P6012: "));
  // The compiler is limited as well.
  run = shell(folder, "ulimit -f 40; PIPER_CACHE=cache exec \"$0\" train tiny.pipe");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("warning P5101: "));
  EXPECT_THAT(run.out, HasSubstr("interpreted"));
}

// A library would end the process with its own message.
TEST(Program, AFolderThatIsGoneIsADiagnostic) {
  const TemporaryFolder folder;
  folder.write("tiny.pipe", kTiny);
  const ProcessResult run = shell(
      folder,
      "mkdir gone; cd gone; rmdir ../gone; PIPER_MATH=mkl exec \"$0\" train ../tiny.pipe --interpret");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(
      run.err,
      HasSubstr(
          "error P6009: LibTorch cannot be opened: the folder that the run was started in is gone"));
}

// Each device is a thread: too many for the system are refused before anything is compiled.
TEST(Program, TooManyDevicesAreADiagnostic) {
  const TemporaryFolder folder;
  std::string text = kTiny;
  text.replace(text.find("pp: 2"), 5, "pp: 1000000");
  folder.write("wide.pipe", text);
  const ProcessResult run = shell(folder, "exec \"$0\" train wide.pipe --interpret");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(
      run.err,
      HasSubstr(
          "error P6005: `1000000` devices are as many threads of this process, for which the system is too small"));
}

// The program itself provides for the stack of a thread.
TEST(Program, ASmallStackIsEnough) {
  const TemporaryFolder folder;
  folder.write("tiny.pipe", kTiny);
  ProcessResult run = shell(folder, "ulimit -s 64; exec \"$0\" train tiny.pipe --interpret");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 steps in "));
  // A compiler has only the shell's limit.
  run = shell(folder, "ulimit -s 64; PIPER_CACHE=cache exec \"$0\" train tiny.pipe");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("hint: `ulimit -s` leaves compilers too small a stack"));
}

std::set<std::string> example_files() {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("examples")) {
    if (entry.path().extension() == ".pipe") files.insert(entry.path().string());
  }
  return files;
}

TEST(Examples, AllAreClean) {
  const std::set<std::string> files = example_files();
  EXPECT_GE(files.size(), 4u);
  for (const std::string& file : files) {
    const ToolResult checked = run_tool({"check", file});
    EXPECT_EQ(checked.exit_code, 0) << file;
    // Texts that are made by a script beside it, and weights from elsewhere.
    if (file.starts_with("examples/data/") || file.starts_with("examples/gpt/") ||
        file.starts_with("examples/finetune/")) {
      EXPECT_THAT(checked.err, HasSubstr("warning P6107: cannot read"));
    } else {
      EXPECT_EQ(checked.err, "") << file;
    }
  }
}

TEST(Examples, SmallOnesTrain) {
  for (const char* file :
       {"examples/mlp/mlp.pipe", "examples/two_towers/two_towers.pipe", "examples/tied/tied.pipe",
        "examples/points/points.pipe", "examples/zero/zero.pipe", "examples/memory/memory.pipe",
        "examples/cluster/cluster.pipe"}) {
    const ToolResult run = run_tool({"train", file, "--steps", "2", "--interpret"});
    EXPECT_EQ(run.exit_code, 0) << file << ": " << run.err;
    EXPECT_THAT(run.out, HasSubstr("2 steps in ")) << file;
  }
}

/// The commands of a page, which stand behind four spaces.
std::vector<std::string> commands_of(const std::string& page) {
  std::vector<std::string> commands;
  std::istringstream lines(read_text(page).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("    piper ")) commands.push_back(line.substr(10));
  }
  return commands;
}

/// The tensors of a folder of weights, by their names.
std::map<std::string, std::string> tensors_of(const std::string& folder) {
  runtime::Failure failure;
  const auto files = runtime::WeightFiles::open(folder, failure);
  EXPECT_TRUE(files) << failure.message;
  std::map<std::string, std::string> tensors;
  if (!files) return tensors;
  for (const auto& [name, tensor] : files->tensors()) {
    std::string bytes(tensor.stored.end - tensor.stored.begin, '\0');
    EXPECT_FALSE(files->read(tensor.file, tensor.position, bytes.size(), bytes.data()));
    tensors.emplace(name, std::move(bytes));
  }
  return tensors;
}

/// The commands of its page: the weights of the base stay, and adapters stand beside them.
TEST(Examples, FineTuningTrainsAdaptersAlone) {
  const TemporaryFolder folder;
  const std::string examples = std::filesystem::absolute("examples").string();
  std::string printed;
  for (std::string command : commands_of("examples/finetune/README.md")) {
    command.replace(command.find("examples"), 8, examples);
    if (command.starts_with("train")) command += " --steps 2 --interpret";
    const ProcessResult run = shell(folder, "PIPER_MATH=builtin exec \"$0\" " + command);
    ASSERT_EQ(run.exit_code, 0) << command << "\n" << run.err;
    printed += run.out;
  }
  EXPECT_THAT(printed,
              HasSubstr("not in it, with first values: `block.0.attention.0.adapter.0.down`"));
  const auto base = tensors_of(folder.path() / "base"), tuned = tensors_of(folder.path() / "tuned");
  EXPECT_EQ(base.size(), 21u);
  EXPECT_EQ(tuned.size(), base.size() + 8);
  for (const auto& [name, bytes] : base) EXPECT_EQ(tuned.at(name), bytes) << name;
  // A product with the first value 0 has been trained.
  const std::string& up = tuned.at("model.layers.1.self_attn.v_proj.lora_B.weight");
  EXPECT_NE(up, std::string(up.size(), '\0'));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "tuned" / "config.json"));
}

/// Stands in for the package `tokenizers`: an id of a text is one of its bytes, in pairs above 255.
constexpr const char* kTokenizers = R"(
class Named:
    def __init__(self, *args, **options): pass
class Tokenizer(Named):
    def train(self, files, trainer): self.text = open(files[0], "rb").read()
    def encode(self, text):
        encoded = Named()
        encoded.ids = [byte + 256 * (i % 4) for i, byte in enumerate(text.encode())]
        return encoded
    def save(self, path): open(path, "w").write("{}")
    def get_vocab_size(self): return 1024
class models: BPE = Named
class decoders: ByteLevel = Named
class trainers: BpeTrainer = Named
class ByteLevel(Named):
    @staticmethod
    def alphabet(): return []
class pre_tokenizers: pass
pre_tokenizers.ByteLevel = ByteLevel
)";

TEST(Examples, TokensOfATextTrain) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "a line of text that is number " + std::to_string(i) + "\n";
  folder.write("text.txt", text);
  folder.write("python/tokenizers.py", kTokenizers);
  const std::string examples = std::filesystem::absolute("examples/data").string();
  const ProcessResult tokenised =
      shell(folder, "PYTHONPATH=python python3 " + examples + "/tokenise.py text.txt corpus");
  ASSERT_EQ(tokenised.exit_code, 0) << tokenised.err;
  EXPECT_THAT(tokenised.out, HasSubstr(" tokens below 1024\n"));
  const std::string corpus = folder.path() / "corpus";
  const ToolResult run =
      run_tool({"train", "examples/data/data.pipe", "-D", "corpus=" + corpus + "/train.bin", "-D",
                "held_out=" + corpus + "/held_out.bin", "--steps", "2", "--interpret"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2 steps in "));
  EXPECT_THAT(run.out, HasSubstr("held-out loss "));
}

/// Trains on a given text, in this process.
ToolResult train_on(const std::string& text, const std::string& program) {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("corpus.txt", text);
  const ToolResult run = run_tool({"train", "text.pipe", "-D", "corpus=" + corpus, "--interpret"},
                                  {{"text.pipe", program}});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("held-out loss "));
  return run;
}

TEST(Examples, AFileWithASettingOfItsOwnTextTrains) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "a line of text that is number " + std::to_string(i) + "\n";
  EXPECT_THAT(train_on(text, text_train(kSmallGpt)).out,
              HasSubstr("bigram model on the same text "));
}

// Only the mean over all bytes compares with another model of the text.
TEST(Examples, AMaskedLossIsComparedWithNoBigram) {
  const std::string text =
      "the same few words of a line, and once more the same few words of a line\n";
  const std::string model =
      "model words(dim: int, vocab: int) {\n"
      "    input tokens: i64[batch, seq], targets: i64[batch, seq]\n"
      "    loss cross_entropy(head(embed(tokens, vocab, dim), vocab), targets, ignore: 32)\n"
      "}\n";
  EXPECT_THAT(train_on(text, text_train("words(dim: 4, vocab: 256)", model)).out,
              Not(HasSubstr("bigram")));
}

}  // namespace
}  // namespace piper::test
