#include "frontend/repl/commands.h"

#include <algorithm>

#include "frontend/repl/command_functions.h"

namespace piper::repl {
namespace {

constexpr std::size_t kAny = 64;
constexpr std::string_view kOf =
    "NAME is a train or schedule of the session, or a schedule of the library; without it the last one is taken. `p=4` sets a size, as `:set p=4` does.\n";

// name, usage, summary, details; least and most words; values, sizes, draws; what completes;
// function
constexpr CommandRow kCommands[] = {
    {"load", ":load FILE", "load the declarations of a .pipe file",
     "Its items replace those of the same name. The file is watched: when it changes it is read again, and the last picture is drawn again.\n",
     1, 1, false, false, false, WordSort::file, load},
    {"reload", ":reload", "read the loaded file again", "That happens by itself when it changes.\n",
     0, 0, false, false, false, WordSort::nothing, reload},
    {"model", ":model [NAME]", "choose the subject whose regions and sizes expressions use",
     "Labels, `stage[1] mb[0]`, and parameters in expressions are those of this train or schedule; otherwise of the last one that a command named.\n",
     0, 1, false, false, false, WordSort::subject, model},
    {"grid", ":grid [NAME] [k=v ...]", "draw the order of each rank over time", kOf, 0, 1, true,
     true, true, WordSort::subject, grid},
    {"orders", ":orders [NAME] [k=v ...]", "list the order of each rank", kOf, 0, 1, true, true,
     true, WordSort::subject, orders},
    {"timeline", ":timeline [NAME] [k=v ...]",
     "draw it to scale, at the costs of `:cost` or on the machine of `:machine`", kOf, 0, 1, true,
     true, true, WordSort::subject, timeline},
    {"simulate", ":simulate [NAME] [k=v ...]", "makespan, bubble, idle times, critical path", kOf,
     0, 1, true, true, true, WordSort::subject, simulate},
    {"memory", ":memory [NAME] [k=v ...]", "bytes of each role by class", kOf, 0, 1, true, true,
     true, WordSort::subject, memory},
    {"comm", ":comm [NAME] [k=v ...]", "bytes by communicator", kOf, 0, 1, true, true, true,
     WordSort::subject, comm},
    {"step", ":step [N | first | last]", "walk through the order, operation by operation",
     "The next operation; `:step 10` ten of them, `:step -1` one back. Shows what each rank holds, runs and waits for.\n",
     0, 1, false, false, false, WordSort::nothing, step},
    {"why", ":why RANK TIME", "why a rank is idle then: the chain of waits",
     "Times are those of `:timeline`, on a machine such as `4ms`. Each line is what the one above waited for, up to where the rank became idle.\n",
     2, 2, false, false, false, WordSort::nothing, why},
    {"what-if", ":what-if swap RANK A B | move RANK A before|after B",
     "the effect of another order",
     "A and B are operations as `:orders` and `:grid` call them: `:what-if swap 1 F2 B0`. Communication that the order names stays after its operation. Shows the change of makespan, bubble and peaks, or why it cannot run.\n",
     4, 5, false, false, false, WordSort::nothing, what_if},
    {"compare", ":compare NAME ... [k=v ...]", "put several beside each other in a table",
     "Each takes the sizes that it has. The best of each figure has a star.\n", 1, kAny, true, true,
     true, WordSort::subject, compare},
    {"check", ":check [NAME] [k=v ...]", "find all that can be known before launch",
     "Without NAME all of the session: trains as they are, schedules at their sizes.\n", 0, 1, true,
     true, false, WordSort::subject, check},
    {"cost", ":cost [k=v ...]", "set the costs of operations",
     "f, b, bi, bw, r, pair, p2p, w, keep and stages (`cost`, or `equal`), as of `piper simulate --cost`; `:cost reset` resets all. Without words: shows them.\n",
     0, 1, true, false, false, WordSort::cost, cost},
    {"machine", ":machine [NAME | FILE.pipe[:NAME]]", "simulate plans on a machine, in seconds",
     "A `machine` of the session, or of a file. `:machine none` goes back to the costs of `:cost`. Without words: shows it. `:step` keeps the costs of `:cost`.\n",
     0, 1, false, false, false, WordSort::definition, machine},
    {"rates", ":rates [k=v ...]", "set the rates of devices and links, and simulate plans at them",
     "flops, bytes, latency and bandwidth, as of `piper simulate --rates`: of devices and links for which the machine, if there is one, states none. `:rates reset` resets all. Without words: shows them.\n",
     0, 1, true, false, false, WordSort::rate, rates},
    {"set", ":set [k=v ...]", "set sizes and params, and draw again",
     "They hold for every train and schedule that has a parameter of that name. Without words: shows them.\n",
     0, 0, true, false, false, WordSort::size, set},
    {"unset", ":unset NAME ...", "reset sizes and params", "", 1, kAny, false, false, false,
     WordSort::size, unset},
    {"explain", ":explain WORD [k=v ...]", "the page of a diagnostic or a schedule",
     "WORD is a code such as P3108, a schedule of the library, whose formulas, figures and neighbours are shown, or something that the session defines.\n",
     1, 1, true, true, false, WordSort::explained, explain},
    {"edit", ":edit NAME", "change a definition in your editor",
     "EDITOR in the environment names it. The next `:edit` goes on with a refused text.\n", 1, 1,
     false, false, false, WordSort::definition, edit},
    {"html", ":html FILE [NAME ...] [k=v ...]", "write a page to zoom into",
     "It opens from disk. Several are drawn below each other on one axis of time.\n", 1, kAny, true,
     true, false, WordSort::subject, html},
    {"train", ":train [NAME] [N]", "run a train for N steps",
     "As a program of its own, on the session's text.\n", 0, 2, false, false, false,
     WordSort::subject, train},
    {"save", ":save FILE", "write the session as a .pipe file",
     "Retyped definitions take their place in the loaded file. Bindings, sizes and costs are not part of it.\n",
     1, 1, false, false, false, WordSort::file, save},
    {"help", ":help [COMMAND]", "what can be typed", "", 0, 1, false, false, false,
     WordSort::command, help},
    {"quit", ":quit", "end the session", "Ctrl-D does too.\n", 0, 0, false, false, false,
     WordSort::nothing, quit},
};

}  // namespace

std::span<const CommandRow> command_rows() { return kCommands; }

const CommandRow* find_command(std::string_view name) {
  const auto found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                  [&](const CommandRow& row) { return row.name == name; });
  return found == std::end(kCommands) ? nullptr : &*found;
}

std::string help_text(const CommandRow* row) {
  if (row != nullptr)
    return std::string(row->usage) + "\n" + std::string(row->summary) + "\n" +
           std::string(row->details);
  std::size_t width = 0;
  for (const CommandRow& each : kCommands) width = std::max(width, each.usage.size());
  std::string text =
      "A line is an item (`schedule s(p: axis) { ... }`, `param`, `mesh`, `model`, `def`, `train`, `machine`, `names`, `use`), `let x = ...`, `var x = ...`, an expression, or a command:\n";
  for (const CommandRow& each : kCommands)
    text += "  " + std::string(each.usage) + std::string(width - each.usage.size() + 2, ' ') +
            std::string(each.summary) + "\n";
  return text + "A line goes on while a bracket is open. `:help COMMAND` says more.\n";
}

}  // namespace piper::repl
