# Language level, build types, warnings and ccache, for every target of the tree.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Assertions of the standard library: an index beyond a container is found by every test, not only under a sanitizer.
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -D_GLIBCXX_ASSERTIONS")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# gcc takes the sanitizers' own bookkeeping in LLVM's headers for reads of unset memory.
# The checks of `null` and `alignment` double the time to compile. The address sanitizer finds a null pointer by itself; the runtime, whose data lies
# in arenas at computed addresses, has both checks (PIPER_POINTER_CHECKS).
set(CMAKE_CXX_FLAGS_ASAN
    "-Wno-maybe-uninitialized -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize=null,alignment -fno-sanitize-recover=undefined")
set(PIPER_POINTER_CHECKS "$<$<CONFIG:Asan>:-fsanitize=null,alignment>")
set(CMAKE_CXX_FLAGS_TSAN "-Wno-maybe-uninitialized -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread")
# For code that walks large tables: gcc 12 vectorises loops of several accesses at -O3 alone, where it takes inlined code of std::string for overlapping copies.
# Position-independent functions are inlined into others of their file if they cannot be replaced at run time.
set(PIPER_HOT_CODE "$<$<CONFIG:Release>:-O3;-Wno-restrict;-fno-semantic-interposition>")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Debug)
endif()

# Warnings of our own code; generated code (the ANTLR parser) asks for none. Only the presets of developers stop at one: another release of gcc has other
# warnings, and they must not stop a user's build.
set(PIPER_WARNINGS -Wall -Wextra -Wpedantic "$<$<NOT:$<CONFIG:Release>>:-Werror>")

# Programs and plugins lie side by side in the build root, where the runtime looks for plugins.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")

# Paths relative to the tree: all clones on a machine share one compiler cache.
find_program(PIPER_CCACHE ccache)
if(PIPER_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${PIPER_CCACHE}")
endif()
