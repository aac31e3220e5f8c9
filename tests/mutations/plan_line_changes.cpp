#include "tests/mutations/plan_line_changes.h"

#include <algorithm>
#include <utility>

namespace piper::test {

using dag::Action;

void PlanLineChanges::add_communicator(std::size_t line) {
  const std::string& text = lines_[line];
  via_.push_back(text.substr(13, text.find(' ', 13) - 13));
  lines_.change_number(line, " min ", {-1, 1});
  const std::size_t open = text.find('('), close = text.find(')', open),
                    middle = text.find("], ", open);
  if (middle < close) {
    lines_.add("members in another order", line,
               text.substr(0, open + 1) + text.substr(middle + 3, close - middle - 3) + ", " +
                   text.substr(open + 1, middle - open) + text.substr(close));
    lines_.add("a member less", line, text.substr(0, open + 1) + text.substr(middle + 3));
  }
  const LineToken stream = word(text, text.find(" stream ") + 8);
  for (const dag::Stream& other : dag_.streams)
    lines_.add("another stream", line,
               replace_token(text, stream, std::string(dag_.context->text(other.name))));
  if (const std::size_t over = find_attribute(text, " over "); over != std::string::npos)
    lines_.add("joins no axis", line, text.substr(0, over) + text.substr(text.find(" stream ")));
}

void PlanLineChanges::add_role(std::size_t line) {
  ++num_roles_;
  num_actions_ = num_buffers_ = 0;
  for (const char* key : {" arena ", " live ", " host "})
    lines_.change_number(line, key, {-64, 64});
}

void PlanLineChanges::add_role_line(std::size_t line) {
  const std::size_t role = num_roles_ - 1;
  if (lines_[line].starts_with("  buffer ")) buffers_.push_back({line, role, num_buffers_++});
  else actions_.push_back({line, role, num_actions_++});
}

void PlanLineChanges::change_actions_and_buffers() {
  for (std::size_t k = 0; k < actions_.size(); ++k) act(k);
  for (const BufferLine& line : buffers_) {
    move_onto_state(line);
    sizes_and_classes(line);
  }
}

void PlanLineChanges::add_action_of(const std::string& name) {
  for (const Place& place : actions_) {
    if (place.action == 0)
      lines_.changes.push_back(
          {"an action: " + name,
           place.line,
           1,
           {"  " + name + " on " + std::string(dag_.context->text(dag_.streams.front().name)),
            lines_[place.line]}});
  }
}

void PlanLineChanges::sizes_and_classes(const BufferLine& place) {
  const dag::Buffer& buffer = dag_.plan->roles[place.role].buffers[place.buffer];
  // The scratch of an action is not a fact of this text.
  if (buffer.cls == dag::BufferClass::workspace) return;
  lines_.change_number(place.line, " bytes ", {-1, 1, 64});
  const std::string& text = lines_[place.line];
  const LineToken own = word(text, text.find(" = ") + 3);
  for (const char* cls : {"activations", "communication", "workspace", "scalars", "gradients",
                          "unreduced", "gathered", "offloaded"}) {
    if (text.substr(own.begin, own.end - own.begin) != cls)
      lines_.add("another class", place.line, replace_token(text, own, cls));
  }
}

void PlanLineChanges::act(std::size_t k) {
  const Place& place = actions_[k];
  const std::string& text = lines_[place.line];
  lines_.delete_and_duplicate(place.line, "action");
  waits(place);
  operands(place);
  for (const auto& [from, to] :
       {std::pair{" reads (", " writes ("}, {" writes (", " uses ("}, {" writes (", " reads ("}}) {
    if (const std::size_t found = text.find(from); found != std::string::npos) {
      lines_.add(std::string("call what it") + from + to, place.line,
                 text.substr(0, found) + to + text.substr(found + std::string(from).size()));
    }
  }
  const std::size_t via = text.find(" via ");
  if (via != std::string::npos) {
    for (const std::string& other : via_) {
      const LineToken token = word(text, via + 5);
      if (other != token_text(text, token))
        lines_.add("redirect communicator", place.line, replace_token(text, token, other));
    }
  }
  if (k + 1 == actions_.size() || actions_[k + 1].role != place.role) return;
  if (independence_.dependent(dag_.plan->roles[place.role], action(place),
                              action(actions_[k + 1]))) {
    lines_.swap(place.line, actions_[k + 1].line);
  } else {
    ++num_independent_;
  }
}

void PlanLineChanges::waits(const Place& place) {
  const std::string& text = lines_[place.line];
  const std::size_t after = text.find(" after ");
  if (after == std::string::npos) return;
  std::size_t end = text.size();
  for (const char* section : {" reads (", " writes (", " uses ("})
    end = std::min(end, text.find(section, after));
  std::vector<std::string> list;
  for (std::size_t from = after + 7; from < end;) {
    const std::size_t comma = std::min(text.find(", ", from), end);
    list.push_back(text.substr(from, comma - from));
    from = comma + 2;
  }
  const dag::Role& role = dag_.plan->roles[place.role];
  for (std::size_t w = 0; w < list.size(); ++w) {
    const auto joined = [&](const std::string& replacement) {
      std::string all;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string& each = i == w ? replacement : list[i];
        if (!each.empty()) all += (all.empty() ? " after " : ", ") + each;
      }
      return text.substr(0, after) + all + text.substr(end);
    };
    lines_.add("delete wait `" + list[w] + "`", place.line, joined(""));
    // An earlier action of the same stream says less.
    const dag::Wait& wait = role.waits[action(place).first_wait + w];
    for (const Action& other : role.actions) {
      if (other.stream != wait.stream || other.position + 1 != wait.position) continue;
      lines_.add("redirect wait `" + list[w] + "`", place.line,
                 joined((wait.distance > 0 ? "previous " : "") + dag_.name(other.node)));
    }
    if (wait.distance == 0)
      lines_.add("wait for the step before instead of `" + list[w] + "`", place.line,
                 joined("previous " + list[w]));
  }
}

