// The tables of commands and options.

#include "frontend/tools/arguments.h"

namespace piper::tools {
namespace {

constexpr std::uint32_t bit(Command command) { return 1u << static_cast<unsigned>(command); }
constexpr std::uint32_t kSimulates =
    bit(Command::show) | bit(Command::simulate) | bit(Command::compare) | bit(Command::tune);
constexpr std::uint32_t kOnInput = bit(Command::check) | kSimulates | bit(Command::train) |
                                   bit(Command::build) | bit(Command::export_weights);
constexpr std::uint32_t kAll = kOnInput | bit(Command::sample) | bit(Command::explain) |
                               bit(Command::fmt) | bit(Command::repl) | bit(Command::lsp) |
                               bit(Command::completion) | bit(Command::doctor) | bit(Command::help);

constexpr const char* kAnyInput =
    "IN is a .pipe file, a .pir file, or a schedule of the standard library:\n"
    "  piper show grid zbv -D p=4 -D m=8\n";

constexpr CommandRow kCommands[] = {
    {Command::check, "check", "piper check IN [NAME]", 1, 2,
     "find everything that can be known before launch",
     "Compiles every train of IN (or the train or schedule called NAME) to a plan, proves that it has no deadlock and no data race, and checks\n"
     "its requirements. A schedule that no train of the file applies is compiled on a chain of equal links, at its parameters' defaults, else\n"
     "axes of 4 and integers of 8, or 16 and 2, and the sizes are printed. A .pir file is verified unchanged: its header, graph,\n"
     "communicators and roles. Not checked are the operations inside its bodies, beyond the signatures and the ignored targets of a loss, and\n"
     "the text of its `directives { }`: they are the model and the strategy, which the rest does not repeat. Prints nothing else without an error.",
     kAnyInput},
    {Command::show, "show", "piper show KIND IN [NAME]", 2, 3,
     "print the compiled forms of a program",
     "KIND is one of:\n"
     "  ast        the syntax tree of the file\n"
     "  graph      the tensor graph, forward and backward; repeated blocks are printed once\n"
     "  orders     the order of operations on each rank\n"
     "  grid       the same, drawn over time: F, R, BI and BW take one column, B takes two (svg, html: to scale)\n"
     "  timeline   the same to scale, at costs; with --rates, --costs or --machine the plan in seconds (svg, html, perfetto too)\n"
     "  memory     bytes by class of each role, between two steps and at the peak (svg too)\n"
     "  comm       bytes by communicator and kind (svg too)\n"
     "  partition  the layers, times, parameters and activations of each stage; with --cost, --rates, --costs or --machine at these\n"
     "  metrics    the loss of a run, from the folder of `train --out`: piper show metrics DIR (svg too)\n"
     "  checkpoint the state that `train` keeps, and the other checkpoints of its run: piper show checkpoint DIR[:STEP]\n"
     "  stuck      where the ranks of a run stood when it ended, and which action held up the others: piper show stuck FILE --from DIR\n"
     "  dag        the training DAG\n"
     "  program    the device program of each role\n\n"
     "With --format pir, graph and dag are whole, with the place in the program of each line; `piper check` reads such a DAG back, and a DAG that goes\n"
     "to a file or a pipe has this form by default. On a terminal, and with --format text, repeated layers and stages are printed once.",
     kAnyInput},
    {Command::simulate, "simulate", "piper simulate IN [NAME]", 1, 2,
     "simulate a program: times, idle ranks and reasons",
     "Runs the order of each rank in time, each operation as soon as its inputs are there, and prints makespan, span, the idle part of both\n"
     "(bubble), the work and the idle time of each rank, activations at their peak, and the critical path. Costs are those of one microbatch on\n"
     "one device share, 1/P of the model for P ranks, where replicas are one rank: an operation takes its cost times P times its part of the model,\n"
     "in flops and bytes of the op table, with --stages equal 1/S on one of S stages. A schedule by itself has equal links. Costs are f, b, bi, bw of the\n"
     "passes [1, bi+bw, 1, 1], pair of an F and a B of one overlap group together [one after the other], p2p of a message, which occupies no rank\n"
     "[0], and w, the fraction of activations that BI leaves to BW [1]. Idle time is before the first operation, after the last, waiting for data that\n"
     "is not made yet or for a message on its way, and imbalance: waits for data, up to the amount by which the rank has less work than the busiest one.\n"
     "With --rates, --costs or --machine the plan runs: all its actions on their streams, with their events and windows, each message\n"
     "when both of its ends are ready, in seconds; the live bytes in the arena of each rank are counted, and the wait for room (in a window, or for\n"
     "bytes that a message still uses) has a column.",
     kAnyInput},
    {Command::compare, "compare", "piper compare A B ...", 1, 64,
     "put several programs beside each other in one table",
     "Simulates each, as `piper simulate` does, and prints bubble, span, makespan, the largest peak of activations, the largest arena, the bytes\n"
     "that all ranks send in a step and the lines of each declaration; the best of each figure has a star. -D gives a size to all programs with a\n"
     "parameter of that name; several sizes, as in -D m=4,8,16, give a row each.",
     "A, B are .pipe files with one train, FILE.pipe:NAME, or schedules of the standard library:\n"
     "  piper compare gpipe one_f_one_b zbv -D p=4 -D m=8\n"
     "  piper compare zbv -D p=4,8 -D m=8,16,32\n"},
    {Command::tune, "tune", "piper tune IN [NAME]", 1, 2,
     "choose values of a program by simulated time and memory",
     "Tries the choices of a program: those of its params, such as `param m in [8, 16, 32]`, and sizes of -D with several values. It compiles each\n"
     "combination, checks its requirements, and simulates it as `piper simulate` does: a train in seconds, unless costs of operations are given. It\n"
     "prints the combinations that no other beats in both time and memory, and chooses the one with the smallest figure of --minimize. Up to --tries\n"
     "combinations are all tried; of more, one choice at a time is improved, from the program as written and then from random combinations. Refused\n"
     "combinations are counted by their diagnostics. Ctrl-C keeps the best one so far. With -o the program is written with the chosen values, and\n"
     "with a comment that says why.",
     "IN is a .pipe file, or a schedule of the standard library:\n"
     "  piper tune gpt.pipe --machine cluster.pipe --memory 24GiB -o tuned.pipe\n"
     "  piper tune zbv -D p=4 -D m=8,16,32\n"},
    {Command::train, "train", "piper train FILE [NAME]", 1, 2, "run a train on local devices",
     "Compiles, builds and runs a train, shows its progress, and evaluates the held-out data at the end. With --out it keeps checkpoints, and\n"
     "--resume goes on from one. With --reference it runs three steps and compares them with the one-device step instead, in f64 and in the\n"
     "train's own type.",
     "FILE is a .pipe file; NAME is needed when it has several trains. In several processes, by -n, torchrun, mpirun, srun, or by hand:\n"
     "  piper train FILE -n 4\n"
     "  torchrun --nproc-per-node 4 --no-python piper train FILE\n"
     "  RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 MASTER_ADDR=node1 MASTER_PORT=29500 piper train FILE\n"},
    {Command::sample, "sample", "piper sample FILE [NAME] --from RUN --prompt TEXT", 1, 2,
     "write a text with a language model, from a checkpoint or from first values",
     "Writes the prompt and the tokens that the model of a train draws after it, one by one, on one CPU, whatever the mesh and the schedule of the\n"
     "train. A token reads the keys and values of the tokens before from a cache. The text ends with the last position of the model. The same seed\n"
     "draws the same tokens. A train on `bytes(...)` takes texts and gives bytes: on a terminal bytes that are no UTF-8 are shown as U+FFFD. Any\n"
     "other takes --prompt-ids and gives numbers.",
     "FILE is a .pipe file with the model of the checkpoint; NAME is needed when it has several trains. RUN is the folder of `train --out` (its latest\n"
     "checkpoint), RUN:STEP, or a folder RUN/step-N.\n"
     "  piper sample gpt.pipe --from run --prompt 'class ' --temperature 0.8 --top-p 0.9 --seed 1\n"},
    {Command::build, "build", "piper build FILE [NAME] -o DIR", 1, 2,
     "write the generated sources of each role",
     "Writes one C++ file per role with the two headers that they include, and tables of kernels, library calls, bytes and matrix products. Each shape of\n"
     "product is timed for 20 ms on one thread of this machine, unless one takes more than 10 Gflop or 1 GiB. With --device cuda: the CUDA C++ of all\n"
     "kernels (kernels.cu), one C++ file per role that enqueues them, its calls as text, and a table of kernels with their registers if NVRTC is found.",
     "FILE is a .pipe file or a schedule of the standard library; NAME is needed when it has several trains.\n"},
    {Command::export_weights, "export", "piper export RUN|FILE [NAME] -o FILE.safetensors|DIR", 1,
     2, "write the parameters of a checkpoint, or the first values of a train, as safetensors",
     "Writes one tensor for each parameter, under its name, row-major. A name that ends in .safetensors is one file. Any other is a folder with\n"
     "model.safetensors, or above 4 GiB with several files and the index of Hugging Face. The checkpoint is verified first, and the output becomes\n"
     "visible when it is complete. The values are the unrounded ones that the optimizer keeps, in the type of training unless --dtype says another.\n"
     "With --names the tensors have the names and orders of dimensions of a `names` item, and a folder gets its config.json.",
     "RUN is the folder of `train --out` (its latest checkpoint), RUN:STEP, or a folder RUN/step-N. FILE is a .pipe file, whose train begins with the\n"
     "exported values; NAME is needed when it has several trains. A checkpoint does not keep its program, which --names needs for the model:\n"
     "  piper export RUN --names hf_llama --program FILE -o DIR\n"},
    {Command::explain, "explain", "piper explain [CODE | SCHEDULE]", 0, 4,
     "explain a diagnostic, or a schedule of the library",
     "Prints the page of a diagnostic, such as P3007, or that of a schedule of the standard library: its origin and formulas, its figures\n"
     "and grid at the sizes of -D [4 for axes, 8 for numbers], and all others beside it. A schedule is also found by its usual names in the field,\n"
     "such as 1F1B or ZB-H1. Without an argument, the list of all codes.",
     ""},
    {Command::fmt, "fmt", "piper fmt FILE...", 1, kAnyNumber,
     "put programs into the layout of the project",
     "Rewrites the files in place. `-` reads standard input and writes to standard output. A file with syntax errors is not changed: they\n"
     "are reported, and the exit code is 1. With --check nothing is written: the files that differ are listed, and the exit code is 1.",
     "FILE is a .pipe file, or `-`.\n"},
    {Command::repl, "repl", "piper repl [FILE]", 0, 1,
     "a session: define, draw, change and look again",
     "Reads lines and answers each: items, `let` and `var`, expressions, and commands such as `:grid zbv p=4 m=8`; `:help` lists them. FILE is loaded\n"
     "first, and watched: when it changes, the last picture is drawn again. On a terminal lines can be edited, with history and completion. With\n"
     "--script the lines of a file are answered as if they were typed, each printed before its answer, and the exit code says whether one failed.",
     "FILE is a .pipe file.\n"},
    {Command::lsp, "lsp", "piper lsp", 0, 0,
     "serve an editor: the language server, on standard input and output",
     "Speaks the Language Server Protocol 3.17. Editors start it themselves; `editors/README.md` has their set-up. Settings, as `initializationOptions`\n"
     "or as the section `piper` of the editor's configuration: {\"values\": {\"NAME\": VALUE}, \"train\": \"NAME\"}, values as\n"
     "in `-D`, and the train whose values hover and hints show; without it those of all.",
     ""},
    {Command::completion, "completion", "piper completion SHELL", 1, 1,
     "print the script that completes words in a shell, or the man page",
     "SHELL is bash, zsh or fish. In bash: `source <(piper completion bash)`; in zsh: `piper completion zsh > DIR/_piper`, DIR in its fpath; in fish:\n"
     "`piper completion fish | source`. `piper completion man > DIR/man1/piper.1` is the man page, DIR in the path of man.",
     ""},
    {Command::doctor, "doctor", "piper doctor", 0, 0,
     "list the driver, the GPUs, NVRTC and the libraries of this machine",
     "Lists the NVIDIA driver and its GPUs, NVRTC, cuBLASLt, NCCL and LibTorch for CUDA, each with its version and place, or the reason why it is\n"
     "not there and what to install. To train on the CPU only a C++ compiler is used; without one programs are interpreted.",
     ""},
    {Command::help, "help", "piper help [COMMAND]", 0, 1, "show this help", "", ""},
};

constexpr OptionRow kOptions[] = {
    {"-D", "NAME=VALUE", "",
     "replace a param of the file, or give a parameter of a library schedule",
     kOnInput | bit(Command::sample) | bit(Command::explain)},
    {"--format", "FORMAT", "text", "text or json",
     (kOnInput & ~bit(Command::show) & ~bit(Command::compare) & ~bit(Command::tune)) |
         bit(Command::sample) | bit(Command::explain) | bit(Command::doctor)},
    {"--format", "FORMAT", "text", "text, json, or svg: time and memory of every combination",
     bit(Command::tune)},
    {"--format", "FORMAT", "text", "text, json, or html: their timelines on one page",
     bit(Command::compare)},
    {"--format", "FORMAT", "text",
     "text or json; pictures also svg, grid and timeline html, timeline perfetto, graph and dag pir, orders pipe",
     bit(Command::show)},
    {"--cost", "COSTS", "",
     "f=1,bi=1,bw=1,p2p=0; b is bi+bw, and alone gives both half; pair=3: overlap groups run together in that time",
     kSimulates | bit(Command::explain)},
    {"--rates", "RATES", "",
     "flops=4e10,bytes=1e10,latency=5e-6,bandwidth=1e10: simulate the plan on such a machine, in seconds",
     kSimulates},
    {"--costs", "FILE", "",
     "the same with measured times of bodies and rates: a JSON file, as `train --profile` writes it",
     kSimulates},
    {"--machine", "FILE[:NAME]", "",
     "the same on a machine that a .pipe file declares: memory and speed of devices, links of axes",
     kSimulates},
    {"--w", "PART", "1",
     "the fraction of activations that BI leaves to BW, the same as w in --cost", kSimulates},
    {"--keep", "PART", "0", "the fraction of activations that the F of a recomputed pass keeps",
     kSimulates},
    {"--stages", "RULE", "cost",
     "cost: a stage counts by its cost in the op table; equal: all stages count the same; the same as stages in --cost",
     kSimulates},
    {"--minimize", "FIGURE", "makespan, of a schedule by itself bubble",
     "makespan, span, bubble, memory or traffic", bit(Command::tune)},
    {"--memory", "SIZE", "no bound", "refuse plans with a larger arena, such as 24GiB",
     bit(Command::tune)},
    {"--tries", "N", "500", "the largest number of combinations that are tried",
     bit(Command::tune)},
    {"--seed", "N", "0", "another seed tries other combinations", bit(Command::tune)},
    {"-o", "FILE", "", "write there instead of to standard output",
     kSimulates & ~bit(Command::tune)},
    {"-o", "FILE", "", "write the program with the chosen values there", bit(Command::tune)},
    {"-o", "DIR", "", "the folder to write to, made when it is missing", bit(Command::build)},
    {"-o", "FILE|DIR", "", "the file to write, FILE.safetensors, or a new or empty folder",
     bit(Command::export_weights)},
    {"--dtype", "DTYPE", "that of training",
     "the type of the exported numbers: f64, f32, bf16 or f16", bit(Command::export_weights)},
    {"--names", "MAP", "the parameters' own",
     "the names of the tensors: a `names` item of the program, or one of `std.names`, such as hf_llama",
     bit(Command::export_weights)},
    {"--program", "FILE", "",
     "of --names: the .pipe file that the checkpoint was trained with; NAME and -D choose its train",
     bit(Command::export_weights)},
    {"--ema", "", "", "of a checkpoint: the moving averages of the parameters in their place",
     bit(Command::export_weights)},
    {"--level", "LEVEL", "planned",
     "of show dag: built, split, placed, communicating, ordered or planned", bit(Command::show)},
    {"--locations", "", "",
     "in graph and dag as text: the place in the program of each line, which pir and json always have",
     bit(Command::show)},
    {"--bodies", "", "", "in dag as text: the operations of bodies, too", bit(Command::show)},
    {"--print-after", "PASS", "",
     "print the training DAG to standard error after a pass, or after every one: all",
     kOnInput & ~bit(Command::tune)},
    {"-n", "PROCESSES", "1",
     "start so many processes here, each with its share of the ranks, and end all when one dies",
     bit(Command::train)},
    {"--dry-run", "", "", "print which rank gets what, and start nothing", bit(Command::train)},
    {"--device", "DEVICE", "the train's, else cpu",
     "the platform of the ranks: cpu, or cuda: all on one GPU, or with a launcher one GPU each",
     bit(Command::train) | bit(Command::build)},
    {"--device", "DEVICE", "the train's, else cpu",
     "the platform of the plan, whose kernels' workspaces count as memory: cpu or cuda",
     bit(Command::check) | bit(Command::simulate) | bit(Command::compare) | bit(Command::tune)},
    {"--device", "DEVICE", "the train's, else cpu",
     "of show program, memory, dag and timeline: cpu, or cuda, its launches, library calls and NCCL calls",
     bit(Command::show)},
    {"--transport", "NAME", "by the processes",
     "local: all ranks are threads of this process, also under a launcher", bit(Command::train)},
    {"--steps", "N", "the train's",
     "number of steps; 0 keeps the first values in a checkpoint and evaluates them",
     bit(Command::train)},
    {"--threads", "N", "1", "threads of one rank inside a matrix product", bit(Command::train)},
    {"--out", "DIR", "",
     "write checkpoints (step-N), metrics.jsonl and flight records there; those of an earlier run are kept aside",
     bit(Command::train)},
    {"--resume", "DIR[:STEP]", "",
     "go on from a checkpoint of a run, its latest or that of a step, in its folder unless --out says another",
     bit(Command::train)},
    {"--only", "PART", "",
     "of --resume: weights, to begin a new training with the parameters alone",
     bit(Command::train)},
    {"--log", "KIND", "",
     "csv or tensorboard, or both, each after its own --log: every step as DIR/metrics.csv, or as event files in DIR/tensorboard",
     bit(Command::train)},
    {"--trace", "FILE", "",
     "write when the last step's actions ran, beside the plan: a trace for ui.perfetto.dev, or a page if FILE ends in .html",
     bit(Command::train)},
    {"--profile", "FILE", "",
     "write the times of bodies and library calls, for `simulate --costs FILE`, and print the parts of the step",
     bit(Command::train)},
    {"--reference", "", "", "compare three steps with the one-device step instead of training",
     bit(Command::train)},
    {"--interpret", "", "", "interpret the device programs instead of compiling them",
     bit(Command::train)},
    {"--from", "DIR[:STEP]", "the first values of the train",
     "the weights: a checkpoint of a run, its latest or that of a step", bit(Command::sample)},
    {"--from", "DIR", "", "of show stuck: the folder of the run, with its flight records",
     bit(Command::show)},
    {"--prompt", "TEXT", "", "the beginning of the text", bit(Command::sample)},
    {"--prompt-file", "FILE", "", "a file with the beginning, or - for standard input",
     bit(Command::sample)},
    {"--prompt-ids", "IDS", "",
     "the beginning as numbers of tokens, such as 1,2,3: the text is numbers, too",
     bit(Command::sample)},
    {"--tokens", "N", "200", "number of drawn tokens", bit(Command::sample)},
    {"--temperature", "X", "0.8", "logits are divided by it; 0 takes the most probable token",
     bit(Command::sample)},
    {"--top-k", "K", "all", "draws from the K most probable tokens", bit(Command::sample)},
    {"--top-p", "P", "1", "draws from the most probable tokens whose probabilities sum to P",
     bit(Command::sample)},
    {"--seed", "N", "0", "another seed draws other tokens", bit(Command::sample)},
    {"--threads", "N", "1", "threads inside a matrix product", bit(Command::sample)},
    {"--check", "", "", "list the files that differ instead of writing them", bit(Command::fmt)},
    {"--script", "FILE", "", "answer the lines of a file, each after its prompt",
     bit(Command::repl)},
    {"--stdio", "", "", "no effect: the server always does this; some editors pass it",
     bit(Command::lsp)},
    {"--help", "", "", "show the help of the command", kAll},
};

}  // namespace

std::span<const CommandRow> command_rows() { return kCommands; }
std::span<const OptionRow> option_rows() { return kOptions; }

}  // namespace piper::tools
