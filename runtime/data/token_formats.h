#pragma once
// Finds the tokens of one file by its header; the formats are those of `token_file.h`.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/token_file.h"

namespace piper::runtime {

/// Appends the tokens of a file as runs whose `first` continues that of the last one, and the files
/// that were opened. `type`: the type that the caller gives, or none. `raw`: a file without a
/// header, whatever its name, is raw if a type is given. False with the reason in `failure`.
bool append_tokens(const std::string& path, std::optional<StoredType> type, bool raw,
                   std::vector<TokenRun>& runs, std::vector<std::shared_ptr<const DataFile>>& files,
                   Failure& failure);

/// `corpus.idx` of `corpus.bin`; empty if the name does not end in `.bin`.
std::string index_of(const std::string& path);

}  // namespace piper::runtime
