#pragma once
// Converts declarations of Cython (`.pxd`) to a C++ header: NVIDIA's bindings have them from
// headers that are too large to fetch.
//
//   header_of_cython("ctypedef enum ncclResult_t \"ncclResult_t\":\n    ncclSuccess \"ncclSuccess\" = 0\ncdef ncclResult_t ncclGroupStart() except?_X nogil\n")
//   // typedef int ncclResult_t; constexpr long long ncclSuccess = 0; extern "C" ncclResult_t ncclGroupStart();

#include <set>
#include <string>

namespace piper::test {

/// Keeps enumerations with explicit numbers, names of types, and the named structures and
/// functions. All else is left out.
std::string header_of_cython(const std::string& text, const std::set<std::string>& structures,
                             const std::set<std::string>& functions);

}  // namespace piper::test