void PlanLineChanges::operands(const Place& place) {
  const std::string& text = lines_[place.line];
  const dag::Role& role = dag_.plan->roles[place.role];
  std::size_t end = text.find(" uses (");
  if (end == std::string::npos) end = text.size();
  // Names of all buffers, as the role declares them.
  std::vector<std::string> names;
  for (std::size_t i = place.line - place.action; i-- > 0 && lines_[i].starts_with("  buffer ");) {
    names.push_back(lines_[i].substr(9, lines_[i].find(" = ") - 9));
  }
  std::reverse(names.begin(), names.end());
  std::size_t index = 0;
  for (std::size_t from = text.find('%'); from < end; from = text.find('%', from + 1), ++index) {
    const LineToken token = word(text, from);
    const auto own = std::find(names.begin(), names.end(), token_text(text, token));
    if (own == names.end()) continue;
    const auto number = static_cast<std::size_t>(own - names.begin());
    // A value without a reader may be written to any free memory.
    if (from > text.find("writes (") && independence_.unread(action(place).node, index)) continue;
    // The next buffer of other bytes, and another name for the same.
    bool elsewhere = false, same = false;
    for (std::size_t k = 1; k < names.size(); ++k) {
      const std::size_t other = (number + k) % names.size();
      bool& done = role.buffers[other].offset == role.buffers[number].offset ? same : elsewhere;
      if (done) continue;
      done = true;
      lines_.add("redirect operand `" + token_text(text, token) + "` to `" + names[other] + "`",
                 place.line, replace_token(text, token, names[other]));
    }
    std::string moved = text;
    moved.insert(token.end, " + 64");
    if (text.compare(token.end, 3, " + ") != 0)
      lines_.add("move operand `" + token_text(text, token) + "`", place.line, moved);
    const dag::Operand& operand = role.operands[action(place).first_operand + index];
    const std::size_t inputs = text.find("writes (");
    if (operand.accumulate) {
      std::string written = text;
      written.erase(token.begin - 1, 1);
      lines_.add("write instead of add `" + token_text(text, token) + "`", place.line, written);
    } else if (from > inputs) {
      std::string added = text;
      added.insert(token.begin, "+");
      lines_.add("add instead of write `" + token_text(text, token) + "`", place.line, added);
    }
  }
}

void PlanLineChanges::move_onto_state(const BufferLine& place) {
  const std::vector<dag::Buffer>& buffers = dag_.plan->roles[place.role].buffers;
  const auto lasts = [](const dag::Buffer& buffer) {
    return is_state(buffer.cls) && !is_on_host(buffer.cls);
  };
  std::vector<std::int64_t> state;
  for (const dag::Buffer& buffer : buffers) {
    if (lasts(buffer)) state.push_back(buffer.offset);
  }
  if (state.empty() || is_state(buffers[place.buffer].cls) || is_on_host(buffers[place.buffer].cls))
    return;
  const std::string onto = std::to_string(state[place.buffer % state.size()]);
  std::string moved = lines_[place.line];
  const std::size_t begin = moved.find(" at ") + 4;
  moved.replace(begin, moved.find(' ', begin) - begin, onto);
  lines_.add("move buffer to byte `" + onto + "`", place.line, moved);
}

}  // namespace piper::test
