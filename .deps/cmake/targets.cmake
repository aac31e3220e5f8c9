# The functions that the folders' CMakeLists.txt are made of.

# The target of `make build`: the program and the plugins that it opens, without the tests.
add_custom_target(program)

# piper_library(NAME [SOURCES a.cpp ...] [DEPS target ...])
# A static library; without sources a header-only one. Includes are written from the project root.
function(piper_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}")
    target_link_libraries(${name} PUBLIC ${arg_DEPS})
    target_compile_options(${name} PRIVATE ${PIPER_WARNINGS})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE "${CMAKE_SOURCE_DIR}")
    target_link_libraries(${name} INTERFACE ${arg_DEPS})
  endif()
endfunction()

# Settings of every executable and plugin.
function(piper_private_settings name)
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARGN})
  target_compile_options(${name} PRIVATE ${PIPER_WARNINGS})
endfunction()

# piper_plugin(NAME SOURCES a.cpp ... [DEPS target ...])
# A shared object NAME.so in the build root, opened by the runtime with dlopen.
function(piper_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_library(${name} MODULE ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES PREFIX "")
  add_dependencies(program ${name})
  piper_private_settings(${name} ${arg_DEPS})
endfunction()

# piper_program(NAME SOURCES a.cpp ... [DEPS target ...])
# An executable in the build root.
function(piper_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_executable(${name} ${arg_SOURCES})
  piper_private_settings(${name} ${arg_DEPS})
endfunction()

# The tests of the compiler half, which `make asan-quick` builds and runs: all without RUNS.
add_custom_target(compiler_tests)

# piper_test(NAME SOURCES a_test.cpp ... [DEPS target ...] [LABEL folder] [SHARDS n] [TIMEOUT seconds] [RUNS])
# A GoogleTest executable (main comes from tests/support) that ctest runs in the project root;
# SHARDS runs its cases as that many processes, for suites that take long.
# RUNS: it runs or generates plans, or needs LibTorch or the program, so it does not belong to the compiler half, whose tests CI can build under sanitizers in
# time.
function(piper_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RUNS" "LABEL;SHARDS;TIMEOUT" "SOURCES;DEPS")
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  piper_program(${name} SOURCES ${arg_SOURCES} DEPS piper_test_support ${arg_DEPS})
  if(NOT arg_RUNS)
    add_dependencies(compiler_tests ${name})
    list(APPEND arg_LABEL compiler)
  endif()
  math(EXPR last "${arg_SHARDS} - 1")
  foreach(shard RANGE ${last})
    if(arg_SHARDS EQUAL 1)
      set(test ${name})
    else()
      set(test ${name}.${shard})
    endif()
    add_test(NAME ${test} COMMAND ${name} --gtest_brief=1 WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
    set_tests_properties(${test} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}"
      LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT})
  endforeach()
endfunction()

# piper_embed_files(NAME ROOT folder FILES a ...)
# A static library with the text of FILES (relative to ROOT) as `piper::embedded::NAME()`, declared
# in the generated header "embedded/NAME.h": a sorted list of {path, text}.
function(piper_embed_files name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ROOT" "FILES")
  set(out "${CMAKE_BINARY_DIR}/generated/embedded/${name}")
  list(TRANSFORM arg_FILES PREPEND "${arg_ROOT}/" OUTPUT_VARIABLE inputs)
  add_custom_command(
    OUTPUT "${out}.h" "${out}.cpp"
    COMMAND "${Python3_EXECUTABLE}" "${CMAKE_SOURCE_DIR}/.deps/cmake/embed_files.py" ${name} "${out}" "${arg_ROOT}" ${arg_FILES}
    DEPENDS ${inputs} "${CMAKE_SOURCE_DIR}/.deps/cmake/embed_files.py"
    COMMENT "Embedding ${name}" VERBATIM)
  add_library(piper_embedded_${name} STATIC "${out}.cpp" "${out}.h")
  target_include_directories(piper_embedded_${name} PUBLIC "${CMAKE_BINARY_DIR}/generated")
endfunction()

# piper_antlr_grammar(NAME LEXER file.g4 PARSER file.g4 NAMESPACE ns)
# A static library with the generated lexer and parser (visitor, no listener); their headers are
# included as "grammar_generated/XParser.h".
function(piper_antlr_grammar name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LEXER;PARSER;NAMESPACE" "")
  get_filename_component(lexer "${arg_LEXER}" NAME_WE)
  get_filename_component(parser "${arg_PARSER}" NAME_WE)
  set(root "${CMAKE_BINARY_DIR}/generated/antlr")
  set(out "${root}/grammar_generated")
  set(flags -Dlanguage=Cpp -visitor -no-listener -Werror -package ${arg_NAMESPACE} -o "${out}" -Xexact-output-dir)
  add_custom_command(
    OUTPUT "${out}/${lexer}.cpp" "${out}/${lexer}.h" "${out}/${lexer}.tokens"
    COMMAND "${PIPER_ANTLR}" ${flags} "${arg_LEXER}"
    DEPENDS "${arg_LEXER}" COMMENT "Generating ${lexer}" VERBATIM)
  add_custom_command(
    OUTPUT "${out}/${parser}.cpp" "${out}/${parser}.h" "${out}/${parser}Visitor.cpp" "${out}/${parser}Visitor.h"
    COMMAND "${PIPER_ANTLR}" ${flags} -lib "${out}" "${arg_PARSER}"
    DEPENDS "${arg_PARSER}" "${out}/${lexer}.tokens" COMMENT "Generating ${parser}" VERBATIM)
  add_library(${name} STATIC "${out}/${lexer}.cpp" "${out}/${parser}.cpp" "${out}/${parser}Visitor.cpp")
  target_include_directories(${name} SYSTEM PUBLIC "${root}")
  target_include_directories(${name} PRIVATE "${out}")
  target_link_libraries(${name} PUBLIC deps::antlr4_runtime)
  # The generated code initialises std::string from u8"" literals, which C++20 gives a type of their own.
  target_compile_options(${name} PRIVATE -w -fno-char8_t)
endfunction()
